"""What the log of a batch says, folded: the nouns. Pure values and their JSON.

Everything read back from JSON is checked here: a damaged or forged value is refused, never guessed.
Whether a path may be acted on is decided elsewhere (:mod:`.takeback`).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from airflow_provider_ubunye.core.errors import StateUnreadable

HISTORY = 20
"""How many ended runs a state remembers."""

ROWS = "rows"
"""The key in an output's detail under which its number of rows stands, where its writer says it."""

UNFINISHED = "unfinished"
REPLACED = "replaced"


@dataclass(frozen=True)
class Place:
    """Where an output is.

    :param base: ``usecase`` for a path beneath the use case folder, else ``root``.
    :param path: the path from there, with forward slashes; absolute for ``root``.
    :param home: which use case folder that is, where several may share the state; None where the state lies in
        it.
    """

    base: str
    path: str
    home: str | None = None


@dataclass(frozen=True)
class Claim:
    """One data file named before it lands.

    :param final: its name in the output, relative, with forward slashes.
    :param staged: its name in the staging folder; equal to ``final`` for most writers.
    :param seen: size in bytes and mtime in ns when a file that is not ours was listed for replacement; it is
        removed only while both are unchanged.
    """

    final: str
    staged: str
    seen: tuple[int, int] | None = None


@dataclass(frozen=True)
class Written:
    """One output of one run, as far as the log knows.

    :param kind: the output kind that lands it and takes it back: ``files``, or ``named``, which can't be.
    :param mode: its write mode.
    :param made: how many trailing folders of the output's path this run makes.
    :param folders: partition folders that this run makes, outermost first.
    :param detail: what the kind alone understands.
    :param run: the run that wrote it, where that is not the one it is listed under.
    """

    name: str
    kind: str
    mode: str
    place: Place
    made: int = 0
    claims: tuple[Claim, ...] = ()
    folders: tuple[str, ...] = ()
    detail: Mapping[str, Any] = field(default_factory=dict)
    run: str | None = None


@dataclass(frozen=True)
class Debt:
    """Files still to be removed: of a run that did not get to done, or replaced by one that did.

    :param run: whose name the files carry; None for files that an overwrite listed.
    :param why: ``unfinished`` or ``replaced``.
    :param by: for ``replaced``, the run that replaced them.
    :param proof: for files without a run's name, files of ``by`` that must stand in the same output.
    """

    why: str
    run: str | None
    output: Written
    by: str | None = None
    proof: tuple[str, ...] = ()


@dataclass(frozen=True)
class Holder:
    """The run that holds the lease.

    :param entry: number of its ``acquired`` entry: the key that its heartbeat touches.
    :param owner: who the process is (:mod:`.owner`).
    :param ttl: seconds without a heartbeat after which it may be judged dead.
    :param beat: seconds between heartbeats.
    :param phase: the kind of its last entry.
    """

    run: str
    entry: int
    since: str
    owner: Mapping[str, Any]
    ttl: float
    beat: float
    phase: str
    purpose: str
    recorded: bool = False
    attempt: Mapping[str, Any] | None = None
    config: str | None = None
    over: str | None = None
    outputs: tuple[Written, ...] = ()
    replaces: tuple[Debt, ...] = ()


@dataclass(frozen=True)
class Finished:
    """The run that last committed the batch, and what it landed.

    :param config: digest of the task's config as that run read it.
    """

    run: str
    at: str
    outputs: tuple[Written, ...]
    recorded: bool = False
    attempt: Mapping[str, Any] | None = None
    config: str | None = None


@dataclass(frozen=True)
class Ended:
    """One ended run: ``success``, ``failed``, ``interrupted``, ``refused`` or ``lost``."""

    run: str
    at: str
    outcome: str


@dataclass(frozen=True)
class BatchState:
    """A batch as its log says it is.

    :param number: the last entry that counts, 0 for an empty log.
    :param last: its id.
    :param holder: who holds the lease, None when it is free.
    :param commits: how many runs committed the batch.
    :param runs: how many runs acquired the lease.
    :param debts: what must be removed before anything else.
    :param unclosed: dead runs whose record may still say running.
    :param variables: the batch's variables, as the last run that acquired it had them.
    :param named_by: its ``CONFIG.batch``.
    """

    number: int = 0
    last: str | None = None
    holder: Holder | None = None
    finished: Finished | None = None
    commits: int = 0
    runs: int = 0
    debts: tuple[Debt, ...] = ()
    unclosed: tuple[str, ...] = ()
    history: tuple[Ended, ...] = ()
    variables: Mapping[str, str] = field(default_factory=dict)
    named_by: tuple[str, ...] | None = None

    def outcome_of(self, run: str) -> str | None:
        """How an ended run ended, None when this state does not remember it."""
        return next((e.outcome for e in reversed(self.history) if e.run == run), None)


def to_json(value: Any) -> Any:
    """A state value as JSON: dataclasses as objects, a claim as its name where that says all."""
    if isinstance(value, Claim):
        if value.seen is not None:
            return [value.final, value.staged, list(value.seen)]
        return value.final if value.staged == value.final else [value.final, value.staged]
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: to_json(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if isinstance(value, tuple | list):
        return [to_json(v) for v in value]
    if isinstance(value, Mapping):
        return {k: to_json(v) for k, v in value.items()}
    return value


_LARGEST = 2**63


class Reader:
    """Reads state values back, naming the entry in every refusal.

    :param where: the entry's key.
    """

    def __init__(self, where: str) -> None:
        self.where = where

    def bad(self, what: str) -> StateUnreadable:
        return StateUnreadable(f"the batch's log is damaged: {what}", where=self.where)

    def get(self, source: Any, name: str, kind: type | tuple[type, ...]) -> Any:
        if not isinstance(source, Mapping):
            raise self.bad(f"{name} is missing")
        value = source.get(name)
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            raise self.bad(f"{name} is {type(value).__name__}")
        # Without converting: JSON has integers that no float can hold.
        if isinstance(value, int | float) and not -_LARGEST < value < _LARGEST:
            raise self.bad(f"{name} is a number that no run writes")
        return value

    def text_or_none(self, source: Any, name: str) -> str | None:
        return None if source.get(name) is None else str(self.get(source, name, str))

    def mapping_or_none(self, source: Any, name: str) -> Mapping[str, Any] | None:
        return None if source.get(name) is None else dict(self.get(source, name, dict))

    def texts(self, source: Any, name: str) -> tuple[str, ...]:
        values = self.get(source, name, list)
        if not all(isinstance(v, str) for v in values):
            raise self.bad(f"{name} holds something that is not text")
        return tuple(values)

    def claim(self, source: Any) -> Claim:
        if isinstance(source, str):
            return Claim(source, source)
        match source:
            case [str(final), str(staged)]:
                return Claim(final, staged)
            case [str(final), str(staged), [int(size), int(mtime)]]:
                return Claim(final, staged, (size, mtime))
        raise self.bad("a claim is not a file name")

    def claims(self, source: Any, name: str) -> tuple[Claim, ...]:
        return tuple(self.claim(c) for c in self.get(source, name, list))

    def written(self, source: Any) -> Written:
        place = self.get(source, "place", dict)
        base = self.get(place, "base", str)
        if base not in ("usecase", "root"):
            raise self.bad(f"an output's base is {base[:20]!r}")
        return Written(
            name=self.get(source, "name", str),
            kind=self.get(source, "kind", str),
            mode=self.get(source, "mode", str),
            place=Place(base, self.get(place, "path", str), self.text_or_none(place, "home")),
            made=self.get(source, "made", int),
            claims=self.claims(source, "claims"),
            folders=self.texts(source, "folders"),
            detail=dict(self.get(source, "detail", dict)),
            run=self.text_or_none(source, "run"),
        )

    def writtens(self, source: Any, name: str) -> tuple[Written, ...]:
        return tuple(self.written(w) for w in self.get(source, name, list))

    def debt(self, source: Any) -> Debt:
        why = self.get(source, "why", str)
        if why not in (UNFINISHED, REPLACED):
            raise self.bad(f"a debt is {why[:20]!r}")
        return Debt(
            why=why,
            run=self.text_or_none(source, "run"),
            output=self.written(self.get(source, "output", dict)),
            by=self.text_or_none(source, "by"),
            proof=self.texts(source, "proof"),
        )

    def variables(self, source: Any) -> Mapping[str, str]:
        found = self.get(source, "variables", dict)
        if not all(isinstance(k, str) and isinstance(v, str) for k, v in found.items()):
            raise self.bad("variables hold something that is not text")
        return dict(found)

    def named_by(self, source: Any) -> tuple[str, ...] | None:
        return None if source.get("named_by") is None else self.texts(source, "named_by")

    def debts(self, source: Any, name: str) -> tuple[Debt, ...]:
        return tuple(self.debt(d) for d in self.get(source, name, list))

    def finished(self, source: Any) -> Finished:
        return Finished(
            run=self.get(source, "run", str),
            at=self.get(source, "at", str),
            outputs=self.writtens(source, "outputs"),
            recorded=self.get(source, "recorded", bool),
            attempt=self.mapping_or_none(source, "attempt"),
            config=self.text_or_none(source, "config"),
        )

    def checkpoint(self, source: Any, number: int, last: str) -> BatchState:
        """The state a checkpoint holds: nobody holds the lease in it."""
        return BatchState(
            number=number,
            last=last,
            holder=None,
            finished=None if source.get("finished") is None else self.finished(source["finished"]),
            commits=self.get(source, "commits", int),
            runs=self.get(source, "runs", int),
            debts=self.debts(source, "debts"),
            unclosed=self.texts(source, "unclosed"),
            history=tuple(
                Ended(self.get(e, "run", str), self.get(e, "at", str), self.get(e, "outcome", str))
                for e in self.get(source, "history", list)
            ),
            variables=self.variables(source),
            named_by=self.named_by(source),
        )


_CHECKPOINT = (
    "finished",
    "commits",
    "runs",
    "debts",
    "unclosed",
    "history",
    "variables",
    "named_by",
)


def checkpoint_json(state: BatchState) -> dict[str, Any]:
    """What a checkpoint entry says of a state that nobody holds."""
    return {name: to_json(getattr(state, name)) for name in _CHECKPOINT}
