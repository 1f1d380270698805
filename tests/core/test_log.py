"""The log of a batch: appended to by whoever is first, confirmed, pruned, and read while that goes on."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_ubunye.core.entries import Entry, encode
from airflow_provider_ubunye.core.errors import LeaseLost, StateUnreadable
from airflow_provider_ubunye.core.fold import LogGap
from airflow_provider_ubunye.core.log import BatchLog, Superseded
from airflow_provider_ubunye.core.state import BatchState
from airflow_provider_ubunye.core.store import FileStore
from airflow_provider_ubunye.core.store.base import StoreBroken
from airflow_provider_ubunye.core.testing import MemoryStore, intercepted

A, B, C = "a" * 32, "b" * 32, "c" * 32
PREFIX = "leases/shop/daily/load_orders/08e84f1b8a561918"

Act = Callable[[], Any]


def body(over: str | None = None) -> dict[str, Any]:
    return {
        "owner": {},
        "ttl": 900.0,
        "beat": 30.0,
        "purpose": "run",
        "recorded": False,
        "attempt": None,
        "over": over,
        "variables": {},
        "outputs": [],
    }


SETTLED: dict[str, Any] = {"debts": []}
FAILED: dict[str, Any] = {"debts": [], "outcome": "failed"}


def acquire(log: BatchLog, run: str = A) -> BatchState:
    state = log.read()
    return log.append(state, run, "acquired", body(state.holder.run if state.holder else None))


def finish(log: BatchLog, state: BatchState, run: str = A) -> BatchState:
    state = log.append(state, run, "done", {"named": True})
    return log.append(state, run, "finished", SETTLED)


def logs(count: int) -> list[BatchLog]:
    store = MemoryStore()
    return [BatchLog(store, PREFIX) for _ in range(count)]


class Faulty:
    """A store whose acts a test can meddle with."""

    def __init__(self) -> None:
        self.store = MemoryStore()
        self.calls: list[str] = []
        self.meddle: dict[str, Callable[[tuple[Any, ...], Act], Any]] = {}
        self.log = BatchLog(intercepted(self.store, self._act), PREFIX)

    def _act(self, name: str, args: tuple[Any, ...], act: Act) -> Any:
        self.calls.append(name)
        return self.meddle[name](args, act) if name in self.meddle else act()


# ── append and read ─────────────────────────────────────────────────────────────────────────────


def test_an_empty_log_is_a_batch_that_nobody_ran() -> None:
    (log,) = logs(1)
    assert log.read() == BatchState()
    assert log.where == f"memory/{PREFIX}"


def test_what_is_appended_is_read() -> None:
    (log,) = logs(1)
    state = acquire(log)
    assert log.read() == state
    state = finish(log, state)
    assert log.read() == state
    assert state.finished is not None
    assert log.ends_with(state)


def test_an_append_costs_one_create_and_one_listing() -> None:
    faulty = Faulty()
    state = acquire(faulty.log)
    faulty.calls.clear()
    faulty.log.append(state, A, "writing", {"outputs": []})
    assert faulty.calls == ["create", "list"]


def test_of_two_that_append_after_one_state_the_first_wins() -> None:
    first, second = logs(2)
    state = acquire(first)
    first.append(state, A, "writing", {"outputs": []})
    with pytest.raises(Superseded) as lost:
        second.append(state, B, "acquired", body(A))
    assert isinstance(lost.value, LeaseLost)
    assert second.read().number == 2
    assert not second.ends_with(state)


def test_an_entry_on_top_of_which_another_run_acquired_is_not_this_runs_any_more() -> None:
    faulty = Faulty()
    state = acquire(faulty.log)
    other = BatchLog(faulty.store, PREFIX)

    def taken_over(args: tuple[Any, ...], act: Act) -> Any:
        del faulty.meddle["list"]
        acquire(other, B)
        return act()

    faulty.meddle["list"] = taken_over
    with pytest.raises(Superseded, match="taken over while 'writing' was recorded"):
        faulty.log.append(state, A, "writing", {"outputs": []})


def test_keys_beside_the_log_are_told_and_are_no_entries() -> None:
    (log,) = logs(1)
    state = acquire(log)
    log.store.put(f"{PREFIX}.finished.json", b"{}")
    log.store.put(f"{PREFIX}/notes.txt", b"")
    log.store.put(f"{PREFIX}/x.json", b"")
    assert log.read() == state
    assert log.siblings == {f"{PREFIX}.finished.json"}


def test_an_impossible_step_is_refused_before_it_is_written() -> None:
    (log,) = logs(1)
    state = acquire(log)
    with pytest.raises(StateUnreadable, match="does not hold the lease"):
        log.append(state, B, "done", {"named": True})
    assert log.read() == state


# ── lost answers ────────────────────────────────────────────────────────────────────────────────


def no_answer(times: int, *, made: bool) -> Callable[[tuple[Any, ...], Act], Any]:
    left = [times]

    def create(args: tuple[Any, ...], act: Act) -> Any:
        if not left[0]:
            return act()
        left[0] -= 1
        if made:
            act()
        raise OSError(5, "no answer")

    return create


@pytest.mark.parametrize("made", [True, False])
@pytest.mark.parametrize("times", [1, 4])
def test_an_entry_whose_answer_was_lost_is_found_or_made(times: int, made: bool) -> None:
    faulty = Faulty()
    faulty.meddle["create"] = no_answer(times, made=made)
    state = acquire(faulty.log)
    assert faulty.log.read() == state
    assert [k for k in faulty.store.data if k.startswith(PREFIX)] == [faulty.log.entry_key(1)]


def test_an_entry_without_any_answer_is_looked_for() -> None:
    faulty = Faulty()
    faulty.meddle["create"] = no_answer(5, made=True)
    assert acquire(faulty.log).number == 1


def test_a_store_that_refuses_says_why_once_it_is_sure_that_nothing_was_made() -> None:
    faulty = Faulty()
    faulty.meddle["create"] = no_answer(5, made=False)
    with pytest.raises(OSError, match="no answer"):
        acquire(faulty.log)
    assert faulty.log.read() == BatchState()


def test_a_store_that_does_not_even_say_what_is_there_is_broken() -> None:
    faulty = Faulty()
    state = acquire(faulty.log)
    faulty.meddle["create"] = no_answer(5, made=True)
    faulty.meddle["read"] = no_answer(1, made=False)
    with pytest.raises(StoreBroken, match="while 'writing' was recorded"):
        faulty.log.append(state, A, "writing", {"outputs": []})


def test_a_lost_answer_and_another_runs_entry_there_is_a_lost_race() -> None:
    faulty = Faulty()
    state = acquire(faulty.log)
    other = BatchLog(faulty.store, PREFIX)
    faulty.meddle["create"] = no_answer(5, made=False)
    acquire(other, B)
    with pytest.raises(Superseded, match="another run recorded entry 2"):
        faulty.log.append(state, A, "writing", {"outputs": []})


def test_a_done_whose_answer_was_lost_until_a_taker_pruned_it_counts() -> None:
    faulty = Faulty()
    state = acquire(faulty.log)
    other = BatchLog(faulty.store, PREFIX)

    def pruned(args: tuple[Any, ...], act: Act) -> Any:
        # The second create: the first was made, without an answer.
        del faulty.meddle["create"]
        result = act()
        taken = acquire(other, B)
        taken = other.append(taken, B, "cleaned", SETTLED)
        other.prune(other.append(taken, B, "released", FAILED))
        return result

    def lost(args: tuple[Any, ...], act: Act) -> Any:
        faulty.meddle["create"] = pruned
        act()
        raise OSError(5, "no answer")

    faulty.meddle["create"] = lost
    after = faulty.log.append(state, A, "done", {"named": True})
    assert after.outcome_of(A) == "success"
    assert faulty.log.read().finished is not None


def test_a_done_on_top_of_which_another_run_acquired_counts() -> None:
    faulty = Faulty()
    state = acquire(faulty.log)
    other = BatchLog(faulty.store, PREFIX)

    def taken_over(args: tuple[Any, ...], act: Act) -> Any:
        del faulty.meddle["list"]
        acquire(other, B)
        return act()

    faulty.meddle["list"] = taken_over
    after = faulty.log.append(state, A, "done", {"named": True})
    assert after.holder is not None
    assert (after.holder.run, after.holder.phase) == (A, "done")


# ── pruning ─────────────────────────────────────────────────────────────────────────────────────


def test_a_finished_batch_is_one_entry_that_says_all() -> None:
    (log,) = logs(1)
    state = finish(log, acquire(log))
    log.prune(state)
    assert log.store.list(PREFIX) == [log.entry_key(3)]
    assert log.read() == state
    assert acquire(log, B).number == 4


def test_pruning_takes_the_lowest_first() -> None:
    faulty = Faulty()
    state = finish(faulty.log, acquire(faulty.log))
    gone: list[str] = []
    faulty.meddle["delete"] = lambda args, act: gone.extend(args[0])
    faulty.log.prune(state)
    assert gone == [faulty.log.entry_key(n) for n in (1, 2)]


def test_a_sleeper_on_a_freed_number_loses_and_leaves_nothing() -> None:
    sleeper, taker = logs(2)
    asleep = acquire(sleeper)
    asleep = sleeper.append(asleep, A, "writing", {"outputs": []})
    awake = taker.append(acquire(taker, B), B, "cleaned", SETTLED)
    taker.prune(taker.append(awake, B, "released", FAILED))
    with pytest.raises(Superseded):
        sleeper.append(asleep, A, "claimed", {"outputs": [], "replaces": []})
    assert taker.store.list(PREFIX) == [taker.entry_key(5)]
    assert taker.read().holder is None


def test_a_sleeper_on_the_first_number_loses() -> None:
    sleeper, other = logs(2)
    asleep = sleeper.read()
    other.prune(finish(other, acquire(other, B), B))
    with pytest.raises(Superseded):
        sleeper.append(asleep, A, "acquired", body())
    assert sleeper.read().outcome_of(B) == "success"


def test_a_late_entry_below_the_root_changes_nothing_and_the_next_prune_takes_it() -> None:
    (log,) = logs(1)
    state = finish(log, acquire(log))
    log.prune(state)
    late = Entry(2, "late", "e1", C, "t", "claimed", {"outputs": "nonsense"})
    assert log.store.create(log.entry_key(2), encode(late))
    assert log.read() == state
    log.prune(state)
    assert log.store.list(PREFIX) == [log.entry_key(3)]


def test_a_checkpoint_below_which_somebody_pruned_before_it_was_confirmed_counts() -> None:
    faulty = Faulty()
    state = faulty.log.append(acquire(faulty.log), A, "done", {"named": True})
    other = BatchLog(faulty.store, PREFIX)

    def pruned(args: tuple[Any, ...], act: Act) -> Any:
        del faulty.meddle["list"]
        other.prune(other.read())
        return act()

    faulty.meddle["list"] = pruned
    after = faulty.log.append(state, A, "finished", SETTLED)
    assert after.holder is None
    assert faulty.log.read() == after


# ── reading what changes or is damaged ──────────────────────────────────────────────────────────


def test_a_read_while_the_log_is_pruned_is_done_again() -> None:
    faulty = Faulty()
    state = finish(faulty.log, acquire(faulty.log))
    other = BatchLog(faulty.store, PREFIX)
    other.read()

    def pruned(args: tuple[Any, ...], act: Act) -> Any:
        # Between the listing and the read: the checkpoint goes on, and what was listed goes.
        del faulty.meddle["read"]
        taken = acquire(other, B)
        other.prune(other.append(taken, B, "released", FAILED))
        return act()

    faulty.meddle["read"] = pruned
    now = faulty.log.read()
    assert now.number == state.number + 2
    assert now.finished == state.finished


def test_a_log_that_never_stands_still_is_refused() -> None:
    faulty = Faulty()
    acquire(faulty.log)
    faulty.meddle["read"] = lambda args, act: None
    with pytest.raises(LogGap, match="changes faster than it can be read"):
        faulty.log.read()


def test_a_number_that_stays_missing_is_refused() -> None:
    (log,) = logs(1)
    state = log.append(acquire(log), A, "writing", {"outputs": []})
    log.append(state, A, "claimed", {"outputs": [], "replaces": []})
    log.store.delete([log.entry_key(2)])
    with pytest.raises(LogGap, match="does not follow"):
        log.read()


def test_an_entry_under_another_number_is_refused() -> None:
    (log,) = logs(1)
    acquire(log)
    data = log.store.read(log.entry_key(1))
    assert data is not None
    log.store.delete([log.entry_key(1)])
    log.store.put(log.entry_key(2), data)
    with pytest.raises(LogGap, match="entry 2 says it is entry 1"):
        log.read()


@pytest.mark.parametrize("data", [b"", b'{"format": 1, "nu', json.dumps({"format": 99}).encode()])
def test_an_entry_that_can_not_be_read_is_never_absent(data: bytes) -> None:
    (log,) = logs(1)
    acquire(log)
    log.store.put(log.entry_key(2), data)
    with pytest.raises(StateUnreadable) as refused:
        log.read()
    assert refused.value.where == f"memory/{log.entry_key(2)}"


@pytest.mark.parametrize(
    "name", ["3.json", "²².json", "٠٠٠٠٠٠٠٢.json", "000000002.json", "00000002.json.bak", "00000002.JSON"]
)
def test_a_name_that_no_run_gives_is_no_entry(name: str) -> None:
    (log,) = logs(1)
    state = acquire(log)
    log.store.put(f"{PREFIX}/{name}", b"{}")
    assert log.read() == state
    assert log.ends_with(state)


@pytest.mark.parametrize("inside", [[], ["x"], ["entry/x"]], ids=str)
def test_a_folder_in_the_place_of_an_entry_is_never_taken_for_absent(
    tmp_path: Path, inside: list[str]
) -> None:
    """Not even where it can't be listed: the next append finds the number taken."""
    log = BatchLog(FileStore(tmp_path / "state"), PREFIX)
    state = acquire(log)
    there = tmp_path / "state" / log.entry_key(2)
    there.mkdir()
    for name in inside:
        (there / name).parent.mkdir(exist_ok=True)
        (there / name).write_text("x")
    if inside:
        with pytest.raises(StateUnreadable, match="a folder stands where"):
            log.read()
    with pytest.raises(StateUnreadable, match="a folder stands where") as error:
        log.append(state, A, "writing", {"outputs": []})
    assert error.value.where == str(there)
