"""The fold: one row for each line of its table of states, what it refuses, and that a checkpoint loses nothing."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_ubunye.core.entries import Entry, decode, encode
from airflow_provider_ubunye.core.errors import StateUnreadable
from airflow_provider_ubunye.core.fold import LogGap, fold, step
from airflow_provider_ubunye.core.state import (
    HISTORY,
    REPLACED,
    UNFINISHED,
    BatchState,
    Claim,
    Debt,
    Finished,
    Place,
    Written,
    checkpoint_json,
    to_json,
)

A, B, C = "a" * 32, "b" * 32, "c" * 32
PLACE = Place("usecase", "lake/o")
OUTPUT = Written("o", "files", "append", PLACE)
CLAIMED = replace(OUTPUT, claims=(Claim("part-1.csv", "part-1.csv"),))
OLD = Debt(REPLACED, C, replace(OUTPUT, claims=(Claim("old.csv", "old.csv"),)), by=A)

Step = tuple[str, str, dict[str, Any]]


def acquired(run: str, over: str | None = None, outputs: Sequence[Written] = (OUTPUT,), **more: Any) -> Step:
    body = {
        "owner": {"pid": 1},
        "ttl": 900,
        "beat": 30.0,
        "purpose": "run",
        "recorded": True,
        "attempt": None,
        "over": over,
        "variables": {"dt": "2026-11-01"},
        "outputs": to_json(tuple(outputs)),
        **more,
    }
    return run, "acquired", body


def claimed(run: str, replaces: Sequence[Debt] = ()) -> Step:
    return run, "claimed", {"outputs": to_json((CLAIMED,)), "replaces": to_json(tuple(replaces))}


def done(run: str, *, named: bool = True) -> Step:
    return run, "done", {"named": named}


def settled(run: str, kind: str, debts: Sequence[Debt] = (), **more: Any) -> Step:
    return run, kind, {"debts": to_json(tuple(debts)), **more}


def released(run: str, debts: Sequence[Debt] = (), outcome: str = "failed") -> Step:
    return settled(run, "released", debts, outcome=outcome)


def entries(*steps: Step) -> list[Entry]:
    """A log as a store holds it: numbered, linked, its checkpoints with their state."""
    log: list[Entry] = []
    state = BatchState()
    for run, kind, body in steps:
        number = state.number + 1
        entry = Entry(number, f"e{number}", state.last, run, f"t{number}", kind, body)
        state = replace(step(state, entry), number=number, last=entry.id)
        if state.holder is None:
            entry = replace(entry, body={**body, "state": checkpoint_json(state)})
        log.append(decode(encode(entry), "log"))
    return log


def folded(*steps: Step) -> BatchState:
    return fold(entries(*steps), "log")


STAGED = Debt(UNFINISHED, A, OUTPUT)


# ── the table ───────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("steps", "holder", "finished", "debts", "unclosed"),
    [
        # free: no entry
        ([], None, None, (), ()),
        # free: a checkpoint without debts, no finished run
        ([acquired(A), released(A)], None, None, (), ()),
        # free: a checkpoint without debts, a finished run
        ([acquired(A), claimed(A), done(A), settled(A, "finished")], None, A, (), ()),
        # free: an unnamed batch leaves no finished run
        ([acquired(A), claimed(A), done(A, named=False), settled(A, "finished")], None, None, (), ()),
        # owing: a checkpoint with debts, of a failed run and of a finished one
        ([acquired(A), released(A, [STAGED])], None, None, (STAGED,), ()),
        ([acquired(A), claimed(A), done(A), settled(A, "finished", [OLD])], None, A, (OLD,), ()),
        # held: each phase before done
        ([acquired(A)], (A, "acquired"), None, (), ()),
        (
            [acquired(A, outputs=()), (A, "writing", {"outputs": to_json((OUTPUT,))})],
            (A, "writing"),
            None,
            (),
            (),
        ),
        ([acquired(A), claimed(A)], (A, "claimed"), None, (), ()),
        ([acquired(A), (A, "committing", {"output": "o", "detail": {}})], (A, "committing"), None, (), ()),
        ([acquired(A), (A, "committed", {"output": "o", "detail": {}})], (A, "committed"), None, (), ()),
        # held, acquired over a dead run: its outputs became debts
        (
            [acquired(A), claimed(A), acquired(B, A)],
            (B, "acquired"),
            None,
            (Debt(UNFINISHED, A, CLAIMED),),
            (A,),
        ),
        # held, over a dead run and settled
        ([acquired(A), acquired(B, A), settled(B, "cleaned")], (B, "acquired"), None, (), ()),
        # held, over a taker that died before it settled: the debts pass on
        (
            [acquired(A), claimed(A), acquired(B, A), acquired(C, B)],
            (C, "acquired"),
            None,
            (Debt(UNFINISHED, A, CLAIMED), Debt(UNFINISHED, B, OUTPUT)),
            (A, B),
        ),
        # committed: what it replaced and its staging folder are owed
        ([acquired(A), claimed(A, [OLD]), done(A)], (A, "done"), A, (OLD, STAGED), ()),
        # committed, settled but not ended
        ([acquired(A), claimed(A), done(A), settled(A, "cleaned")], (A, "done"), A, (), ()),
        # committed, and acquired over: finished stays, nothing of it is a dead run's
        ([acquired(A), claimed(A, [OLD]), done(A), acquired(B, A)], (B, "acquired"), A, (OLD, STAGED), (A,)),
    ],
)
def test_state(
    steps: list[Step],
    holder: tuple[str, str] | None,
    finished: str | None,
    debts: tuple[Debt, ...],
    unclosed: tuple[str, ...],
) -> None:
    state = folded(*steps)
    assert (None if state.holder is None else (state.holder.run, state.holder.phase)) == holder
    assert (None if state.finished is None else state.finished.run) == finished
    assert state.debts == debts
    assert state.unclosed == unclosed
    assert state.number == len(steps)


def test_the_next_announcement_of_an_output_replaces_the_first() -> None:
    other = replace(OUTPUT, name="p")
    again = replace(OUTPUT, made=2)
    state = folded(
        acquired(A, outputs=(OUTPUT, other)),
        (A, "writing", {"outputs": to_json((again,))}),
    )
    assert state.holder is not None
    assert state.holder.outputs == (other, again)


def test_a_claim_takes_the_place_of_what_was_announced() -> None:
    other = replace(OUTPUT, name="p")
    state = folded(acquired(A, outputs=(other, OUTPUT)), claimed(A, [OLD]))
    assert state.holder is not None
    assert state.holder.outputs == (other, CLAIMED)
    assert state.holder.replaces == (OLD,)


def test_what_a_commit_of_its_own_says_is_kept_with_its_output() -> None:
    other = replace(OUTPUT, name="p")
    state = folded(
        acquired(A, outputs=(OUTPUT, other)),
        (A, "committing", {"output": "p", "detail": {"version": 3}}),
        (A, "committed", {"output": "p", "detail": {"rows": 7}}),
    )
    assert state.holder is not None
    assert state.holder.outputs[0].detail == {}
    assert state.holder.outputs[1].detail == {"committing": {"version": 3}, "committed": {"rows": 7}}


def test_the_finished_run_is_told_with_what_it_landed() -> None:
    attempt = {"try_number": 2}
    state = folded(acquired(A, attempt=attempt, config="c0ffee"), claimed(A), done(A), settled(A, "finished"))
    assert state.finished == Finished(A, "t3", (CLAIMED,), recorded=True, attempt=attempt, config="c0ffee")
    assert (state.runs, state.commits) == (1, 1)
    assert state.variables == {"dt": "2026-11-01"}


@pytest.mark.parametrize(
    ("steps", "outcome"),
    [
        ([acquired(A), released(A, outcome="refused")], "refused"),
        ([acquired(A), acquired(B, A)], "interrupted"),
        ([acquired(A), done(A)], "success"),
        ([acquired(A), done(A), acquired(B, A), released(B)], "success"),
        ([acquired(A)], None),
    ],
)
def test_how_a_run_ended_is_remembered(steps: list[Step], outcome: str | None) -> None:
    assert folded(*steps).outcome_of(A) == outcome


def test_only_so_many_ended_runs_are_remembered() -> None:
    steps: list[Step] = []
    for number in range(HISTORY + 5):
        run = f"{number:032x}"
        steps += [acquired(run), released(run)]
    state = folded(*steps)
    assert len(state.history) == HISTORY
    assert state.history[-1].run == f"{HISTORY + 4:032x}"
    assert state.runs == HISTORY + 5


def test_what_an_older_ubunye_left_is_taken_in_once() -> None:
    older = {"finished": to_json(Finished("older", "t0", (CLAIMED,))), "debts": to_json((OLD,))}
    state = folded(acquired(A, older=older))
    assert state.finished == Finished("older", "t0", (CLAIMED,))
    assert state.debts == (OLD,)
    nothing = folded(acquired(A, older={"finished": None, "debts": []}))
    assert (nothing.finished, nothing.debts) == (None, ())


# ── what is refused ─────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("steps", "says"),
    [
        ([(A, "writing", {"outputs": []})], "does not hold the lease"),
        ([acquired(A), (B, "writing", {"outputs": []})], "writing by run bbbbbbbbbbbb"),
        ([acquired(A), acquired(B)], "acquired over None, but the lease was with aaaa"),
        ([acquired(A, B)], "but the lease was with nobody"),
        ([acquired(A), acquired(B, C)], "acquired over cccc"),
        ([acquired(A), done(A), (A, "writing", {"outputs": []})], "writing after done"),
        ([acquired(A), done(A), claimed(A)], "claimed after done"),
        ([acquired(A), done(A), done(A)], "done after done"),
        ([acquired(A), done(A), released(A)], "released after done"),
        ([acquired(A), settled(A, "finished")], "finished while the run is acquired"),
        ([acquired(A), acquired(B, A), settled(A, "cleaned")], "does not hold the lease"),
        ([acquired(A, outputs=()), claimed(A)], "which was never announced"),
        ([acquired(A, ttl="900")], "ttl is str"),
        ([acquired(A, recorded=1)], "recorded is int"),
        ([acquired(A, variables={"dt": 1})], "not text"),
        ([acquired(A), (A, "done", {"named": "yes"})], "named is str"),
        ([acquired(A), settled(A, "released")], "outcome is NoneType"),
        ([acquired(A), (A, "cleaned", {})], "debts is NoneType"),
        ([acquired(A), (A, "committed", {"output": "o"})], "detail is NoneType"),
    ],
)
def test_an_entry_that_can_not_be_is_refused(steps: list[Step], says: str) -> None:
    before = entries(*steps[:-1])
    run, kind, body = steps[-1]
    last = before[-1].id if before else None
    forged = Entry(len(steps), "forged", last, run, "t", kind, body)
    with pytest.raises(StateUnreadable, match=says) as refused:
        step(fold(before, "log"), forged, "log")
    assert not isinstance(refused.value, LogGap)
    assert refused.value.where == f"log/{len(steps)}"


def test_a_missing_number_is_a_gap() -> None:
    log = entries(acquired(A), claimed(A), done(A))
    for missing in (0, 1):
        with pytest.raises(LogGap, match="does not follow"):
            fold(log[:missing] + log[missing + 1 :], "log")


def test_an_entry_that_names_another_predecessor_is_a_gap() -> None:
    log = entries(acquired(A), claimed(A))
    with pytest.raises(LogGap):
        fold([log[0], replace(log[1], previous="someone else's")], "log")
    with pytest.raises(LogGap):
        fold([replace(log[0], previous="x")], "log")


def test_two_entries_of_one_number_are_a_gap() -> None:
    log = entries(acquired(A), claimed(A))
    with pytest.raises(LogGap):
        fold([*log, replace(log[1], id="other")], "log")


def test_a_checkpoint_without_its_state_is_refused() -> None:
    log = entries(acquired(A), released(A))
    bare = replace(log[1], body={k: v for k, v in log[1].body.items() if k != "state"})
    with pytest.raises(StateUnreadable, match="state is NoneType"):
        fold([bare], "log")


# ── below the root ──────────────────────────────────────────────────────────────────────────────


def test_whatever_stands_below_the_highest_checkpoint_is_ignored() -> None:
    log = entries(
        acquired(A), released(A), acquired(B), claimed(B), done(B), settled(B, "finished"), acquired(C)
    )
    state = fold(log, "log")
    late = Entry(3, "late", "e2", A, "t", "claimed", {"outputs": "nonsense"})
    assert fold([*log[5:], late], "log") == state
    assert fold(log[5:], "log") == state
    assert fold([log[1], *log[5:]], "log") == state


def test_the_order_in_which_entries_are_read_does_not_matter() -> None:
    log = entries(acquired(A), claimed(A), done(A), settled(A, "finished"), acquired(B))
    assert fold(log[::-1], "log") == fold(log, "log")


# ── a checkpoint is the log ─────────────────────────────────────────────────────────────────────


@st.composite
def logs(draw: st.DrawFn) -> list[Step]:
    """Any log that runs can write: who acts next and what it does is drawn among what may happen."""
    steps: list[Step] = []
    state = BatchState()
    for number in range(draw(st.integers(1, 14))):
        holder = state.holder
        run = f"{number:032x}"
        options = [acquired(run, holder.run if holder else None)]
        if holder is not None:
            owed = state.debts[: draw(st.integers(0, len(state.debts)))]
            options.append(settled(holder.run, "cleaned", owed))
            if holder.phase == "done":
                options.append(settled(holder.run, "finished", owed))
            else:
                options += [
                    (holder.run, "writing", {"outputs": to_json((OUTPUT,))}),
                    claimed(holder.run, [replace(OLD, by=holder.run)]),
                    (holder.run, "committing", {"output": "o", "detail": {"n": number}}),
                    done(holder.run, named=draw(st.booleans())),
                    released(holder.run, owed),
                ]
        chosen = draw(st.sampled_from(options))
        steps.append(chosen)
        state = replace(
            step(
                state,
                Entry(number + 1, f"e{number + 1}", state.last, chosen[0], f"t{number + 1}", *chosen[1:]),
            ),
            number=number + 1,
            last=f"e{number + 1}",
        )
    return steps


@given(logs())
def test_a_checkpoint_says_what_the_whole_log_says(steps: list[Step]) -> None:
    log = entries(*steps)
    whole = BatchState()
    for entry in log:
        whole = replace(step(whole, entry), number=entry.number, last=entry.id)
    read = fold(log, "log")
    assert json.dumps(to_json(read)) == json.dumps(to_json(whole))
    if whole.holder is not None:
        assert read == whole
