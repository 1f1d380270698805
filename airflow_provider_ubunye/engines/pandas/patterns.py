"""Spark's patterns for dates and times, as strftime has them. Imports nothing that is heavy."""

from __future__ import annotations

_PARTS = (
    ("yyyy", "%Y"),
    ("yy", "%y"),
    ("MMMM", "%B"),
    ("MMM", "%b"),
    ("MM", "%m"),
    ("dd", "%d"),
    ("HH", "%H"),
    ("mm", "%M"),
    ("ss", "%S"),
)
_FRACTIONS = ((".SSSSSSSSS", "ns"), (".SSSSSS", "us"), (".SSS", "ms"))


def strptime_pattern(pattern: str) -> tuple[str, str | None]:
    """Spark's date pattern as strftime's, and the unit that its fraction of a second needs.

    :raises ValueError: a part of the pattern that has no counterpart.
    """
    unit = "s" if "ss" in pattern else None
    for fraction, of_fraction in _FRACTIONS:
        if f"ss{fraction}" in pattern:
            pattern, unit = pattern.replace(f"ss{fraction}", "ss"), of_fraction
            break
    out, rest = "", pattern
    while rest:
        if rest.startswith("'") and "'" in rest[1:]:
            quoted, rest = rest[1:].split("'", 1)
            out += (quoted or "'").replace("%", "%%")
            continue
        for java, strftime in _PARTS:
            if rest.startswith(java):
                out, rest = out + strftime, rest[len(java) :]
                break
        else:
            if rest[0].isalpha() or rest[0] in "[]{}#":
                raise ValueError(f"{rest[0]!r} is not understood")
            out, rest = out + rest[0].replace("%", "%%"), rest[1:]
    return out, unit
