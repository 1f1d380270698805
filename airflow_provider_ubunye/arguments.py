"""Arguments of the plain-Python face, checked: one of a wrong type is one sentence, not a traceback."""

from __future__ import annotations

import datetime
import decimal
import json
import math
import os
from collections.abc import Iterable, Mapping
from typing import Any

from airflow_provider_ubunye.core.entries import parse
from airflow_provider_ubunye.core.errors import UsageError
from airflow_provider_ubunye.core.timespan import LONGEST, span


def text(name: str, value: object) -> str:
    """An argument that must be text. :raises UsageError: it is something else."""
    if not isinstance(value, str):
        raise _wrong(name, "text", value)
    return value


def folder(name: str, value: object) -> str:
    """A folder as text.

    :param value: text, or a path object whose path is text.
    :raises UsageError: it is something else.
    """
    found = os.fspath(value) if isinstance(value, os.PathLike) else value
    if not isinstance(found, str):
        raise _wrong(name, "a path", value)
    return found


def folder_or_none(name: str, value: object) -> str | None:
    """As :func:`folder`, and None where none is given."""
    return None if value is None else folder(name, value)


def seconds(name: str, value: object) -> float:
    """A time in seconds.

    :param value: a number of them, or a time span as text: ``"10m"``.
    :raises UsageError: it is neither, negative, not a number, or longer than a year.
    """
    if isinstance(value, str):
        return span(name, value)
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise _wrong(name, 'a number of seconds, or a time span such as "10m"', value)
    if not 0 <= value <= LONGEST:
        raise UsageError(f"{name} is a number of seconds from 0 to a year, not {value!r:.40}")
    return float(value)


def seconds_or_none(name: str, value: object) -> float | None:
    """As :func:`seconds`, and None where none is given."""
    return None if value is None else seconds(name, value)


def texts(name: str, value: object) -> tuple[str, ...]:
    """A list of texts. :raises UsageError: it is none, or one text alone."""
    if isinstance(value, str | bytes | Mapping) or not isinstance(value, Iterable):
        raise _wrong(name, "a list of names", value)
    return tuple(text(f"each of {name}", one) for one in value)


def mapping(name: str, value: object) -> dict[str, Any]:
    """A mapping with text for keys; empty where none is given. :raises UsageError: it is something else."""
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise _wrong(name, "a mapping", value)
    return {text(f"each name in {name}", key): one for key, one in value.items()}


def recordable(name: str, value: object) -> dict[str, Any] | None:
    """A mapping that the state can keep. :raises UsageError: something in it has no JSON."""
    if value is None:
        return None
    found = mapping(name, value)
    try:
        # As deep as it will lie in the state's own entries, which are read back by the same rules.
        parse(json.dumps([[[[found]]]], allow_nan=False).encode())
    except (TypeError, ValueError, RecursionError):
        raise UsageError(f"{name} holds something that can't be written as JSON") from None
    return found


def all_variables(
    dt: object, dtf: object, mode: str | None, variables: Mapping[str, object] | None
) -> dict[str, object]:
    """One mapping of every variable.

    :raises UsageError: one is given twice, or is not a number (NaN), not a time (NaT); or they are no mapping.
    """
    named: dict[str, object] = {"dt": dt, "dtf": dtf, "mode": mode}
    more = mapping("variables", variables)
    for name in more:
        if named.get(name) is not None:
            raise UsageError(f"{name} is given twice: as {name} and as a variable")
    found = {k: v for k, v in {**named, **more}.items() if v is not None}
    for name, value in found.items():
        if _is_missing(value):
            raise UsageError(
                f"{name} is {value}, which is a missing value", hint=f"give {name} a value or leave it out"
            )
    return found


def _is_missing(value: object) -> bool:
    """What pandas puts where nothing is: it has a text, and would name a batch."""
    if isinstance(value, float):
        return math.isnan(value)
    if isinstance(value, decimal.Decimal):
        return value.is_nan()
    return isinstance(value, datetime.date) and value != value


def _wrong(name: str, wanted: str, value: object) -> UsageError:
    shown = repr(value)
    shown = " ".join((shown if len(shown) <= 60 else shown[:57] + "...").split())
    return UsageError(f"{name} is {wanted}, not {type(value).__name__} ({shown})")
