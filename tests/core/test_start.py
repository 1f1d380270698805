"""The start of a run: looking, judging, taking the lease, settling what others left, deciding."""

from __future__ import annotations

import dataclasses
import errno
import functools
import json
import logging
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from airflow_provider_ubunye.core import start as module
from airflow_provider_ubunye.core.batch import Batch
from airflow_provider_ubunye.core.decide import RERUN, RESUME, Decision
from airflow_provider_ubunye.core.errors import BatchFinished, NotTakenBack, RunLeaseHeld, StateUnreadable
from airflow_provider_ubunye.core.lease import Watch
from airflow_provider_ubunye.core.log import BatchLog
from airflow_provider_ubunye.core.owner import this_process
from airflow_provider_ubunye.core.places import Places
from airflow_provider_ubunye.core.run import Run
from airflow_provider_ubunye.core.start import Start
from airflow_provider_ubunye.core.store import FileStore, StoreUnusable
from airflow_provider_ubunye.core.testing import FakeClock, intercepted
from tests.core.kit import OLD, TASK, Shop, elsewhere


def prefix(shop: Shop, number: int) -> str:
    return f"create leases/{TASK}/{shop.batch().key}/{number:08d}"


def read(shop: Shop) -> Any:
    return BatchLog(shop.store(), f"leases/{TASK}/{shop.batch().key}").read()


# ── refusals ────────────────────────────────────────────────────────────────────────────────────


def test_a_live_run_of_the_batch_is_refused_in_one_line_that_names_it(shop: Shop) -> None:
    def start_beside(run: Run) -> None:
        with pytest.raises(RunLeaseHeld) as error:
            shop.run()
        assert type(error.value) is RunLeaseHeld
        assert error.value.exit_code == 1
        me = this_process()
        for part in (run.id[:8], me.host, f"pid {me.pid}", "since 20", me.user, "dag_id=d try_number=2"):
            assert part in error.value.what
        assert "\n" not in error.value.what
        assert error.value.hint is not None
        assert f"stop process {me.pid}" in error.value.hint
        # Another batch never waits for it.
        shop.run({"": "2"}, batch=shop.batch("2026-11-02"))

    shop.run(meanwhile=start_beside, attempt={"dag_id": "d", "try_number": 2, "other": "x"})
    assert shop.rows() == ["1", "2"]


def test_a_finished_batch_is_refused_in_one_line_and_nothing_is_written(shop: Shop) -> None:
    done = shop.run()
    assert done is not None
    before = {p: p.read_bytes() for p in shop.root.rglob("*") if p.is_file()}
    for mode in ("append", "append"):
        with pytest.raises(BatchFinished) as error:
            shop.run(mode=mode)
        assert done.run[:8] in error.value.what
        assert "appends to orders" in error.value.what
        assert "--rerun" in str(error.value.hint)
        assert "--var hour=13" in str(error.value.hint)
    assert {p: p.read_bytes() for p in shop.root.rglob("*") if p.is_file()} == before


def test_a_rerun_then_a_plain_run_is_refused(shop: Shop) -> None:
    """Field case 32."""
    shop.run()
    shop.run({"": "2"}, purpose=RERUN)
    with pytest.raises(BatchFinished):
        shop.run({"": "3"})
    assert shop.rows() == ["2"]


def test_an_overwrite_is_never_refused_as_finished_and_a_live_one_still_is(shop: Shop) -> None:
    for _ in range(2):
        shop.run({"": "1"}, mode="overwrite")

    def start_beside(run: Run) -> None:
        with pytest.raises(RunLeaseHeld, match="still running"):
            shop.run(mode="overwrite")

    shop.run({"": "2"}, mode="overwrite", meanwhile=start_beside)
    assert shop.rows() == ["2"]
    # The note that it left counts once the task appends.
    with pytest.raises(BatchFinished):
        shop.run({"": "3"})


def test_resume_skips_what_is_finished_and_runs_what_is_not(shop: Shop) -> None:
    assert shop.run({"": "1"}, purpose=RESUME) is not None
    assert shop.run({"": "2"}, purpose=RESUME) is None
    assert shop.run({"": "2"}, purpose=RESUME) is None
    assert shop.rows() == ["1"]
    assert shop.run({"": "3"}, mode="overwrite", purpose=RESUME) is not None


def test_the_callers_policy_answers_first(shop: Shop) -> None:
    shop.run({"": "1"})
    assert shop.run({"": "2"}, policy=lambda done: Decision.SKIP) is None
    replaced = shop.run({"": "2"}, policy=lambda done: Decision.REPLACE)
    assert replaced is not None
    assert (replaced.replaced, shop.rows()) == (1, ["2"])


def test_an_unnamed_batch_is_never_refused_is_taken_back_and_leaves_no_note(shop: Shop) -> None:
    batch = shop.batch(dt=None)
    for text in ("1", "2"):
        shop.run({"": text}, batch=batch)
    assert shop.rows() == ["1", "2"]
    shop.die(f"create leases/{TASK}/{batch.key}/00000011", {"": "dead"}, batch=batch)
    assert shop.rows() == ["1", "2", "dead"]
    done = shop.run({"": "3"}, batch=batch)
    assert done is not None
    assert done.over is not None
    assert shop.rows() == ["1", "2", "3"]
    assert not shop.note(batch).exists()


# ── taking over ─────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("purpose", ["run", RERUN, RESUME])
def test_a_run_that_died_before_done_is_taken_back_at_once(
    shop: Shop, caplog: pytest.LogCaptureFixture, purpose: str
) -> None:
    caplog.set_level(logging.INFO)
    dead = shop.die(prefix(shop, 3), {"a=1": "dead", "a=2": "dead"})
    assert shop.rows() == ["dead", "dead"]
    done = shop.run({"": "1"}, purpose=purpose)
    assert done is not None
    assert done.over == dead
    assert (shop.rows(), shop.debris()) == (["1"], [])
    assert not (shop.path() / "a=1").exists()
    assert f"Took over from run {dead[:8]}, which died before it committed; 2 files removed." in caplog.text


def test_a_run_that_died_after_done_is_finished_and_the_batch_refused(
    shop: Shop, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    dead = shop.die(prefix(shop, 4), {"": "1"})
    assert not shop.note().exists() or json.loads(shop.note().read_text())["run_id"] == dead
    with pytest.raises(BatchFinished, match=dead[:8]):
        shop.run({"": "2"})
    assert (shop.rows(), shop.debris()) == (["1"], [])
    assert json.loads(shop.note().read_text())["run_id"] == dead
    assert "had committed the batch" in caplog.text
    assert shop.run({"": "2"}, purpose=RESUME) is None


def test_resume_over_a_run_that_died_after_done_finishes_it_and_skips(shop: Shop) -> None:
    shop.die(prefix(shop, 4), {"": "1"})
    assert shop.run({"": "2"}, purpose=RESUME) is None
    assert (shop.rows(), shop.debris()) == (["1"], [])
    assert read(shop).holder is None


def test_a_rerun_that_died_before_done_keeps_the_earlier_batch_after_it_replaces(shop: Shop) -> None:
    shop.run({"": "old"})
    shop.die(prefix(shop, 7), {"": "new"}, purpose=RERUN)
    assert shop.rows() == ["new", "old"]
    with pytest.raises(BatchFinished):
        shop.run({"": "x"})
    assert shop.rows() == ["old"]
    number = read(shop).number
    shop.die(prefix(shop, number + 4), {"": "new"}, purpose=RERUN)
    with pytest.raises(BatchFinished):
        shop.run({"": "x"})
    assert (shop.rows(), shop.debris()) == (["new"], [])


def test_an_overwrite_that_died_before_done_keeps_what_was_there(shop: Shop) -> None:
    shop.run({"": "old"}, mode="overwrite")
    shop.die(prefix(shop, 7), {"": "new"}, mode="overwrite")
    assert shop.rows() == ["new", "old"]
    done = shop.run({"": "newer"}, mode="overwrite")
    assert done is not None
    assert (shop.rows(), shop.debris()) == (["newer"], [])


def test_exactly_one_of_two_waiting_hosts_takes_a_silent_lease(shop: Shop) -> None:
    """Field case 33."""
    shop.die("rename", owner=elsewhere(), ttl=60.0)
    os.utime(shop.log_files()[0], (OLD, OLD))
    barrier = threading.Barrier(2)
    results: list[str] = []

    def go(name: str) -> None:
        host = dataclasses.replace(this_process(), host=name)
        setting = shop.setting(owner=host, is_alive=lambda owner: True, heartbeat=False)
        barrier.wait()
        try:
            shop.run({"": name}, setting=setting)
            results.append(name)
        except RunLeaseHeld:
            results.append("refused")

    threads = [threading.Thread(target=go, args=(name,)) for name in ("left", "right")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results.count("refused") == 1
    (winner,) = [r for r in results if r != "refused"]
    assert shop.rows() == [winner]


def test_a_run_elsewhere_is_watched_before_it_is_taken_over(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """On a disk whose clients cache, an old heartbeat may be shown for a while."""
    caplog.set_level(logging.INFO)
    monkeypatch.setattr(FileStore, "caching", 0.2)
    shop.die("rename", owner=elsewhere(), ttl=1.0)
    os.utime(shop.log_files()[0], (OLD, OLD))
    done = shop.run()
    assert done is not None
    assert "Watching run" in caplog.text
    assert shop.rows() == ["1"]


def test_a_dead_run_whose_heartbeat_lies_in_the_future_is_watched_for_its_whole_ttl_and_taken_over(
    shop: Shop, caplog: pytest.LogCaptureFixture
) -> None:
    """Field case 8: whoever set a clock back need not wait until it has caught up."""
    caplog.set_level(logging.INFO)
    dead = shop.die("rename", owner=elsewhere(), ttl=1.5)
    ahead = time.time() + 7200
    os.utime(shop.log_files()[0], (ahead, ahead))
    done = shop.run()
    assert done is not None
    assert done.over == dead
    assert f"Watching run {dead[:8]} for 2 s" in caplog.text
    assert shop.rows() == ["1"]


def test_with_a_long_ttl_a_heartbeat_in_the_future_is_refused_with_what_to_type(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    dead = shop.die("rename", owner=elsewhere())
    ahead = time.time() + 7200 + 60
    os.utime(shop.log_files()[0], (ahead, ahead))
    for wait in (0.0, 0.3):
        with pytest.raises(RunLeaseHeld, match=r"last heartbeat 2\.0 h in the future") as error:
            shop.run(wait=wait)
        assert "--wait 16m watches it for 16 min and takes over" in str(error.value.hint)
    entry, clock = shop.log_files()[0], FakeClock()

    def pass_by(seconds: float) -> None:
        # On the disk too: its clock comes nearer to the heartbeat.
        clock.advance(seconds)
        os.utime(entry, (ahead - clock(), ahead - clock()))

    os.utime(entry, (ahead, ahead))
    clock.advance(-clock())
    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=clock, sleep=pass_by))
    monkeypatch.setattr(module, "Watch", functools.partial(Watch, clock=clock))
    done = shop.run(wait=960.0)
    assert done is not None
    assert done.over == dead


def test_a_live_run_whose_heartbeat_lay_in_the_future_is_left_alone(shop: Shop) -> None:
    """Its next beat has the clock as it is now."""
    run = shop.open(shop.setting(owner=elsewhere()), ttl=3.0)
    with run:
        ahead = time.time() + 7200
        os.utime(shop.log_files()[0], (ahead, ahead))
        with pytest.raises(RunLeaseHeld, match=r"last heartbeat \d s ago"):
            shop.run()


def test_a_run_waits_for_one_that_is_held(shop: Shop) -> None:
    released = threading.Event()
    results: list[Any] = []

    def start_beside(run: Run) -> None:
        waiting = shop.setting(is_alive=lambda owner: released.is_set() or True)
        thread = threading.Thread(
            target=lambda: results.append(shop.run({"": "2"}, mode="overwrite", wait=60, setting=waiting))
        )
        thread.start()
        results.append(thread)

    shop.run({"": "1"}, mode="overwrite", meanwhile=start_beside, ttl=1.0)
    results[0].join()
    assert results[1] is not None
    assert shop.rows() == ["2"]


def test_a_wait_that_ends_refuses(shop: Shop) -> None:
    def start_beside(run: Run) -> None:
        with pytest.raises(RunLeaseHeld):
            shop.run(wait=0.2)

    shop.run(meanwhile=start_beside, ttl=1.0)


def test_force_takes_over_a_live_run_and_fences_it(shop: Shop) -> None:
    def take_over(run: Run) -> None:
        done = shop.run({"": "forced"}, force=True)
        assert done is not None
        assert done.over == run.id

    with pytest.raises(Exception, match="lost its lease"):
        shop.run({"": "fenced"}, meanwhile=take_over)
    assert (shop.rows(), shop.debris()) == (["forced"], [])


def test_a_lease_that_others_always_take_first_ends_in_a_sentence(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_ACQUIRES", 3)
    tries: list[str] = []
    store = shop.store()

    def beat_to_it(name: str, args: tuple[Any, ...], act: Callable[[], Any]) -> Any:
        if name == "create" and "/leases/" in f"/{args[0]}":
            tries.append(args[0])
            other = json.loads(args[1]) | {"id": "f" * 32, "run": "f" * 32, "over": None}
            other["owner"] = other["owner"] | {"pid": 1, "started": 7.0}
            if len(tries) > 1:
                return False
            store.create(args[0], json.dumps(other).encode())
        return act()

    with pytest.raises(StateUnreadable, match="changed hands 3 times"):
        shop.run(setting=shop.setting(store=intercepted(store, beat_to_it)))
    assert len(tries) == 3


# ── what is left ────────────────────────────────────────────────────────────────────────────────


def test_files_that_can_not_be_removed_refuse_the_run_and_free_the_lease(shop: Shop) -> None:
    shop.die(prefix(shop, 3), {"a=1": "dead", "a=2": "dead"})
    setting = shop.setting()

    def refuse(name: str, args: tuple[Any, ...], act: Callable[[], Any]) -> Any:
        if name == "remove" and "/lake/" in str(args[0]) and "_ubunye" not in str(args[0]):
            raise PermissionError(errno.EACCES, "in use", args[0])
        return act()

    stuck = dataclasses.replace(setting, disk=intercepted(setting.disk, refuse))
    for purpose in ("run", RERUN):
        with pytest.raises(NotTakenBack, match=r"a dead run could not be removed: .*in use \(and 1 more\)"):
            shop.run(setting=stuck, purpose=purpose)
        state = read(shop)
        assert state.holder is None
        assert sum(len(d.output.claims) for d in state.debts) == 2
    shop.run({"": "1"})
    assert (shop.rows(), read(shop).debts) == (["1"], ())


def test_replaced_files_that_can_not_be_removed_are_owed_by_the_next_run(shop: Shop) -> None:
    shop.run({"": "old"})
    setting = shop.setting()

    def refuse(name: str, args: tuple[Any, ...], act: Callable[[], Any]) -> Any:
        if name == "remove" and "/lake/" in str(args[0]) and "_ubunye" not in str(args[0]):
            raise PermissionError(errno.EACCES, "in use", args[0])
        return act()

    stuck = dataclasses.replace(setting, disk=intercepted(setting.disk, refuse))
    done = shop.run({"": "new"}, setting=stuck, purpose=RERUN)
    assert done is not None
    assert shop.rows() == ["new", "old"]
    with pytest.raises(NotTakenBack, match="files of a replaced run could not be removed"):
        shop.run({"": "x"}, setting=stuck)
    with pytest.raises(BatchFinished):
        shop.run({"": "x"})
    assert shop.rows() == ["new"]


# ── spellings ───────────────────────────────────────────────────────────────────────────────────


def as_it_was_before(shop: Shop, **variables: Any) -> None:
    """Files, log and note of a batch as they stand under the key of another spelling."""
    shop.run({"": "old"}, batch=shop.batch(**variables))


def test_a_note_under_the_mode_as_typed_is_found(shop: Shop) -> None:
    typed = Batch(TASK, {"dt": "2026-11-01", "mode": "dev"})
    shop.run({"": "old"}, batch=typed)
    dev = shop.batch(mode="dev")
    assert dev.key != typed.key
    with pytest.raises(BatchFinished):
        shop.run(batch=dev)
    done = shop.run({"": "new"}, batch=dev, purpose=RERUN)
    assert done is not None
    assert (done.replaced, shop.rows()) == (1, ["new"])


@pytest.mark.parametrize(
    ("before", "after"),
    [(None, ["dt"]), (["dt", "hour"], ["dt"]), (["dt"], ["dt", "hour"]), (["hour"], ["dt"])],
)
def test_a_note_from_before_config_batch_was_added_or_changed_is_found(
    shop: Shop, before: list[str] | None, after: list[str]
) -> None:
    old, new = (shop.batch(hour=13, named_by=names) for names in (before, after))
    assert old.key != new.key
    shop.run({"": "old"}, batch=old)
    with pytest.raises(BatchFinished):
        shop.run(batch=new)
    done = shop.run({"": "new"}, batch=new, purpose=RERUN)
    assert done is not None
    assert (done.replaced, shop.rows()) == (1, ["new"])
    with pytest.raises(BatchFinished):
        shop.run(batch=new)


def test_another_batch_that_happens_to_share_a_key_is_not_taken_for_an_earlier_spelling(shop: Shop) -> None:
    """All variables name it: it was never named by one of them alone."""
    shop.run({"": "a day"}, batch=shop.batch())
    hour = shop.batch(hour=13, named_by=["hour"])
    assert dict(hour.other_keys())[shop.batch().key] == ("dt",)
    shop.run({"": "an hour"}, batch=hour)
    assert shop.rows() == ["a day", "an hour"]


def test_a_batch_held_or_owing_under_an_earlier_spelling_is_refused_until_it_is_released(shop: Shop) -> None:
    old, new = shop.batch(hour=13), shop.batch(hour=13, named_by=["dt"])
    shop.die(f"create leases/{TASK}/{old.key}/00000003", {"": "dead"}, batch=old)
    with pytest.raises(RunLeaseHeld, match="under another spelling") as error:
        shop.run(batch=new)
    assert "ubunye leases release" in str(error.value.hint)
    assert str(error.value.hint).endswith(f"--state {shop.state}")
    assert old.key in error.value.what
    shop.run({"": "1"}, batch=old)
    with pytest.raises(BatchFinished):
        shop.run(batch=new)
    assert shop.rows() == ["1"]


# ── the store ───────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("act", ["list", "read", "create"])
def test_a_store_that_does_not_answer_refuses_the_run(shop: Shop, act: str) -> None:
    shop.run({"": "1"}, batch=shop.batch("2026-10-01"))

    def refuse(name: str, args: tuple[Any, ...], real: Callable[[], Any]) -> Any:
        if name == act:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return real()

    store = intercepted(shop.store(), refuse)
    batch = shop.batch("2026-10-01") if act == "read" else shop.batch()
    with pytest.raises(StoreUnusable, match="Input/output error") as error:
        shop.run({"": "2"}, setting=shop.setting(store=store), batch=batch)
    assert error.value.exit_code == 1
    assert shop.rows() == ["1"]


def test_looking_writes_nothing(shop: Shop, tmp_path: Path) -> None:
    shop.run()
    before = sorted(shop.root.rglob("*"))
    state, decision = Start(shop.setting(), shop.request()).look()
    assert (state.finished is not None, decision) == (True, Decision.REFUSE)
    assert sorted(shop.root.rglob("*")) == before


def test_another_mount_of_the_use_case_folder_finds_everything(shop: Shop, tmp_path: Path) -> None:
    """The claims are relative to it: take-back and rerun are exact elsewhere too."""
    shop.run({"": "old"})
    shop.die(prefix(shop, 7), {"": "dead"}, purpose=RERUN)
    moved = tmp_path / "mounted" / "elsewhere"
    moved.parent.mkdir()
    shop.root.rename(moved)
    there = Shop(moved)
    assert there.setting(places=Places(moved)).places.usecase_dir == str(moved)
    done = there.run({"": "new"}, purpose=RERUN)
    assert done is not None
    assert (done.replaced, there.rows(), there.debris()) == (1, ["new"], [])
