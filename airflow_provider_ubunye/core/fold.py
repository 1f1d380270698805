"""The fold: a batch's state as a pure function of its log (contract, invariants 1 to 3 and 6).

=============  ==========================================  ================================================
state          evidence                                    what the next run does
=============  ==========================================  ================================================
free           no entry, or a checkpoint without debts     acquires; refuses first if ``finished`` is set
               or finished run                             and the task appends
owing          a checkpoint with debts                     acquires, settles the debts, then as free
held           a holder whose phase is before ``done``     refuses while it lives; else acquires over it:
                                                           its outputs become debts
committed      a holder whose phase is ``done``            refuses while it lives; else acquires over it
                                                           and finishes what it left, then as free
unreadable     an entry that can't be read, or a gap       refuses and names it
=============  ==========================================  ================================================

The highest checkpoint is the root: whatever stands below it is pruned or will be, and an entry that a run
wrote there late, on a number freed by pruning, does not count. Above it every number must be there and
name its predecessor. A run that slept through takeover, finish and prune thus finds itself below the root.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from airflow_provider_ubunye.core.entries import CHECKPOINTS, Entry
from airflow_provider_ubunye.core.errors import StateUnreadable
from airflow_provider_ubunye.core.state import (
    HISTORY,
    UNFINISHED,
    BatchState,
    Claim,
    Debt,
    Ended,
    Finished,
    Holder,
    Reader,
    Written,
)


class LogGap(StateUnreadable):
    """A number is missing: the log was read while it was being pruned, or it was damaged."""


def fold(entries: Iterable[Entry], where: str) -> BatchState:
    """The state that a log says.

    :param entries: every entry that was read, in any order; those below the root are ignored.
    :param where: the log's name, for messages.
    :raises LogGap: a number is missing, or an entry doesn't name its predecessor.
    :raises StateUnreadable: an entry says something that can't be.
    """
    ordered = sorted(entries, key=lambda e: e.number)
    root = max((i for i, e in enumerate(ordered) if e.kind in CHECKPOINTS), default=None)
    state = BatchState()
    if root is not None:
        state = _checkpoint(ordered[root], where)
        ordered = ordered[root + 1 :]
    for entry in ordered:
        if entry.number != state.number + 1 or entry.previous != state.last:
            raise LogGap(
                f"entry {entry.number} of the batch's log does not follow entry {state.number}", where=where
            )
        state = replace(step(state, entry, where), number=entry.number, last=entry.id)
    return state


def _checkpoint(entry: Entry, where: str) -> BatchState:
    reader = Reader(f"{where}/{entry.number}")
    return reader.checkpoint(reader.get(entry.body, "state", dict), entry.number, entry.id)


def step(state: BatchState, entry: Entry, where: str = "") -> BatchState:
    """The state after one more entry. A checkpoint's own ``state`` is what this gives, so both agree."""
    reader = Reader(f"{where}/{entry.number}")
    if entry.kind == "acquired":
        return _acquired(state, entry, reader)
    holder = state.holder
    if holder is None or holder.run != entry.run:
        raise reader.bad(f"{entry.kind} by run {entry.run[:12]}, which does not hold the lease")
    if holder.phase == "done" and entry.kind not in ("cleaned", "finished"):
        raise reader.bad(f"{entry.kind} after done")
    match entry.kind:
        case "writing":
            announced = reader.writtens(entry.body, "outputs")
            known = {o.name for o in announced}
            kept = tuple(o for o in holder.outputs if o.name not in known)
            holder = replace(holder, outputs=kept + announced)
        case "claimed":
            claimed = {o.name: o for o in reader.writtens(entry.body, "outputs")}
            if unknown := claimed.keys() - {o.name for o in holder.outputs}:
                raise reader.bad(f"claims for {sorted(unknown)}, which was never announced")
            holder = replace(
                holder,
                outputs=tuple(claimed.get(o.name, o) for o in holder.outputs),
                replaces=reader.debts(entry.body, "replaces"),
            )
        case "committing" | "committed":
            name = reader.get(entry.body, "output", str)
            detail: dict[str, Any] = {entry.kind: dict(reader.get(entry.body, "detail", dict))}
            holder = replace(
                holder,
                outputs=tuple(
                    replace(o, detail={**o.detail, **detail}) if o.name == name else o for o in holder.outputs
                ),
            )
        case "done":
            return _done(state, holder, entry, reader)
        case "cleaned":
            unclosed = reader.texts(entry.body, "unclosed") if "unclosed" in entry.body else ()
            state = replace(state, debts=reader.debts(entry.body, "debts"), unclosed=unclosed)
            return replace(state, holder=holder)
        case _:  # finished, released
            return _ended(state, entry, reader)
    return replace(state, holder=replace(holder, phase=entry.kind))


def _acquired(state: BatchState, entry: Entry, reader: Reader) -> BatchState:
    dead = state.holder
    over = reader.text_or_none(entry.body, "over")
    if (dead.run if dead else None) != over:
        raise reader.bad(f"acquired over {over}, but the lease was with {dead.run if dead else 'nobody'}")
    if dead is not None:
        state = replace(state, unclosed=(*state.unclosed, dead.run))
        if dead.phase != "done":
            debts = tuple(Debt(UNFINISHED, dead.run, output) for output in dead.outputs)
            state = replace(state, debts=state.debts + debts)
            state = _remember(state, dead.run, entry.at, "interrupted")
    # What an older Ubunye, or an earlier spelling of the batch, left: taken in once, by the run that found it.
    older = entry.body.get("older")
    if isinstance(older, Mapping):
        state = replace(state, debts=state.debts + reader.debts(older, "debts"))
        if older.get("finished") is not None:
            state = replace(state, finished=reader.finished(older["finished"]))
    holder = Holder(
        run=entry.run,
        entry=entry.number,
        since=entry.at,
        owner=dict(reader.get(entry.body, "owner", dict)),
        ttl=float(reader.get(entry.body, "ttl", (int, float))),
        beat=float(reader.get(entry.body, "beat", (int, float))),
        phase="acquired",
        purpose=reader.get(entry.body, "purpose", str),
        recorded=reader.get(entry.body, "recorded", bool),
        attempt=reader.mapping_or_none(entry.body, "attempt"),
        config=reader.text_or_none(entry.body, "config"),
        over=over,
        outputs=reader.writtens(entry.body, "outputs"),
    )
    return replace(
        state,
        holder=holder,
        runs=state.runs + 1,
        variables=reader.variables(entry.body),
        named_by=reader.named_by(entry.body),
    )


def _done(state: BatchState, holder: Holder, entry: Entry, reader: Reader) -> BatchState:
    finished = None
    if reader.get(entry.body, "named", bool):
        finished = Finished(
            holder.run,
            entry.at,
            holder.outputs + _still_there(state.finished, holder),
            holder.recorded,
            holder.attempt,
            holder.config,
        )
    # The staging folders are debts too: they go after done, and an entry says when they are gone.
    staged = tuple(Debt(UNFINISHED, holder.run, _only_staging(o)) for o in holder.outputs)
    state = replace(
        state,
        holder=replace(holder, phase="done"),
        finished=finished,
        commits=state.commits + 1,
        debts=state.debts + holder.replaces + staged,
    )
    return _remember(state, holder.run, entry.at, "success")


def _still_there(earlier: Finished | None, holder: Holder) -> tuple[Written, ...]:
    """What an earlier run of the batch landed and this one did not replace: a later rerun owes it all the same."""
    if earlier is None:
        return ()
    # Here: looking at leases folds logs too, pays for each import, and hardly ever gets here.
    from airflow_provider_ubunye.core.specs import OVERWRITE, OVERWRITE_PARTITIONS

    gone = {(debt.output.place, claim.final) for debt in holder.replaces for claim in debt.output.claims}
    whole = {o.place for o in holder.outputs if o.mode == OVERWRITE}
    parts = {
        (o.place, _folder(claim))
        for o in holder.outputs
        if o.mode == OVERWRITE_PARTITIONS
        for claim in o.claims
    }
    kept = []
    for output in earlier.outputs:
        claims = tuple(
            claim
            for claim in output.claims
            if output.place not in whole
            and (output.place, claim.final) not in gone
            and (output.place, _folder(claim)) not in parts
        )
        if claims:
            kept.append(replace(output, claims=claims, run=output.run or earlier.run))
    return tuple(kept)


def _folder(claim: Claim) -> str:
    return claim.final.rpartition("/")[0]


def _only_staging(output: Written) -> Written:
    """The output without its claims, so that settling the debt removes its staging folder alone."""
    return replace(output, claims=(), folders=(), made=0)


def _ended(state: BatchState, entry: Entry, reader: Reader) -> BatchState:
    holder = state.holder
    assert holder is not None  # step() checked it
    done = holder.phase == "done"
    if done != (entry.kind == "finished"):
        raise reader.bad(f"{entry.kind} while the run is {holder.phase}")
    unclosed = reader.texts(entry.body, "unclosed") if "unclosed" in entry.body else ()
    state = replace(state, holder=None, debts=reader.debts(entry.body, "debts"), unclosed=unclosed)
    if done:
        return state
    return _remember(state, holder.run, entry.at, reader.get(entry.body, "outcome", str))


def _remember(state: BatchState, run: str, at: str, outcome: str) -> BatchState:
    return replace(state, history=(*state.history, Ended(run, at, outcome))[-HISTORY:])
