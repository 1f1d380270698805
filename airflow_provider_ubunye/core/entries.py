"""The entries of a batch's log: what they say, and how they are written and read. Pure.

A batch's state is an append-only log of numbered entries. Each is made whole by one exclusive create and
never changed. ``kind`` is one of:

==============  ==========================================================================================
``acquired``    a run took the lease; ``over`` names the dead run it took it from, if any
``writing``     outputs announced, with where they stage, before anything is staged
``claimed``     every file named before it lands, and every file that will be replaced
``committing``  an output with a commit of its own (Delta, SQL) is about to commit
``committed``   that commit's outcome
``done``        the run's commit point
``cleaned``     debts of earlier runs settled; ``debts`` are those left
``finished``    everything after ``done`` is settled: the lease is free (a checkpoint)
``released``    the run ended without committing: the lease is free (a checkpoint)
==============  ==========================================================================================
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from airflow_provider_ubunye.core.errors import StateUnreadable

FORMAT = 1
"""Version of the entry format. A reader refuses a higher one."""

_DEEPEST = 50
"""How deeply JSON of the state may be nested; what a scheduler says of an attempt is the deepest of it."""

KINDS = frozenset(
    {
        "acquired",
        "writing",
        "claimed",
        "committing",
        "committed",
        "done",
        "cleaned",
        "finished",
        "released",
    }
)
CHECKPOINTS = frozenset({"finished", "released"})


@dataclass(frozen=True)
class Entry:
    """One entry.

    :param number: its place in the log, from 1.
    :param id: unique to this entry; a create whose answer was lost is settled by it.
    :param previous: the id of entry ``number - 1``, None for the first.
    :param run: the run that made it.
    :param at: when, UTC, ISO 8601; for people, never compared.
    :param kind: one of :data:`KINDS`.
    :param body: what the kind says; a checkpoint holds the folded state under ``state``.
    """

    number: int
    id: str
    previous: str | None
    run: str
    at: str
    kind: str
    body: Mapping[str, Any]


def encode(entry: Entry) -> bytes:
    """An entry as it is stored: one JSON object, readable."""
    document = {
        "format": FORMAT,
        "number": entry.number,
        "id": entry.id,
        "previous": entry.previous,
        "run": entry.run,
        "at": entry.at,
        "kind": entry.kind,
        **entry.body,
    }
    return json.dumps(document, ensure_ascii=False).encode("utf-8", "surrogateescape") + b"\n"


def parse(data: bytes) -> Any:
    """What JSON of the state says: an entry, and a note or lease of an older Ubunye.

    :raises json.JSONDecodeError: it is not JSON.
    :raises ValueError: it is, and no run wrote it: nested deeply, no number (NaN), half a character. What would
        make trouble far from here, where the value is used or written again, is found here.
    """
    try:
        document = json.loads(data.decode("utf-8", "surrogateescape"), parse_constant=_no_number)
        if b"\\u" in data:
            # Escapes can spell half a character, which no file can hold again.
            json.dumps(document, ensure_ascii=False).encode("utf-8", "surrogateescape")
    except RecursionError:
        raise _too_deep() from None
    except UnicodeEncodeError:
        raise ValueError("it has half a character") from None
    values = [document]
    for _ in range(_DEEPEST):
        values = [one for value in values for one in _inside(value) if isinstance(one, list | dict)]
        if not values:
            return document
    raise _too_deep()


def _too_deep() -> ValueError:
    return ValueError("it is nested too deeply")


def _no_number(name: str) -> float:
    raise ValueError(f"{name} is no number")


def _inside(value: Any) -> Iterable[Any]:
    return value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()


def decode(data: bytes, where: str) -> Entry:
    """Read an entry back.

    :param where: its key, for the message.
    :raises StateUnreadable: not JSON, not an entry, or of a later format. It is never taken for absent.
    """
    try:
        document = parse(data)
    except ValueError as error:
        raise StateUnreadable(f"a log entry is not valid JSON: {error}", where=where) from None
    if not isinstance(document, dict) or not _is(document.get("format"), int):
        raise StateUnreadable("a log entry is not an entry of this project", where=where)
    if document["format"] > FORMAT:
        raise StateUnreadable(
            f"a log entry has format {str(document['format'])[:20]}, this version reads up to {FORMAT}",
            where=where,
            hint="upgrade airflow-provider-ubunye",
        )
    head = ("format", "number", "id", "previous", "run", "at", "kind")
    try:
        entry = Entry(
            number=_typed(document, "number", int),
            id=_typed(document, "id", str),
            previous=None if document["previous"] is None else _typed(document, "previous", str),
            run=_typed(document, "run", str),
            at=_typed(document, "at", str),
            kind=_typed(document, "kind", str),
            body={k: v for k, v in document.items() if k not in head},
        )
    except (KeyError, TypeError) as error:
        raise StateUnreadable(f"a log entry is damaged: {error}", where=where) from None
    if entry.kind not in KINDS:
        raise StateUnreadable(f"a log entry has the unknown kind {entry.kind[:40]!r}", where=where)
    return entry


def _is(value: object, kind: type) -> bool:
    return isinstance(value, kind) and not isinstance(value, bool)


def _typed(document: Mapping[str, Any], name: str, kind: type) -> Any:
    value = document[name]
    if not _is(value, kind):
        raise TypeError(f"{name} is not {kind.__name__}")
    return value
