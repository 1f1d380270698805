"""Jinja in a config: sandboxed, strict, and only ever on text that the YAML parser has delivered.

A value can thus never add a key, end a string or change a type: what a leaf renders to is text in the place
where the template stood. Keys are not templates. Nothing but the names of :class:`Scope` and Jinja's filters
and tests is there: no ``range``, no ``include``.

Errors name the key and the fault, never a value: it may be a secret of the environment.

A template that gives very much is refused before it fills the memory (:mod:`.templatelimits`).

Not promised: one that runs for ever is not stopped, nor one made to fill the memory with many small steps.
Whoever writes a config also writes the ``transformations.py`` beside it.
"""

from __future__ import annotations

import difflib
import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any

from airflow_provider_ubunye.core.errors import ConfigError, UsageError
from airflow_provider_ubunye.tasks.secrets import PREFIX, Redactor

if TYPE_CHECKING:
    from jinja2 import Undefined
    from jinja2.runtime import Context
    from jinja2.sandbox import ImmutableSandboxedEnvironment

RESERVED = frozenset({"env", "task_dir", "usecase_dir"})
"""Names in a template that a variable may not take."""

_MARKS = ("{{", "{%", "{#")
# Names under which environments commonly keep what must not be shown.
_SENSITIVE = re.compile(
    r"passw|passphrase|pwd|secret|token|credential|api_?key|private_?key|access_?key", re.IGNORECASE
)
_SHORTEST_SENSITIVE = 4
# Jinja's own words for a name that is no variable.
_UNDEFINED = re.compile(r"'(\w+)' is undefined\Z")
_HARMLESS = frozenset({"true", "false", "none", "null"})


class Env:
    """The environment in a template: ``env.NAME``, ``env['NAME']``, ``env.get('NAME', default)``.

    It can't be listed.

    :param read: filled with what templates read, so that it can be masked.
    """

    def __init__(self, environ: Mapping[str, str], read: dict[str, str]) -> None:
        self._environ = environ
        self._read = read

    def __getitem__(self, name: str) -> str:
        value = self._environ[name]
        self._read[name] = value
        return value

    def __contains__(self, name: object) -> bool:
        return name in self._environ

    def get(self, name: str, default: Any = None) -> Any:
        """The variable, else ``default``; without a default an absent one is as undefined as ``env.NAME``."""
        if name in self._environ:
            return self[name]
        return _jinja()[0].undefined(obj=self, name=name) if default is None else default


@dataclass(frozen=True)
class Scope:
    """What templates may name.

    :param variables: ``dt``, ``dtf``, ``mode`` and every other variable of the run.
    :param environ: the environment, as ``env``.
    :param task_dir: the task's folder as text.
    :param usecase_dir: the use case folder as text.
    :param hide: called with each value of the environment that is to be masked from now on: those read
        for a name that speaks of a secret, and all that are read outside of paths and names.
    :raises UsageError: a variable takes one of the other names.
    """

    variables: Mapping[str, str]
    environ: Mapping[str, str]
    task_dir: str
    usecase_dir: str
    hide: Callable[[str], None]
    seen: list[str] = field(init=False, default_factory=list)
    """Every value of the environment that was rendered, for messages about what it was rendered into."""
    _read: dict[str, str] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        for name in sorted(RESERVED & self.variables.keys()):
            raise UsageError(
                f"the variable {name!r} has a name that templates use themselves", hint="choose another name"
            )

    def names(self) -> dict[str, Any]:
        """The names and their values, for Jinja."""
        own = {
            "env": Env(self.environ, self._read),
            "task_dir": self.task_dir,
            "usecase_dir": self.usecase_dir,
        }
        return {**self.variables, **own}

    def take_read(self) -> dict[str, str]:
        """What templates read of the environment since this was last asked."""
        read = dict(self._read)
        self._read.clear()
        return read


def is_template(text: str) -> bool:
    """True where ``text`` has anything for Jinja to do."""
    return any(mark in text for mark in _MARKS)


def render_tree(value: Any, scope: Scope, key: str = "") -> Any:
    """``value`` with every text leaf rendered; numbers, booleans and None as they are.

    :param key: where ``value`` stands: ``CONFIG.outputs``; empty at the top.
    :raises ConfigError: the first leaf that can't be rendered, in one line that names its key.
    """
    if isinstance(value, str):
        return render(value, scope, key)
    if isinstance(value, Mapping):
        return {k: render_tree(v, scope, f"{key}.{k}" if key else str(k)) for k, v in value.items()}
    if isinstance(value, list):
        return [render_tree(v, scope, f"{key}[{i}]") for i, v in enumerate(value)]
    return value


def render(text: str, scope: Scope, key: str) -> str:
    """One leaf rendered. The result is text, even where the leaf is a single ``{{ … }}``.

    In a path no expression may give an empty text or a ``..``: a variable must not move the output.

    :raises ConfigError: undefined name, forbidden access, syntax, any failure of a filter, a None.
    """
    if not is_template(text):
        return text
    in_entry = key.startswith(("CONFIG.inputs.", "CONFIG.outputs.")) and ".options." not in key
    is_path = in_entry and key.endswith(".path")
    environment = _jinja()[is_path]
    try:
        done = _joined(environment.from_string(text).generate(scope.names()))
    except Exception as error:  # noqa: BLE001 - filters raise whatever they like
        raise ConfigError(f"{key}: {_fault(error, scope)}", hint=_hint(error)) from None
    _hide_read(scope, structural=in_entry)
    if any(unicodedata.category(c) == "Cc" and c not in "\t\n\r" for c in done):
        raise ConfigError(f"{key}: the template gives a control character")
    if PREFIX in done and PREFIX not in text:
        raise ConfigError(
            f"{key}: a value may not bring a {PREFIX}… reference into the config",
            hint=f"write {PREFIX} in the config itself",
        )
    return done


def _joined(parts: Iterable[str]) -> str:
    from airflow_provider_ubunye.tasks.templatelimits import LARGEST_DONE, check

    done: list[str] = []
    size = 0
    for part in parts:
        size += len(part)
        check(size, LARGEST_DONE)
        done.append(part)
    return "".join(done)


def _hide_read(scope: Scope, *, structural: bool) -> None:
    for name, value in scope.take_read().items():
        scope.seen.append(value)
        sensitive = bool(_SENSITIVE.search(name))
        short = len(value) < _SHORTEST_SENSITIVE or value.lower() in _HARMLESS
        if sensitive or not (structural or short):
            scope.hide(value)


class _Refused(Exception):
    """A value that a template must not give; the message is a sentence without the value."""


def _fault(error: Exception, scope: Scope) -> str:
    """What went wrong, in one line without any value of the environment."""
    from jinja2 import TemplateSyntaxError, UndefinedError
    from jinja2.exceptions import SecurityError

    from airflow_provider_ubunye.tasks.templatelimits import TooLarge

    if isinstance(error, TemplateSyntaxError):
        said = f"not a valid template: {error.message}"
    elif isinstance(error, SecurityError):
        said = f"not allowed in a template: {error.message}"
    elif isinstance(error, UndefinedError) and (name := _UNDEFINED.match(str(error))):
        said = _missing(name[1], scope)
    elif isinstance(error, UndefinedError | _Refused | TooLarge):
        said = str(error)
    else:
        # A filter's own words ("invalid literal for int(): '…'") quote the value.
        said = f"the template failed with {type(error).__name__}"
    shown = Redactor()
    for value in scope.take_read().values():
        shown.add(value)
    return " ".join(shown.mask(said).split())


def _missing(name: str, scope: Scope) -> str:
    """Which variable is missing, which ones the run has, and the one that looks like it."""
    given = sorted(scope.variables.keys() - {"mode"})
    flag = f"-{name} …" if name in ("dt", "dtf") else f"--var {name}=…"
    said = f"needs {flag}; given: {', '.join(given) or 'none'}"
    near = difflib.get_close_matches(name, [*given, *sorted(RESERVED)], n=1)
    if near and near[0] in given:
        # Either of them may be the one that is misspelt.
        said += f"; did you mean {name!r} by {near[0]!r}?"
    elif near:
        said += f"; did you mean {near[0]!r}?"
    return said


def _hint(error: Exception) -> str | None:
    from jinja2 import UndefinedError

    if isinstance(error, UndefinedError) and "environment variable" in str(error):
        return "set it, or write {{ env.NAME | default('…') }}"
    return None


@cache
def _jinja() -> tuple[ImmutableSandboxedEnvironment, ImmutableSandboxedEnvironment]:
    """The environments for ordinary leaves and for paths. Jinja is imported when a template is met."""
    from jinja2 import StrictUndefined
    from jinja2.exceptions import SecurityError
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    from airflow_provider_ubunye.tasks.templatelimits import check_binop, check_call, limited

    class Missing(StrictUndefined):
        """An undefined name whose message is written for the person who wrote the config."""

        __slots__ = ()

        @property
        def _undefined_message(self) -> str:
            if isinstance(self._undefined_obj, Env):
                return f"the environment variable {self._undefined_name!r} is not set"
            return super()._undefined_message

    class Sandbox(ImmutableSandboxedEnvironment):
        """Refuses a forbidden access at once: Jinja's own gives an undefined, which a default would hide.

        And it looks at how much a step would give, before the step is made.
        """

        intercepted_binops = frozenset({"+", "*", "**", "%"})

        def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
            check_binop(operator, left, right)
            return super().call_binop(context, operator, left, right)

        def call(self, context: Context, called: Any, /, *args: Any, **named: Any) -> Any:
            check_call(called, args, named)
            return super().call(context, called, *args, **named)

        def unsafe_undefined(self, obj: Any, attribute: str) -> Undefined:
            raise SecurityError(f"access to {attribute!r} of a {type(obj).__name__}")

    def made(finalize: Callable[[Any], Any]) -> ImmutableSandboxedEnvironment:
        environment = Sandbox(undefined=Missing, finalize=finalize, keep_trailing_newline=True)
        environment.globals.clear()
        environment.filters = {name: limited(name, made) for name, made in environment.filters.items()}
        return environment

    return made(_plain), made(_path_part)


def _plain(value: Any) -> Any:
    from jinja2 import Undefined

    if isinstance(value, Undefined):
        return str(value)  # raises, with the name that is missing
    if not isinstance(value, str | int | float):
        shown = "None" if value is None else f"a value of type {type(value).__name__}"
        raise _Refused(f"an expression gives {shown}, not text or a number")
    return value


def _path_part(value: Any) -> Any:
    text = str(_plain(value))
    if not text.strip():
        raise _Refused("an expression in the path is empty")
    if {".", ".."} & set(re.split(r"[/\\]", text)):
        raise _Refused("an expression in the path gives a '.' or '..'")
    return value
