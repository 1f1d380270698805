"""What a batch is: a task and all its variables, and the key they give (contract, "Words").

Pure: no clock, no disk. Values become text here and nowhere else, so that the shell, the plain-Python
face and Airflow give the same key.
"""

from __future__ import annotations

import datetime
import decimal
import difflib
import hashlib
import itertools
import json
import re
import unicodedata
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from airflow_provider_ubunye.core.errors import UsageError

DEFAULT_MODE = "DEV"
NAMELESS = frozenset({"mode", "dtf"})
"""Variables that are part of a batch and yet, alone, name nothing."""

MOST_SUBSETS_OF = 6
"""Earlier spellings of ``CONFIG.batch`` are looked up among the subsets of at most this many variables."""

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_DATE = re.compile(r"([0-9]{4})([-/.])([0-9]{1,2})\2([0-9]{1,2})\Z")
_LONGEST_NAME = 200
_LONGEST_VALUE = 64 * 1024


def check_name(what: str, name: str) -> str:
    """Check that a name is one plain path segment and return it.

    :param what: what it names, for the message: ``"task"``, ``"output"``.
    :raises UsageError: empty, ``.`` or hidden, with a separator, a control or line-breaking character,
        padded with spaces, or longer than 200 bytes.
    """
    shown = repr(name if len(name) <= 80 else name[:77] + "...")
    if not name:
        raise UsageError(f"the {what} name is empty")
    if name.startswith("."):
        raise UsageError(f"the {what} name {shown} starts with a dot")
    if "/" in name or "\\" in name:
        raise UsageError(f"the {what} name {shown} is not one path segment")
    if any(unicodedata.category(c) in ("Cc", "Cf", "Cs", "Zl", "Zp") for c in name):
        raise UsageError(f"the {what} name {shown} has a control character")
    if name != name.strip():
        raise UsageError(f"the {what} name {shown} is padded with spaces")
    if len(name.encode()) > _LONGEST_NAME:
        raise UsageError(f"the {what} name {shown} is longer than {_LONGEST_NAME} bytes")
    return name


def check_task(task: str) -> str:
    """Check a task written ``usecase/package/task`` and return it.

    :raises UsageError: it is not three good names.
    """
    parts = task.split("/")
    if len(parts) != 3:
        raise UsageError(f"the task {task[:80]!r} is not written usecase/package/task")
    for what, part in zip(("use case", "package", "task"), parts, strict=True):
        check_name(what, part)
    return task


def value_text(name: str, value: object) -> str | None:
    """A variable's value as the shell would write it: a date is YYYY-MM-DD, 13 is ``"13"``; None stays None.

    :raises UsageError: a type that has no one spelling, or a text that must never become a batch: empty,
        padded, ``None``, ``null``, an unrendered ``{{ … }}``, or one with control characters.
    """
    if value is None:
        return None
    if isinstance(value, bool):
        text = "true" if value else "false"
    elif isinstance(value, str | int | decimal.Decimal):
        text = str(value)
    elif isinstance(value, float):
        text = repr(value)
    elif isinstance(value, datetime.date):
        text = value.isoformat()
    else:
        raise UsageError(f"the value of {name} is a {type(value).__name__}; give text, a number or a date")
    shown = repr(text if len(text) <= 60 else text[:57] + "...")
    if not text.strip():
        raise UsageError(f"{name} is empty: {shown}", hint=f"give {name} a value or leave it out")
    if text != text.strip():
        raise UsageError(f"{name} is padded with spaces: {shown}")
    if "{{" in text or "{%" in text:
        raise UsageError(
            f"{name} is an unrendered template: {shown}", hint="the caller's template was not rendered"
        )
    if text.lower() in ("none", "null"):
        raise UsageError(f"{name} is {shown}, which is no value", hint=f"leave {name} out instead")
    if any(unicodedata.category(c) in ("Cc", "Cs") for c in text):
        raise UsageError(f"{name} has a control character: {shown}")
    if len(text.encode()) > _LONGEST_VALUE:
        raise UsageError(f"{name} is longer than {_LONGEST_VALUE} bytes")
    return text


def _check_date(dt: str) -> None:
    """Check that a ``dt`` written as year, month and day is a day, in its one spelling.

    ``2026-11-1`` would be another batch than ``2026-11-01``, and its rows would be there twice. Whatever is
    not written so (``20261101``, ``2026-W45``, a timestamp) is a spelling of its own and passes; so does all
    that comes with a ``dtf``, which says how ``dt`` is to be read.

    :raises UsageError: it is no day, or is not written YYYY-MM-DD.
    """
    written = _DATE.match(dt)
    if written is None:
        return
    year, _, month, day = written.groups()
    try:
        meant = datetime.date(int(year), int(month), int(day)).isoformat()
    except ValueError:
        raise UsageError(f"dt is {dt!r}, which is no day of the calendar") from None
    if dt != meant:
        raise UsageError(
            f"dt is {dt!r}, which would be another batch than {meant}; did you mean {meant!r}?",
            hint="write YYYY-MM-DD, or give dtf to say how dt is to be read",
        )


def batch_key(task: str, variables: Mapping[str, str]) -> str:
    """The batch key: 16 hex digits, the same that an older Ubunye computes (contract, "Batch key")."""
    text = json.dumps({"task": task, "variables": dict(variables)}, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def new_run_id(key: str) -> str:
    """A run id that belongs to one batch: 20 random hex digits, and 12 that bind them to the batch key.

    The files of a run carry its id. A log or note that was forged, damaged or put in another's place can so
    not make a run of one batch take files of another for its own.
    """
    return bound(uuid.uuid4().hex, key)


def belongs(run: str, keys: Iterable[str]) -> bool:
    """Whether a run id was made for a batch with one of these keys."""
    return any(run == bound(run, key) for key in keys)


def bound(digits: str, key: str) -> str:
    """The run id that begins with the first 20 of some hex digits and is bound to a batch key."""
    head = digits[:20]
    return head + hashlib.sha256(f"{key}/{head}".encode()).hexdigest()[:12]


@dataclass(frozen=True)
class Batch:
    """A task with all its variables.

    :param task: ``usecase/package/task``.
    :param variables: every non-null variable as text, ``mode`` in upper case included.
    :param named_by: ``CONFIG.batch``: the variables that name the batch; None means all of them.
    :param typed_mode: ``mode`` as it was typed.
    """

    task: str
    variables: Mapping[str, str]
    named_by: tuple[str, ...] | None = None
    typed_mode: str = DEFAULT_MODE
    key: str = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "key", batch_key(self.task, self.identity))

    @classmethod
    def of(
        cls, task: str, variables: Mapping[str, object], *, named_by: Sequence[str] | None = None
    ) -> Batch:
        """Check names and values and make the batch.

        :raises UsageError: a bad task, variable name or value, or a variable of ``named_by`` missing.
        """
        check_task(task)
        texts: dict[str, str] = {}
        for name, value in variables.items():
            if not _VARIABLE.match(name):
                raise UsageError(f"the variable name {name[:80]!r} is not a plain identifier")
            text = value_text(name, value)
            if text is not None:
                texts[name] = text
        if "dt" in texts and "dtf" not in texts:
            _check_date(texts["dt"])
        typed = texts.get("mode", DEFAULT_MODE)
        texts["mode"] = typed.upper()
        for name in named_by or ():
            if name not in texts:
                flag = f"-{name} …" if name in ("dt", "dtf") else f"--var {name}=…"
                near = difflib.get_close_matches(name, texts.keys() - set(named_by or ()), n=1)
                spelt = f"; it has {near[0]!r}: did you mean {name!r}?" if near else ""
                raise UsageError(
                    f"CONFIG.batch names {name!r}, which this run does not have{spelt}",
                    hint=f"give it: {flag}",
                )
        return cls(task, texts, tuple(named_by) if named_by is not None else None, typed)

    @property
    def identity(self) -> dict[str, str]:
        """The variables in the key: all, or those of ``CONFIG.batch`` and ``mode``.

        ``mode`` always counts: a DEV run must never be taken for the PROD run of the same day.
        """
        if self.named_by is None:
            return dict(self.variables)
        return {k: v for k, v in self.variables.items() if k in self.named_by or k == "mode"}

    @property
    def pinned(self) -> dict[str, str]:
        """The variables whose partition alone a batch replaces, where an output has one of that name.

        ``mode`` and ``dtf`` only where ``CONFIG.batch`` says that they name batches: every run has a mode, and
        a column of that name need not be about it.
        """
        chosen = self.named_by or ()
        return {k: v for k, v in self.identity.items() if k not in NAMELESS or k in chosen}

    @property
    def named(self) -> bool:
        """True once a ``dt`` or any ``--var`` names the batch; ``mode`` and ``dtf`` alone do not."""
        named = self.identity.keys() - NAMELESS
        return bool(named) or (self.named_by is not None and "dtf" in self.named_by)

    @property
    def label(self) -> str:
        """The batch for a person: ``shop/daily/load_orders dt=2026-11-01``."""
        shown = [
            f"{k}={v if len(v) <= 60 else v[:57] + '...'}"
            for k, v in sorted(self.identity.items())
            if (k, v) != ("mode", DEFAULT_MODE)
        ]
        return " ".join([self.task, *shown])

    def other_keys(self) -> list[tuple[str, tuple[str, ...] | None]]:
        """Keys under which this batch may have been finished before, with the ``CONFIG.batch`` they need.

        The spelling of ``mode`` as typed; all variables, from before ``CONFIG.batch`` was added; and other
        lists of ``CONFIG.batch``, which count only where the note found says it was named by that list.
        """
        found: dict[str, tuple[str, ...] | None] = {}
        spellings = {self.typed_mode, self.variables["mode"]}
        for mode in sorted(spellings):
            found.setdefault(batch_key(self.task, {**self.identity, "mode": mode}), None)
            found.setdefault(batch_key(self.task, {**self.variables, "mode": mode}), None)
        others = sorted(self.variables.keys() - {"mode"})
        if len(others) <= MOST_SUBSETS_OF:
            for size in range(1, len(others) + 1):
                for names in itertools.combinations(others, size):
                    part = {k: v for k, v in self.variables.items() if k in names or k == "mode"}
                    found.setdefault(batch_key(self.task, part), names)
        found.pop(self.key, None)
        return list(found.items())
