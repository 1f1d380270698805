"""Loading and calling the code in ``transformations.py``: a function, or one subclass of ``Task``."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from types import ModuleType
from typing import Any

from airflow_provider_ubunye.core.errors import ConfigError, TransformFailed
from airflow_provider_ubunye.tasks.folder import TaskFolder, near_names
from airflow_provider_ubunye.tasks.imports import Siblings, import_file
from airflow_provider_ubunye.tasks.secrets import REDACTOR, Redactor
from airflow_provider_ubunye.tasks.task import Task, TaskContext
from airflow_provider_ubunye.tasks.usererror import user_code

Transform = Callable[[dict[str, Any], TaskContext], dict[str, Any]]


def load_transform(folder: TaskFolder, *, redactor: Redactor = REDACTOR) -> Transform:
    """The task's own code, as a function of sources and context.

    The function raises :class:`TransformFailed` for whatever the user's code raises (the cause is chained),
    ``SystemExit`` included; ``KeyboardInterrupt`` and a :class:`RunStopped` pass. It checks that a dict came
    back; :func:`check_result` checks the names in it.

    :raises ConfigError: no file, no transform in it, or more than one.
    :raises TransformFailed: importing the file failed.
    """
    folder.require()
    path = folder.transformations_path
    if not path.is_file():
        raise ConfigError(
            f"the task has no {path.name}",
            where=str(path),
            hint="write a function transform(sources) that returns a dict of frames",
        )
    siblings = Siblings(folder.path)
    with siblings.importable(), user_code(folder, redactor):
        module = import_file(path)
    call = _find(module, str(path))

    def transform(sources: dict[str, Any], context: TaskContext) -> dict[str, Any]:
        with siblings.importable(), user_code(folder, redactor, sources):
            result = call(sources, context)
        if not isinstance(result, dict):
            raise TransformFailed(
                f"transform returned a {type(result).__name__}, not a dict of frames by output name",
                hint=f"see {path}",
            )
        return result

    return transform


def check_result(result: Mapping[str, Any], names: Iterable[str]) -> None:
    """Check that a transform returned exactly the declared outputs.

    :param names: the names of the config's outputs.
    :raises TransformFailed: a name is missing, unknown, or has None.
    """
    declared = list(names)
    for name in result:
        if name not in declared:
            near = near_names(str(name), declared)
            raise TransformFailed(f"transform returned {name!r}, which is no output of the config{near}")
    for name in declared:
        if name not in result:
            raise TransformFailed(f"transform returned nothing for the output {name!r} of the config")
        if result[name] is None:
            raise TransformFailed(f"transform returned None for the output {name!r}, not a frame")


def _find(module: ModuleType, where: str) -> Callable[[dict[str, Any], TaskContext], Any]:
    classes = _task_classes(module)
    function = vars(module).get("transform")
    if function in classes:
        function = None  # a subclass of Task that has this name
    found = [*(["transform"] if function is not None else []), *(cls.__name__ for cls in classes)]
    if not found:
        raise ConfigError(
            "the task's code has no transform",
            where=where,
            hint="write a function transform(sources), or one subclass of Task with that method",
        )
    if len(found) > 1:
        raise ConfigError(f"the task's code has more than one transform: {', '.join(found)}", where=where)
    if classes:
        return _of_class(classes[0], where)
    if not callable(function):
        raise ConfigError("transform is no function", where=where)
    return _adapted(function, "transform", where)


def _task_classes(module: ModuleType) -> list[type[Task]]:
    """The subclasses of Task in the module that nothing there derives from, abstract ones left out."""
    all_of_them = {
        value: None
        for value in vars(module).values()
        if isinstance(value, type) and issubclass(value, Task) and value is not Task
    }
    return [
        cls
        for cls in all_of_them
        if not inspect.isabstract(cls) and not any(cls in other.__mro__[1:] for other in all_of_them)
    ]


def _of_class(cls: type[Task], where: str) -> Callable[[dict[str, Any], TaskContext], Any]:
    try:
        inspect.signature(cls).bind()
    except TypeError:
        raise ConfigError(f"{cls.__name__} must be made without arguments", where=where) from None
    with_context = _takes_context(cls.transform, f"{cls.__name__}.transform", where, bound=True)

    def call(sources: dict[str, Any], context: TaskContext) -> Any:
        task = cls()
        task.context = context
        method: Callable[..., Any] = task.transform
        return _call(method, sources, context, with_context)

    return call


def _adapted(
    function: Callable[..., Any], name: str, where: str
) -> Callable[[dict[str, Any], TaskContext], Any]:
    with_context = _takes_context(function, name, where, bound=False)
    return lambda sources, context: _call(function, sources, context, with_context)


def _call(
    function: Callable[..., Any], sources: dict[str, Any], context: TaskContext, how: str | None
) -> Any:
    if how == "keyword":
        return function(sources, context=context)
    return function(sources, context) if how else function(sources)


def _takes_context(function: Callable[..., Any], name: str, where: str, *, bound: bool) -> str | None:
    """How a transform takes the context: ``"position"``, ``"keyword"``, or not at all (None).

    :param bound: True for a method, whose first parameter is the object.
    """
    usage = f"{name} must take (sources) or (sources, context)"
    if inspect.iscoroutinefunction(function) or inspect.isgeneratorfunction(function):
        raise ConfigError(f"{name} must return its frames: it can't be async or a generator", where=where)
    parameters = list(inspect.signature(function).parameters.values())[1 if bound else 0 :]
    by_position = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    needed = [p for p in by_position if p.default is p.empty]
    takes_many = any(p.kind is p.VAR_POSITIONAL for p in parameters)
    by_keyword = [p for p in parameters if p.kind is p.KEYWORD_ONLY and p.default is p.empty]
    if len(needed) > 2 or not (by_position or takes_many) or any(p.name != "context" for p in by_keyword):
        raise ConfigError(usage, where=where)
    if any(p.name == "context" and p.kind is p.KEYWORD_ONLY for p in parameters):
        return "keyword"
    if len(needed) == 2 or (len(by_position) > 1 and by_position[1].name == "context"):
        return "position"
    return None
