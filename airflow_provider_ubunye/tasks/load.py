"""Loading and calling the code in ``transformations.py``.

Two tasks with files of the same name never mix: a task's module has a name of its own, and what it imports
from beside itself stands in ``sys.modules`` only while that task loads or works. ``sys.path`` and
``sys.modules`` belong to the whole process, so one task's code works at a time: a second thread waits.

Not promised: code that a transform starts in a thread and leaves running may import the wrong sibling later.
"""

from __future__ import annotations

import hashlib
import importlib.util
import inspect
import linecache
import os
import sys
import threading
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import ModuleType, TracebackType
from typing import Any

from airflow_provider_ubunye.core.errors import ConfigError, RunStopped, TransformFailed
from airflow_provider_ubunye.tasks.folder import TaskFolder, near_names
from airflow_provider_ubunye.tasks.secrets import REDACTOR, Redactor
from airflow_provider_ubunye.tasks.task import Task, TaskContext

Transform = Callable[[dict[str, Any], TaskContext], dict[str, Any]]

_LONGEST_MESSAGE = 500
_ONE_AT_A_TIME = threading.RLock()


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
    siblings = _Siblings(folder.path)
    with siblings.importable(), _user_code(folder.path, redactor):
        module = _import(folder)
    call = _find(module, str(path))

    def transform(sources: dict[str, Any], context: TaskContext) -> dict[str, Any]:
        with siblings.importable(), _user_code(folder.path, redactor):
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


# ── importing ───────────────────────────────────────────────────────────────────────────────────


class _SourceLoader(SourceFileLoader):
    """Compiles the file anew each time: a cached one is taken for current when size and second agree."""

    def get_code(self, fullname: str) -> Any:
        return self.source_to_code(self.get_data(self.path), self.path)


def _import(folder: TaskFolder) -> ModuleType:
    path = str(folder.transformations_path)
    name = f"_ubunye_task_{hashlib.sha256(path.encode(errors='surrogateescape')).hexdigest()[:16]}"
    linecache.checkcache(path)
    spec = importlib.util.spec_from_file_location(name, path, loader=_SourceLoader(name, path))
    assert spec is not None and spec.loader is not None  # noqa: S101, PT018 - we gave it the loader
    module = importlib.util.module_from_spec(spec)
    # Registered, and left there: dataclasses and pickle look their module up by name.
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


class _Siblings:
    """The modules that a task imports from its own folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = str(folder)
        self._real = os.path.realpath(folder)
        self._own: dict[str, ModuleType] = {}

    @contextmanager
    def importable(self) -> Iterator[None]:
        """The task's folder comes first on ``sys.path``; everything is as before afterwards."""
        with _ONE_AT_A_TIME:
            path_before = list(sys.path)
            # What carries the name of one of our modules steps aside, a module of another task among them.
            hidden = {name: sys.modules.pop(name) for name in self._shadowed()}
            sys.modules.update(self._own)
            sys.path.insert(0, self._folder)
            importlib.invalidate_caches()
            try:
                yield
            finally:
                sys.path[:] = path_before
                self._own = {
                    name: module for name, module in list(sys.modules.items()) if self._is_own(module)
                }
                for name in self._own:
                    del sys.modules[name]
                sys.modules.update(hidden)

    def _shadowed(self) -> list[str]:
        """Loaded modules that stand where a file of the folder would be imported from."""
        try:
            files = [entry.name for entry in os.scandir(self._folder)]
        except OSError:
            files = []
        tops = {name.removesuffix(".py") for name in files} | {name.partition(".")[0] for name in self._own}
        # The standard library and what is built in are never replaced by a file that has their name.
        tops -= sys.stdlib_module_names
        return [name for name in sys.modules if name.partition(".")[0] in tops]

    def _is_own(self, module: object) -> bool:
        name = getattr(module, "__name__", None)
        if not isinstance(name, str) or name.startswith("_ubunye_task_"):
            return False
        places = [getattr(module, "__file__", None), *_package_path(module)]
        return any(isinstance(p, str) and _lies_in(p, self._folder, self._real) for p in places)


def _package_path(module: object) -> list[object]:
    try:
        return list(getattr(module, "__path__", None) or ())
    except Exception:  # noqa: BLE001 - some modules make up attributes, or fail while they do
        return []


def _lies_in(path: str, *folders: str) -> bool:
    return any(path.startswith(folder + os.sep) for folder in folders)


# ── finding the transform ───────────────────────────────────────────────────────────────────────


def _find(module: ModuleType, where: str) -> Callable[[dict[str, Any], TaskContext], Any]:
    function = getattr(module, "transform", None)
    classes = _task_classes(module)
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


# ── the user's own error ────────────────────────────────────────────────────────────────────────


@contextmanager
def _user_code(folder: Path, redactor: Redactor) -> Iterator[None]:
    """Whatever the user's code raises becomes a :class:`TransformFailed` with the user's own frames."""
    try:
        yield
    except RunStopped:
        # The run was told to stop while the user's code worked: no fault of that code.
        raise
    except (Exception, SystemExit) as error:
        raise TransformFailed(
            redactor.mask(_said(error)),
            frames=[redactor.mask(line) for line in _own_frames(error, folder)],
        ) from error


def _said(error: BaseException) -> str:
    """``ValueError: its message``, on one line and not without end."""
    try:
        message = " ".join(str(error).split())
    except Exception:  # noqa: BLE001 - the user's own __str__
        message = "(its message can't be shown)"
    if len(message) > _LONGEST_MESSAGE:
        message = message[:_LONGEST_MESSAGE] + " …"
    if isinstance(error, SystemExit):
        return f"SystemExit: the code ended the program ({message or 'no status'})"
    return f"{type(error).__name__}: {message}" if message else type(error).__name__


def _own_frames(error: BaseException, folder: Path) -> list[str]:
    """The traceback's lines that lie in the task's folder, as Python writes them."""
    folders = (str(folder), os.path.realpath(folder))
    lines: list[str] = []
    for frame in _frames(error.__traceback__):
        if _lies_in(frame.filename, *folders):
            lines.append(f'  File "{frame.filename}", line {frame.lineno}, in {frame.name}')
            if frame.line:
                lines.append(f"    {frame.line}")
    if isinstance(error, SyntaxError) and error.filename and _lies_in(error.filename, *folders):
        lines.append(f'  File "{error.filename}", line {error.lineno}')
        if error.text:
            lines.append(f"    {error.text.strip()}")
    return lines


def _frames(tb: TracebackType | None) -> list[traceback.FrameSummary]:
    return list(traceback.extract_tb(tb))
