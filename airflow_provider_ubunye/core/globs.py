"""Globs as inputs have them: ``*``, ``?``, ``[…]``, ``**`` and ``{a,b}``. Nothing is opened."""

from __future__ import annotations

import re
from fnmatch import fnmatchcase

_WILD = re.compile(r"[*?\[{]")


def is_glob(text: str) -> bool:
    """Whether the text has a wildcard."""
    return bool(_WILD.search(text))


def braces(pattern: str) -> list[str]:
    """``a{b,c}`` as ``ab`` and ``ac``, as Hadoop's globs have it; inner braces first."""
    match = re.search(r"\{([^{}]*)\}", pattern)
    if match is None:
        return [pattern]
    before, after = pattern[: match.start()], pattern[match.end() :]
    return [one for word in match.group(1).split(",") for one in braces(before + word + after)]


def names(pattern: tuple[str, ...], parts: tuple[str, ...]) -> bool:
    """Whether a glob without braces names a path or a folder above it.

    :param pattern: the segments of the glob.
    :param parts: the segments of the path. A wildcard does not find a name that begins with ``_`` or ``.``.
    """
    if not pattern:
        return True
    if pattern[0] == "**":
        return names(pattern[1:], parts) or (bool(parts) and names(pattern, parts[1:]))
    if not parts or not fnmatchcase(parts[0], pattern[0]):
        return False
    hidden = parts[0].startswith(("_", ".")) and parts[0] != pattern[0]
    return not hidden and names(pattern[1:], parts[1:])
