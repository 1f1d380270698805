"""Formats by name: the built-in file formats, and others that a package registers by entry point."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from importlib.metadata import entry_points
from typing import Any

from airflow_provider_ubunye.core.errors import ConfigError
from airflow_provider_ubunye.core.specs import FILE_FORMATS

GROUP = "airflow_provider_ubunye.formats"


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """The end of an error line: the nearest known word, or all of them, or nothing."""
    names = sorted(known)
    lowered = {name.lower(): name for name in names}
    near = difflib.get_close_matches(word.lower(), list(lowered), n=1)
    if near:
        return f"; did you mean {lowered[near[0]]!r}?"
    return f"; there is {', '.join(map(repr, names))}" if names else ""


def registered_format(name: str, method: str) -> Any:
    """The registered format ``name``: an object with ``read(spec)``, ``stage(frame, spec, staging)`` or both.

    They mean what the engine's methods of the same names mean. A class is registered or an object: a
    class is called without arguments.

    :param method: ``read`` or ``stage``: what the caller is going to do with it.
    :raises ConfigError: no such format, it can't be loaded, or it lacks the method.
    """
    found = {point.name: point for point in entry_points(group=GROUP)}
    if name not in found:
        raise ConfigError(f"there is no format {name!r}{did_you_mean(name, (*FILE_FORMATS, *found))}")
    try:
        loaded = found[name].load()
        plugin = loaded() if isinstance(loaded, type) else loaded
    except Exception as error:
        # Whatever a foreign package raises while it is imported is one line here, not a traceback.
        raise ConfigError(
            f"format {name!r} could not be loaded from {found[name].value}: {type(error).__name__}: {error}"
        ) from error
    if not callable(getattr(plugin, method, None)):
        what = "read" if method == "read" else "written"
        raise ConfigError(f"format {name!r} ({found[name].value}) can't be {what}: it has no {method}()")
    return plugin
