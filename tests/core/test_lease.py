"""Taking, keeping and losing a lease: on a folder, with a disk that answers EIO and clocks that are off."""

from __future__ import annotations

import dataclasses
import errno
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_ubunye.core.errors import (
    LeaseLost,
    NeedsPerson,
    RunLeaseHeld,
    StateUnreadable,
    UsageError,
)
from airflow_provider_ubunye.core.judge import Verdict
from airflow_provider_ubunye.core.lease import LONGEST_BEAT, LOST_AT, Lease, Watch, beat_of, boot_clock
from airflow_provider_ubunye.core.log import BatchLog
from airflow_provider_ubunye.core.owner import this_process
from airflow_provider_ubunye.core.run import Run
from airflow_provider_ubunye.core.state import BatchState, Holder
from airflow_provider_ubunye.core.store import BatchStore, FileStore, MemoryStore
from airflow_provider_ubunye.core.store.base import StoreBroken, StoreFailed
from airflow_provider_ubunye.core.testing import FakeClock, intercepted
from tests.core.kit import OLD, Shop, dead_owner, elsewhere

RUN = "a" * 32
OTHER = "b" * 32
TTL = 30.0


def acquired(ttl: float = TTL, beat: float | None = None, **changes: Any) -> dict[str, Any]:
    """The body of an entry that takes a lease."""
    return {
        "owner": this_process().to_json(),
        "ttl": ttl,
        "beat": beat_of(ttl) if beat is None else beat,
        "purpose": "run",
        "recorded": False,
        "variables": {},
        "outputs": [],
        **changes,
    }


def take(log: BatchLog, run: str = RUN, *, clock: Callable[[], float] = boot_clock, **changes: Any) -> Lease:
    state = log.read()
    over = state.holder.run if state.holder else None
    body = acquired(over=over, **changes)
    return Lease(log, run, log.append(state, run, "acquired", body), clock=clock)


class Faults:
    """A store that wraps a real one and raises: ``fail`` says for which acts, and how often still."""

    def __init__(self, store: BatchStore, code: int = errno.EIO) -> None:
        self.left: dict[str, int] = {}
        self.calls: list[str] = []
        self.after: set[str] = set()
        """Acts that are carried out before they raise: their answer is lost."""
        self._code = code
        self.store = intercepted(store, self._act)

    def fail(self, act: str, times: int = 10**9, *, after: bool = False) -> None:
        self.left[act] = times
        if after:
            self.after.add(act)

    def heal(self) -> None:
        self.left.clear()

    def _act(self, name: str, args: tuple[Any, ...], act: Callable[[], Any]) -> Any:
        self.calls.append(name)
        if self.left.get(name, 0) > 0:
            self.left[name] -= 1
            if name in self.after:
                act()
            raise OSError(self._code, os.strerror(self._code))
        return act()


@pytest.fixture
def log(tmp_path: Path) -> BatchLog:
    return BatchLog(FileStore(tmp_path / "state"), "leases/shop/daily/load_orders/08e84f1b8a561918")


def holder_of(state: BatchState) -> Holder:
    assert state.holder is not None
    return state.holder


# ── keeping it ──────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("code", [errno.EIO, errno.ESTALE])
@pytest.mark.parametrize("act", ["beat", "list", "read"])
def test_one_bad_heartbeat_is_survived(log: BatchLog, act: str, code: int) -> None:
    """Field case 5, first half."""
    clock = FakeClock()
    faults = Faults(log.store, code)
    lease = take(BatchLog(faults.store, log.prefix), clock=clock)
    faults.fail(act, 1)
    clock.advance(beat_of(TTL))
    with pytest.raises(OSError, match=os.strerror(code)):
        lease.refresh()
    lease.check()
    clock.advance(beat_of(TTL))
    lease.refresh()
    clock.advance(TTL * LOST_AT)
    lease.check()
    assert not lease.lost


def test_errors_for_longer_than_two_thirds_of_its_life_end_the_run_before_others_may_take_it(
    log: BatchLog,
) -> None:
    """Field case 5, second half: it stops itself while it is still too young to be taken."""
    clock = FakeClock()
    faults = Faults(log.store)
    lease = take(BatchLog(faults.store, log.prefix), clock=clock)
    faults.fail("beat")
    while clock.now <= 1_000_000 + TTL * LOST_AT:
        lease.check()
        with pytest.raises(OSError, match="error"):
            lease.refresh()
        clock.advance(beat_of(TTL))
    with pytest.raises(LeaseLost, match="could not be refreshed for") as error:
        lease.check()
    assert clock.now - 1_000_000 < TTL
    assert error.value.exit_code == 4
    assert error.value.hint is not None
    with pytest.raises(LeaseLost):
        lease.append("done", {"named": True})
    assert log.read().number == 1
    # It stays lost, whatever the store does later.
    faults.heal()
    lease.refresh()
    assert lease.lost


def test_a_thread_beats_and_calls_once_when_the_lease_is_lost(log: BatchLog) -> None:
    faults = Faults(log.store)
    lease = take(BatchLog(faults.store, log.prefix), ttl=0.6, beat=0.02)
    called = threading.Event()
    times: list[int] = []

    def lost() -> None:
        times.append(1)
        called.set()

    lease.on_lost(lost)
    with lease.kept_alive():
        first = log.store.age(log.entry_key(1))
        assert first is not None
        faults.fail("beat")
        assert called.wait(10)
        assert lease.lost
    assert times == [1]
    with pytest.raises(LeaseLost):
        lease.check()


def test_the_thread_notices_a_takeover(log: BatchLog) -> None:
    lease = take(log, ttl=60, beat=0.02)
    called = threading.Event()
    lease.on_lost(called.set)
    with lease.kept_alive():
        take(BatchLog(FileStore(log.store.where), log.prefix), OTHER)
        assert called.wait(10)
    with pytest.raises(LeaseLost, match=r"run bbbbbbbb took the batch over"):
        lease.check()


def test_a_lease_lost_without_anybody_to_tell(log: BatchLog) -> None:
    lease = take(log, ttl=60, beat=0.01)
    with lease.kept_alive():
        take(BatchLog(log.store, log.prefix), OTHER)
        end = time.monotonic() + 10
        while not lease.lost and time.monotonic() < end:
            time.sleep(0.005)
    assert lease.lost


def test_the_thread_survives_passing_errors_and_an_entry_it_can_not_read(log: BatchLog) -> None:
    faults = Faults(log.store)
    lease = take(BatchLog(faults.store, log.prefix), ttl=60, beat=0.01)
    faults.fail("beat", 3)
    with lease.kept_alive():
        end = time.monotonic() + 10
        while faults.calls.count("beat") < 5 and time.monotonic() < end:
            time.sleep(0.005)
    assert faults.calls.count("beat") >= 5
    assert not lease.lost


def test_a_beat_after_the_run_ended_changes_nothing(log: BatchLog) -> None:
    lease = take(log)
    lease.append("released", {"outcome": "failed", "debts": []})
    log.prune(lease.state)
    lease.refresh()
    assert not lease.lost


def test_an_entry_that_was_pruned_away_is_a_lost_lease(log: BatchLog) -> None:
    sleeper = take(log)
    other = take(BatchLog(log.store, log.prefix), OTHER)
    other.append("released", {"outcome": "failed", "debts": []})
    log.prune(other.state)
    with pytest.raises(LeaseLost, match="pruned"):
        sleeper.refresh()
    with pytest.raises(LeaseLost):
        sleeper.append("done", {"named": True})
    assert log.read().number == 3


def test_a_beat_keeps_the_lease_young_by_the_stores_own_clock(log: BatchLog) -> None:
    lease = take(log)
    entry = log.entry_key(1)
    os.utime(Path(log.store.where, entry), (OLD, OLD))
    old = log.store.age(entry)
    assert old is not None
    assert old > 1e6
    lease.refresh()
    young = log.store.age(entry)
    assert young is not None
    assert abs(young) < 60


# ── losing a run in the middle ──────────────────────────────────────────────────────────────────


def test_a_store_that_answers_nothing_for_too_long_stops_the_run(shop: Shop) -> None:
    """Field case 5 through a whole run: the heartbeat interrupts it, and it is no success."""
    faults = Faults(shop.store())

    def outlive(run: Run) -> None:
        faults.fail("beat")
        end = time.monotonic() + 20
        while time.monotonic() < end:
            time.sleep(0.01)

    with pytest.raises(LeaseLost, match="could not be refreshed"):
        shop.run(setting=shop.setting(store=faults.store), ttl=0.9, meanwhile=outlive)
    assert shop.files() == []
    state = BatchLog(shop.store(), f"leases/{shop.batch().task}/{shop.batch().key}").read()
    assert state.finished is None
    again = shop.run()
    assert again is not None
    assert shop.rows() == ["1"]
    assert shop.debris() == []


def test_blocked_in_c_for_longer_than_its_life(shop: Shop) -> None:
    """Field case 7: no heartbeat, no Python at all; meanwhile another place takes over and finishes."""
    entered = threading.Event()

    def block(run: Run) -> None:
        # What the heartbeat's thread sees of a call that holds the interpreter: nothing, then all at once.
        run._lease.on_lost(None)
        run._alive.close()
        run._lease._fresh -= 3600
        os.utime(shop.log_files()[0], (OLD, OLD))
        other = shop.setting(owner=elsewhere(), is_alive=lambda owner: False)
        done = shop.run({"": "of the other"}, setting=other)
        assert done is not None
        assert done.over == run.id
        entered.set()

    with pytest.raises(LeaseLost):
        shop.run({"": "of the sleeper"}, setting=shop.setting(owner=this_process()), ttl=1.5, meanwhile=block)
    assert entered.is_set()
    assert shop.rows() == ["of the other"]
    assert shop.debris() == []


# ── judging ─────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("off", [-7200.0, 0.0, 7200.0])
def test_a_client_clock_that_is_off_changes_no_decision(
    log: BatchLog, off: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Field case 8: the age is the store's own, the watch is the judge's own; no two clocks are compared."""
    take(log, ttl=600, owner=elsewhere().to_json())
    real = time.time
    monkeypatch.setattr(time, "time", lambda: real() + off)
    judge = FakeClock(real() + off)
    watch = Watch(log, this_process(), clock=judge)
    holder = holder_of(log.read())
    assert watch.look(holder)[0] is Verdict.ALIVE
    os.utime(Path(log.store.where, log.entry_key(1)), (real() - 601, real() - 601))
    assert watch.look(holder)[0] is Verdict.UNKNOWN
    judge.advance(beat_of(600) + log.store.caching)
    assert watch.look(holder)[0] is Verdict.UNKNOWN, "the beat it saw first was another one"


def test_a_silent_holder_elsewhere_is_dead_once_it_was_watched_for_a_beat_and_the_caching_time() -> None:
    store_clock, judge = FakeClock(), FakeClock(5.0)
    store = MemoryStore(store_clock)
    store._caching = 60.0
    log = BatchLog(store, "leases/t")
    take(log, ttl=600, owner=elsewhere().to_json())
    holder = holder_of(log.read())
    watch = Watch(log, this_process(), clock=judge)

    def pass_by(seconds: float) -> None:
        store_clock.advance(seconds)
        judge.advance(seconds)

    pass_by(601)
    assert watch.look(holder)[0] is Verdict.UNKNOWN
    pass_by(79)
    assert watch.look(holder)[0] is Verdict.UNKNOWN
    pass_by(1)
    assert watch.look(holder)[0] is Verdict.DEAD
    store.beat(log.entry_key(1))
    assert watch.look(holder)[0] is Verdict.ALIVE
    pass_by(601)
    assert watch.look(holder)[0] is Verdict.DEAD, "it watched the same beat all the while"


def test_a_heartbeat_in_the_future_is_never_taken_for_a_young_one() -> None:
    """Field case 8: the store's clock was set back. Only the judge's own watch counts then."""
    store_clock, judge = FakeClock(), FakeClock(0.0)
    store = MemoryStore(store_clock)
    log = BatchLog(store, "leases/t")
    take(log, ttl=600, owner=elsewhere().to_json())
    holder = holder_of(log.read())
    store_clock.advance(-7200)
    watch = Watch(log, this_process(), clock=judge)
    seen = []
    for _ in range(63):
        seen.append(watch.look(holder)[0])
        store_clock.advance(10)
        judge.advance(10)
    assert seen[:62] == [Verdict.UNKNOWN] * 62
    assert seen[62] is Verdict.DEAD


def test_a_holder_whose_heartbeat_is_gone_is_watched_for_its_whole_life() -> None:
    judge = FakeClock(0.0)
    log = BatchLog(MemoryStore(), "leases/t")
    take(log, ttl=600, owner=elsewhere().to_json())
    holder = holder_of(log.read())
    log.store.delete([log.entry_key(1)])
    watch = Watch(log, this_process(), clock=judge)
    verdict, evidence = watch.look(holder)
    assert (verdict, evidence.age) == (Verdict.UNKNOWN, None)
    judge.advance(600 + beat_of(600))
    assert watch.look(holder)[0] is Verdict.DEAD


def test_another_holder_is_watched_anew() -> None:
    store_clock, judge = FakeClock(), FakeClock(0.0)
    store = MemoryStore(store_clock)
    log = BatchLog(store, "leases/t")
    take(log, ttl=600, owner=elsewhere().to_json())
    watch = Watch(log, this_process(), clock=judge)
    for clock in (store_clock, judge):
        clock.advance(700)
    assert watch.look(holder_of(log.read()))[0] is Verdict.UNKNOWN
    for clock in (store_clock, judge):
        clock.advance(700)
    take(BatchLog(store, "leases/t"), OTHER, owner=elsewhere().to_json(), ttl=600)
    for clock in (store_clock, judge):
        clock.advance(700)
    assert watch.look(holder_of(log.read()))[0] is Verdict.UNKNOWN


def test_a_process_of_this_place_is_asked_for_and_its_beat_is_not(log: BatchLog) -> None:
    take(log, owner=dead_owner().to_json())
    verdict, evidence = Watch(log, this_process()).look(holder_of(log.read()))
    assert (verdict, evidence.process, evidence.age) == (Verdict.DEAD, False, None)


@pytest.mark.parametrize("ttl", [0, -1, float("inf"), float("nan")])
def test_a_time_to_takeover_is_a_positive_number(ttl: float) -> None:
    with pytest.raises(UsageError):
        beat_of(ttl)


def test_a_beat_is_a_thirtieth_of_the_ttl_and_at_most_thirty_seconds() -> None:
    assert beat_of(900) == 30
    assert beat_of(90) == 3
    assert beat_of(86400) == 30


def test_without_a_boot_clock_the_monotonic_one_does(monkeypatch: pytest.MonkeyPatch) -> None:
    assert boot_clock() > 0
    monkeypatch.delattr(time, "CLOCK_BOOTTIME")
    assert abs(boot_clock() - time.monotonic()) < 60


# ── appends whose answer is lost ────────────────────────────────────────────────────────────────


def test_the_lost_answer_of_an_append_is_found_out(log: BatchLog) -> None:
    """Field case 10: the store did it, said EIO, and is asked again."""
    faults = Faults(log.store)
    lease = take(BatchLog(faults.store, log.prefix))
    faults.fail("create", 1, after=True)
    lease.append("writing", {"outputs": []})
    assert lease.state.number == 2
    faults.fail("create", 5, after=True)
    lease.append("claimed", {"outputs": [], "replaces": []})
    assert log.read().number == 3


def test_the_lost_answer_of_an_acquisition_is_found_out(shop: Shop) -> None:
    """Field case 10: acquired, by reading its own entry back."""
    faults = Faults(shop.store())
    faults.fail("create", 1, after=True)
    done = shop.run(setting=shop.setting(store=faults.store))
    assert done is not None
    assert shop.rows() == ["1"]


def test_a_store_that_refuses_an_append_is_one_line(log: BatchLog) -> None:
    faults = Faults(log.store, errno.ENOSPC)
    lease = take(BatchLog(faults.store, log.prefix))
    faults.fail("create")
    with pytest.raises(StoreFailed, match="'writing' of run aaaaaaaa could not be recorded") as error:
        lease.append("writing", {"outputs": []})
    assert "\n" not in error.value.what
    assert log.read().number == 1


def test_doubt_about_an_unanswered_append_ends_by_finding_it(log: BatchLog) -> None:
    faults = Faults(log.store)
    lease = take(BatchLog(faults.store, log.prefix))
    faults.fail("create", after=True)
    faults.fail("read")
    with pytest.raises(StoreBroken) as error:
        lease.append("done", {"named": True})
    assert isinstance(error.value, NeedsPerson)
    with pytest.raises(OSError, match="error"):
        lease.end_doubt()
    faults.heal()
    lease.end_doubt()
    assert holder_of(lease.state).phase == "done"
    assert lease.state.number == 2


def test_doubt_about_an_unanswered_append_ends_by_taking_its_number(log: BatchLog) -> None:
    """The create may still be under way: its number is taken, so it can't count any more."""
    faults = Faults(log.store)
    lease = take(BatchLog(faults.store, log.prefix))
    faults.fail("create")
    faults.fail("read")
    with pytest.raises(StoreBroken):
        lease.append("done", {"named": True})
    faults.heal()
    lease.end_doubt()
    assert lease.state.number == 2
    assert holder_of(lease.state).phase == "acquired", "an entry that changes nothing"
    assert not log.store.create(log.entry_key(2), b"late")


def test_without_doubt_nothing_is_asked(log: BatchLog) -> None:
    faults = Faults(log.store)
    lease = take(BatchLog(faults.store, log.prefix))
    faults.calls.clear()
    lease.end_doubt()
    assert faults.calls == []


# ── a lease that died early ─────────────────────────────────────────────────────────────────────


def test_killed_between_taking_the_lease_and_the_first_heartbeat(shop: Shop) -> None:
    """Field case 4, on this machine: at once."""
    shop.die("make_folder")
    assert len(shop.log_files()) == 1
    done = shop.run()
    assert done is not None
    assert done.over is not None
    assert shop.rows() == ["1"]


def test_killed_elsewhere_before_the_first_heartbeat(shop: Shop) -> None:
    """Field case 4, on another machine: a sentence until the set age, then over."""
    shop.die("make_folder", owner=elsewhere(), ttl=5.0)
    with pytest.raises(RunLeaseHeld, match="last heartbeat") as error:
        shop.run()
    assert error.value.hint is not None
    assert "silent for 5 s" in error.value.hint
    os.utime(shop.log_files()[0], (OLD, OLD))
    done = shop.run()
    assert done is not None
    assert done.over is not None
    assert shop.rows() == ["1"]


@pytest.mark.parametrize("content", [b"", b'{"format": 1, "num', b"[]", b"null", b"\xff\xfe"])
def test_a_torn_entry_refuses_in_a_sentence_and_is_never_taken_for_absent(shop: Shop, content: bytes) -> None:
    """No create of ours leaves one: something else damaged it."""
    folder = shop.state / "leases" / shop.batch().task / shop.batch().key
    folder.mkdir(parents=True)
    (folder / "00000001.json").write_bytes(content)
    with pytest.raises(StateUnreadable, match="log entry") as error:
        shop.run()
    assert error.value.exit_code == 5
    assert "00000001.json" in str(error.value.where)
    assert shop.files() == []


def in_doubt(log: BatchLog) -> tuple[Faults, Lease, bytes]:
    """A lease whose ``done`` was neither answered nor found; the entry may still be under way."""
    faults = Faults(log.store)
    lease = take(BatchLog(faults.store, log.prefix))
    faults.fail("create", after=True)
    faults.fail("read")
    with pytest.raises(StoreBroken):
        lease.append("done", {"named": True})
    data = log.store.read(log.entry_key(2))
    assert data is not None
    log.store.delete([log.entry_key(2)])
    faults.heal()
    return faults, lease, data


def test_doubt_ends_with_the_entry_that_arrives_while_its_number_is_taken(log: BatchLog) -> None:
    _, lease, late = in_doubt(log)
    arrived: list[str] = []

    def arrive(name: str, args: tuple[Any, ...], act: Callable[[], Any]) -> Any:
        if name == "create" and not arrived:
            arrived.append(args[0])
            assert log.store.create(args[0], late)
        return act()

    lease.log = BatchLog(intercepted(log.store, arrive), log.prefix)
    lease.end_doubt()
    assert arrived == [log.entry_key(2)]
    assert (lease.state.number, holder_of(lease.state).phase, lease.lost) == (2, "done", False)


def test_doubt_ends_with_a_takeover(log: BatchLog) -> None:
    _, lease, _ = in_doubt(log)
    take(BatchLog(log.store, log.prefix), OTHER)
    with pytest.raises(LeaseLost, match=r"run bbbbbbbb took the batch over"):
        lease.end_doubt()
    assert not lease.committed


def test_doubt_that_never_ends_is_a_lost_lease(log: BatchLog) -> None:
    _, lease, _ = in_doubt(log)

    def lose(name: str, args: tuple[Any, ...], act: Callable[[], Any]) -> Any:
        return False if name == "create" else act()

    lease.log = BatchLog(intercepted(log.store, lose), log.prefix)
    with pytest.raises(LeaseLost, match="faster than it can be read"):
        lease.end_doubt()


def test_a_beat_that_no_run_has_does_not_make_the_watch_endless() -> None:
    log = BatchLog(MemoryStore(FakeClock()), "leases/t")
    take(log, ttl=600, owner=elsewhere().to_json())
    holder = dataclasses.replace(holder_of(log.read()), beat=1e15)
    assert Watch(log, this_process()).look(holder)[1].watch == LONGEST_BEAT
