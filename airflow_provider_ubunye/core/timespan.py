"""Time spans as people write them, for the shell and the environment alike."""

from __future__ import annotations

import re

from airflow_provider_ubunye.core.errors import UsageError

LONGEST = 366 * 24 * 3600.0

_SPAN = r"(?:(\d+(?:\.\d+)?)h)?(?:(\d+(?:\.\d+)?)m)?(?:(\d+(?:\.\d+)?)s?)?\Z"


def span(name: str, text: str) -> float:
    """A time span, ``10m``, ``90s``, ``2h``, ``1h30m`` or a bare number of seconds, in seconds.

    :param name: the option or variable it was given in, for the message.
    :raises UsageError: it is no time span, or longer than a year.
    """
    found = re.match(_SPAN, text.strip().lower())
    if found is None or not any(found.groups()):
        raise UsageError(f"{name} {text[:40]!r} is no time span", hint="write 90s, 10m, 2h or 1h30m")
    hours, minutes, rest = (float(part or 0) for part in found.groups())
    value = hours * 3600 + minutes * 60 + rest
    if value > LONGEST:
        raise UsageError(f"{name} {text[:40]!r} is longer than a year")
    return value
