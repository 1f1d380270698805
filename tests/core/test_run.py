"""One run from its lease to its record: outputs of every kind and mode, reruns, failures, what it costs."""

from __future__ import annotations

import ctypes
import dataclasses
import errno
import logging
import os
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_ubunye.core import run as module
from airflow_provider_ubunye.core.decide import RERUN
from airflow_provider_ubunye.core.disk import LocalDisk
from airflow_provider_ubunye.core.errors import (
    BatchFinished,
    LandingFailed,
    LeaseLost,
    MayRepeat,
    OutputExists,
    RunInterrupted,
    UsageError,
)
from airflow_provider_ubunye.core.log import BatchLog
from airflow_provider_ubunye.core.outcome import Outcome
from airflow_provider_ubunye.core.owner import LIVE_RUNS
from airflow_provider_ubunye.core.run import Run, open_run
from airflow_provider_ubunye.core.settle import settle
from airflow_provider_ubunye.core.state import BatchState
from airflow_provider_ubunye.core.testing import intercepted
from tests.core.kit import TASK, Shop, write


def read(shop: Shop) -> BatchState:
    return BatchLog(shop.store(), f"leases/{TASK}/{shop.batch().key}").read()


def several(shop: Shop, **modes: str) -> dict[str, tuple[str, str, str]]:
    return {name: (mode, str(shop.path(name)), "files") for name, mode in modes.items()}


# ── outputs ─────────────────────────────────────────────────────────────────────────────────────


def test_nothing_is_seen_before_the_block_ends(shop: Shop) -> None:
    def look(run: Run) -> None:
        assert shop.files() == []
        assert run.id in LIVE_RUNS

    done = shop.run({"a=1": "1", "a=2": "2"}, meanwhile=look)
    assert done is not None
    assert done.files == {"orders": 2}
    assert shop.rows() == ["1", "2"]
    assert shop.debris() == []
    assert done.run not in LIVE_RUNS
    assert len(shop.log_files()) == 1, "a finished batch is one entry and its note"


def test_several_outputs_are_one_run(shop: Shop) -> None:
    outputs = several(shop, a="append", b="overwrite", c="overwrite_partitions")
    for text in ("1", "2"):
        run = open_run(shop.setting(), shop.request(outputs=outputs, batch=shop.batch(text)))
        assert run is not None
        with run:
            for name, (mode, path, _) in outputs.items():
                write(run.output(name, mode, path), {"p=1": text})
        assert run.outcome.replaced == (0 if text == "1" else 2)
    assert (shop.rows("a"), shop.rows("b"), shop.rows("c")) == (["1", "2"], ["2"], ["2"])


def test_outputs_that_a_block_announces_one_by_one(shop: Shop) -> None:
    run = open_run(shop.setting(), shop.request(outputs={}, appends=None))
    assert run is not None
    with run:
        for name in ("a", "b"):
            write(run.output(name, "append", str(shop.path(name))), {"": name})
        with pytest.raises(UsageError, match="output 'a' already"):
            run.output("a", "append", str(shop.path("x")))
        with pytest.raises(UsageError, match="output 'a' already"):
            run.output_named("a", "append", str(shop.path("x")), lambda: None)
    assert (shop.rows("a"), shop.rows("b")) == (["a"], ["b"])
    with pytest.raises(BatchFinished):
        open_run(shop.setting(), shop.request(outputs={}, appends=None))


def test_a_stray_row_is_refused_in_a_block_too(shop: Shop) -> None:
    """Field case 15."""
    run = open_run(shop.setting(), shop.request(outputs={}, appends=None))
    assert run is not None
    with pytest.raises(LandingFailed, match="dt='2026-10-31'"), run:
        write(
            run.output("o", "overwrite_partitions", str(shop.path("o"))),
            {"dt=2026-11-01": "1", "dt=2026-10-31": "2"},
        )
    assert shop.files("o") == []


def test_a_run_without_outputs_finishes_its_batch(shop: Shop) -> None:
    run = shop.open(outputs={})
    with run:
        pass
    assert read(shop).commits == 1
    with pytest.raises(BatchFinished):
        shop.run()


def test_an_announced_output_that_is_never_opened_lands_nothing(shop: Shop) -> None:
    outputs = several(shop, a="append", b="append")
    with shop.open(outputs=outputs) as run:
        write(run.output("a", "append", str(shop.path("a"))), {"": "1"})
    assert (shop.rows("a"), shop.path("b").exists(), shop.debris()) == (["1"], False, [])


@pytest.mark.parametrize("announced", [True, False])
def test_errorifexists_and_ignore(shop: Shop, caplog: pytest.LogCaptureFixture, announced: bool) -> None:
    caplog.set_level(logging.INFO)

    def go(mode: str, dt: str, out: str) -> Outcome:
        outputs = {out: (mode, str(shop.path(out)), "files")} if announced else {}
        with shop.open(outputs=outputs, appends=False, batch=shop.batch(dt)) as run:
            staging = run.output(out, mode, str(shop.path(out)))
            if staging is not None:
                write(staging, {"": dt})
        return run.outcome

    for mode in ("errorifexists", "ignore"):
        assert go(mode, "1", mode).files == {mode: 1}
    with pytest.raises(OutputExists, match="holds data already") as error:
        go("errorifexists", "2", "errorifexists")
    assert error.value.exit_code == 1
    # Its own finished batch too: it is never refused as finished, the mode itself decides.
    with pytest.raises(OutputExists):
        go("errorifexists", "1", "errorifexists")
    skipped = go("ignore", "2", "ignore")
    assert (skipped.skipped, skipped.files) == (["ignore"], {})
    assert "dt=2: ignore holds data already (mode ignore); kept as it is (run" in caplog.text
    assert (shop.rows("errorifexists"), shop.rows("ignore")) == (["1"], ["1"])
    assert shop.debris() == []


@pytest.mark.parametrize("mode", ["errorifexists", "ignore"])
def test_errorifexists_and_ignore_are_exact_after_their_own_crash(shop: Shop, mode: str) -> None:
    shop.die(f"create leases/{TASK}/{shop.batch().key}/00000003", {"": "dead"}, mode=mode)
    assert shop.rows() == ["dead"]
    done = shop.run({"": "1"}, mode=mode)
    assert done is not None
    assert (done.skipped, shop.rows()) == ([], ["1"])


# ── rerun ───────────────────────────────────────────────────────────────────────────────────────


def test_a_rerun_says_before_what_it_found_and_misses_and_after_what_it_removed(
    shop: Shop, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    first = shop.run({"a=1": "1", "a=2": "2", "a=3": "3"})
    assert first is not None
    (shop.path() / "a=1" / f"part-00000-{first.run}.csv").unlink()
    done = shop.run({"a=1": "new"}, purpose=RERUN)
    assert done is not None
    assert (
        f"--rerun: replacing the batch written by run {first.run[:8]} (finished {read_at(caplog)}); its 2 files "
        "are removed once this run succeeds." in caplog.text
    )
    (warned,) = warnings(caplog)
    assert warned.startswith(f"--rerun: 1 file of run {first.run[:8]} is no longer there.")
    assert warned.endswith(f"its rows stand twice once this run has finished: check {shop.path()}")
    assert f"Replaced the batch: removed 2 files of run {first.run[:8]}." in caplog.text
    assert "Overwrote" not in caplog.text
    assert (done.replaced, shop.rows()) == (2, ["new"])
    assert not (shop.path() / "a=2").exists()


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [r.getMessage() for r in caplog.records if r.levelno >= logging.WARNING]


def test_an_overwrite_says_that_it_overwrote_and_a_rerun_what_it_replaced(
    shop: Shop, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    outputs = several(shop, a="append", b="overwrite")

    def go(text: str, **how: Any) -> str:
        caplog.clear()
        run = open_run(shop.setting(), shop.request(outputs=outputs, **how))
        assert run is not None
        with run:
            for name, (mode, path, _) in outputs.items():
                write(run.output(name, mode, path), {"": text})
        return run.id

    first = go("1")
    assert "removed" not in caplog.text
    go("2", batch=shop.batch("2026-11-02"))
    assert f"Overwrote b: removed 1 file that stood in {shop.path('b')}." in caplog.text
    assert "Replaced" not in caplog.text
    go("3", purpose=RERUN)
    assert f"Overwrote b: removed 1 file that stood in {shop.path('b')}." in caplog.text
    assert f"Replaced the batch: removed 1 file of run {first[:8]}." in caplog.text
    assert (shop.rows("a"), shop.rows("b")) == (["2", "3"], ["3"])


@pytest.mark.parametrize(("folders", "rows"), [({}, None), ({}, 0), ({"": ""}, 0)])
def test_a_batch_without_rows_counts_as_finished_and_says_so(
    shop: Shop, caplog: pytest.LogCaptureFixture, folders: dict[str, str], rows: int | None
) -> None:
    """An engine may leave a file that holds no rows: what it says of its rows counts."""

    def tell(run: Run) -> None:
        if rows is not None:
            run.outcome.rows["orders"] = rows

    shop.run(folders, meanwhile=tell)
    assert warnings(caplog) == [
        "orders: 0 rows were written; the batch counts as finished: when the data comes, run it with --rerun"
    ]
    with pytest.raises(BatchFinished, match=r"already finished this batch with no rows \(run") as error:
        shop.run({"": "1"})
    assert "twice" not in error.value.what
    assert "--rerun" in str(error.value.hint)
    caplog.clear()
    shop.run({"": "1"}, purpose=RERUN)
    assert warnings(caplog) == []
    shop.run({}, mode="overwrite", batch=shop.batch("2026-11-02"))
    shop.run({}, batch=shop.batch(None))
    assert not any("0 rows" in line for line in warnings(caplog))


def read_at(caplog: pytest.LogCaptureFixture) -> str:
    (line,) = [r.getMessage() for r in caplog.records if r.getMessage().startswith("--rerun: replacing")]
    return line.partition("(finished ")[2].partition(")")[0]


def test_a_rerun_that_finds_nothing_says_so_and_appends(shop: Shop, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    shop.run({"": "1"})
    (shop.path() / shop.files()[0]).rename(shop.path() / "compacted.csv")
    shop.run({"": "2"}, purpose=RERUN)
    assert "its 0 files are removed once this run succeeds." in caplog.text
    assert "1 file of run" in warnings(caplog)[0]
    assert "removed 0 files of run" in caplog.text
    assert shop.rows() == ["1", "2"]


def test_a_rerun_replaces_its_own_files_beside_another_batchs(shop: Shop) -> None:
    shop.run({"a=1": "1"})
    shop.run({"a=1": "other"}, batch=shop.batch("2026-11-02"))
    shop.run({"a=1": "corrected"}, purpose=RERUN)
    assert shop.rows() == ["corrected", "other"]


def test_a_rerun_of_a_batch_that_never_finished_runs(shop: Shop) -> None:
    done = shop.run(purpose=RERUN)
    assert done is not None
    assert done.replaced == 0


def test_a_rerun_whose_task_overwrites_now_leaves_the_rest_to_the_overwrite(shop: Shop) -> None:
    shop.run({"": "1"})
    done = shop.run({"": "2"}, mode="overwrite", purpose=RERUN)
    assert done is not None
    assert (done.replaced, shop.rows()) == (1, ["2"])


def test_a_rerun_that_fails_keeps_the_earlier_batch(shop: Shop) -> None:
    shop.run({"": "old"})

    def fail(run: Run) -> None:
        raise ValueError("boo")

    with pytest.raises(ValueError, match="boo"):
        shop.run({"": "new"}, purpose=RERUN, meanwhile=fail)
    assert (shop.rows(), shop.debris()) == (["old"], [])


# ── failing ─────────────────────────────────────────────────────────────────────────────────────


def boo(run: Run) -> None:
    raise ValueError("boo")


def test_a_run_that_fails_takes_everything_back_and_frees_the_batch(shop: Shop) -> None:
    with pytest.raises(ValueError, match="boo"):
        shop.run({"a=1": "1"}, meanwhile=boo)
    assert (shop.files(), shop.debris(), shop.path().exists()) == ([], [], False)
    assert read(shop).holder is None
    assert read(shop).history[-1].outcome == "failed"
    assert shop.run({"": "1"}) is not None


def test_a_run_that_fails_half_way_through_landing_takes_everything_back(shop: Shop) -> None:
    def refuse(name: str, args: tuple[Any, ...], real: Callable[[], Any]) -> Any:
        if name == "rename" and "a=2/part" in str(args[1]):
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return real()

    setting = dataclasses.replace(shop.setting(), disk=intercepted(LocalDisk(), refuse))
    with pytest.raises(LandingFailed, match="Input/output error") as error:
        shop.run({"a=1": "1", "a=2": "2", "a=3": "3"}, setting=setting)
    assert error.value.exit_code == 3
    assert (shop.files(), shop.debris(), shop.path().exists()) == ([], [], False)


def test_ctrl_c_is_an_interrupted_run_that_is_taken_back(shop: Shop) -> None:
    def interrupt(run: Run) -> None:
        raise KeyboardInterrupt

    with pytest.raises(RunInterrupted, match="was interrupted; what it wrote is taken back; run it") as error:
        shop.run(meanwhile=interrupt)
    assert error.value.exit_code == 4
    assert read(shop).history[-1].outcome == "interrupted"
    assert (shop.files(), shop.debris()) == ([], [])


def test_an_interrupted_rerun_names_the_signal_and_says_that_the_earlier_batch_stands(shop: Shop) -> None:
    def interrupt(run: Run) -> None:
        raise KeyboardInterrupt("SIGTERM")

    shop.run({"": "old"})
    with pytest.raises(
        RunInterrupted,
        match="by SIGTERM; what it wrote is taken back, and the earlier batch stands; run it again",
    ):
        shop.run({"": "new"}, purpose=RERUN, meanwhile=interrupt)
    assert shop.rows() == ["old"]


def test_an_interrupted_run_that_can_not_take_itself_back_says_who_will(shop: Shop) -> None:
    def refuse(name: str, args: tuple[Any, ...], real: Callable[[], Any]) -> Any:
        if name == "remove" and "part-" in str(args[0]):
            raise PermissionError(errno.EACCES, "in use", args[0])
        return real()

    def interrupt(run: Run) -> None:
        raise KeyboardInterrupt

    setting = dataclasses.replace(shop.setting(), disk=intercepted(LocalDisk(), refuse))
    with pytest.raises(RunInterrupted, match="was interrupted; the next run takes back what it wrote"):
        shop.run({"": "1"}, setting=setting, meanwhile=interrupt)
    shop.run({"": "2"})
    assert (shop.rows(), shop.debris()) == (["2"], [])


def test_an_interrupt_after_done_is_a_success_that_says_it_was_stopped(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    asked: list[int] = []

    def interrupt(*args: Any) -> Any:
        asked.append(1)
        if len(asked) == 1:
            raise KeyboardInterrupt
        return settle(*args)

    monkeypatch.setattr(module, "settle", interrupt)
    done = shop.run({"": "1"})
    assert done is not None
    assert done.stopped
    assert "had committed the batch when it was stopped" in caplog.text
    assert (shop.rows(), shop.debris()) == (["1"], [])
    with pytest.raises(BatchFinished):
        shop.run()


def test_what_remains_after_done_may_fail_and_is_left_to_the_next(
    shop: Shop, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(name: str, args: tuple[Any, ...], real: Callable[[], Any]) -> Any:
        if name == "put":
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return real()

    done = shop.run({"": "1"}, setting=shop.setting(store=intercepted(shop.store(), refuse)))
    assert done is not None
    assert "The finished note could not be written: No space left on device" in caplog.text
    assert not shop.note().exists()
    with pytest.raises(BatchFinished):
        shop.run()
    assert shop.note().exists()
    assert shop.debris() == []


def test_a_run_that_can_not_free_itself_is_settled_by_the_next(
    shop: Shop, caplog: pytest.LogCaptureFixture
) -> None:
    """Field case 16: the disk is full when the run fails. The same process may go on at once."""
    full: list[str] = []

    def refuse(name: str, args: tuple[Any, ...], real: Callable[[], Any]) -> Any:
        if name == "create" and full:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return real()

    def fail(run: Run) -> None:
        full.append("full")
        raise ValueError("boo")

    with pytest.raises(ValueError, match="boo"):
        shop.run(setting=shop.setting(store=intercepted(shop.store(), refuse)), meanwhile=fail)
    assert "could not take itself back" in caplog.text
    assert read(shop).holder is not None
    done = shop.run({"": "1"})
    assert done is not None
    assert done.over is not None
    assert (shop.rows(), shop.debris()) == (["1"], [])


def test_a_start_that_breaks_off_leaves_the_batch_to_the_next(shop: Shop) -> None:
    def refuse(name: str, args: tuple[Any, ...], real: Callable[[], Any]) -> Any:
        if name == "remove":
            raise KeyboardInterrupt
        return real()

    shop.die(f"create leases/{TASK}/{shop.batch().key}/00000003", {"": "dead"})
    setting = dataclasses.replace(shop.setting(), disk=intercepted(LocalDisk(), refuse))
    live = set(LIVE_RUNS)
    with pytest.raises(KeyboardInterrupt):
        shop.run(setting=setting)
    assert live == LIVE_RUNS
    shop.run({"": "1"})
    assert shop.rows() == ["1"]


def test_a_run_that_was_taken_over_lands_nothing_and_sweeps_its_own_staging(shop: Shop) -> None:
    """Field case 6, in one process: the sleeper wakes when another has finished the batch."""

    def take_over(run: Run) -> None:
        LIVE_RUNS.discard(run.id)
        done = shop.run({"": "of the other"})
        assert done is not None
        assert done.over == run.id
        folder = shop.state / "staging" / f"_ubunye-{run.id[:12]}" / "orders"
        folder.mkdir(parents=True)
        (folder / "written-late.csv").write_text("x")

    for text in ("of the sleeper",):
        with pytest.raises(LeaseLost, match="lost its lease"):
            shop.run({"": text}, meanwhile=take_over)
    assert shop.rows() == ["of the other"]
    assert shop.debris() == []


def test_a_users_own_error_stays_the_users_even_when_the_lease_is_lost(shop: Shop) -> None:
    def take_over(run: Run) -> None:
        LIVE_RUNS.discard(run.id)
        shop.run({"": "of the other"})
        raise ValueError("boo")

    with pytest.raises(ValueError, match="boo"):
        shop.run({"": "x"}, meanwhile=take_over)
    assert shop.rows() == ["of the other"]


def test_a_child_that_the_users_code_forks_leaves_the_run_to_its_parent(shop: Shop) -> None:
    script = f"""
import os
from pathlib import Path
from tests.core.kit import Shop
shop = Shop(Path({str(shop.root)!r}))
def fork(run):
    pid = os.fork()
    if pid:
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7
    else:
        child.append(1)
        raise SystemExit(7)
child = []
try:
    shop.run({{"": "1"}}, meanwhile=fork)
finally:
    if child:
        os._exit(7)
assert shop.rows() == ["1"], shop.rows()
"""
    root = str(Path(__file__).parents[2])
    done = subprocess.run(
        [sys.executable, "-c", script], check=False, cwd=root, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert shop.rows() == ["1"]


# ── outputs that can't be taken back ────────────────────────────────────────────────────────────


def named(shop: Shop, rows: list[str], *, fail: bool = False, purpose: str = "run", then: Any = None) -> Run:
    outputs = {**several(shop, a="append"), "table": ("append", "db", "named")}
    run = open_run(shop.setting(), shop.request(outputs=outputs, purpose=purpose))
    assert run is not None

    def insert() -> None:
        assert shop.files("a"), "everything that can be taken back has landed before"
        rows.append("half" if fail else "row")
        if fail:
            raise ConnectionError("gone")

    with run:
        run.output_named("table", "append", str(shop.root / "db"), insert)
        write(run.output("a", "append", str(shop.path("a"))), {"": "1"})
        if then is not None:
            then(run)
    return run


def test_a_named_output_is_written_once_after_all_files_have_landed(shop: Shop) -> None:
    rows: list[str] = []
    named(shop, rows)
    assert (rows, shop.rows("a")) == (["row"], ["1"])
    with pytest.raises(BatchFinished, match="appends to a, table"):
        named(shop, rows)
    assert rows == ["row"]


def test_a_run_that_failed_after_rows_reached_a_named_output_needs_a_person(shop: Shop) -> None:
    rows: list[str] = []
    with pytest.raises(MayRepeat, match="rows of it are in table") as error:
        named(shop, rows, fail=True)
    assert error.value.exit_code == 5
    assert "gone" in error.value.what
    assert shop.files("a") == [], "what can be taken back is"
    assert isinstance(error.value.__cause__, ConnectionError)


def test_a_run_that_failed_before_it_began_is_safe_to_run_again(shop: Shop) -> None:
    rows: list[str] = []
    with pytest.raises(ValueError, match="boo"):
        named(shop, rows, then=boo)
    assert rows == []
    named(shop, rows)
    assert rows == ["row"]


def test_a_dead_run_that_had_begun_is_named_in_the_log(shop: Shop, caplog: pytest.LogCaptureFixture) -> None:
    from airflow_provider_ubunye.core.testing import Killed

    def die() -> None:
        raise Killed("in the insert")

    def dead_store(name: str, args: tuple[Any, ...], real: Callable[[], Any]) -> Any:
        if dead:
            raise Killed("dead")
        return real()

    dead: list[int] = []
    setting = dataclasses.replace(shop.setting(heartbeat=False), store=intercepted(shop.store(), dead_store))
    run = open_run(setting, shop.request(outputs={}, appends=None))
    assert run is not None

    def insert() -> None:
        dead.append(1)
        die()

    with pytest.raises(Killed), run:
        run.output_named("table", "append", str(shop.root / "db"), insert)
    shop.run({"": "1"})
    assert f"The output table may hold rows of run {run.id[:8]}, which did not finish" in caplog.text


def test_a_rerun_says_what_it_adds_again(shop: Shop, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    rows: list[str] = []
    named(shop, rows)
    named(shop, rows, purpose=RERUN)
    assert "--rerun: table can't be taken back, so the batch is added again." in caplog.text
    assert (rows, shop.rows("a")) == (["row", "row"], ["1"])


# ── in a thread, and what it costs ──────────────────────────────────────────────────────────────


def test_a_run_in_another_thread_is_stopped_by_its_next_step(shop: Shop) -> None:
    results: list[BaseException] = []

    def take_over(run: Run) -> None:
        LIVE_RUNS.discard(run.id)
        shop.run({"": "of the other"})

    def go() -> None:
        try:
            shop.run({"": "x"}, meanwhile=take_over)
        except BaseException as error:  # noqa: BLE001 - looked at below
            results.append(error)

    thread = threading.Thread(target=go)
    thread.start()
    thread.join()
    assert [type(e) for e in results] == [LeaseLost]
    assert shop.rows() == ["of the other"]


class Counting:
    """Counts what a run asks of its store, and every sync it asks of the system."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.store: Counter[str] = Counter()
        self.syncs: Counter[str] = Counter()
        real = os.fsync

        def fsync(fd: int) -> None:
            self.syncs["fsync"] += 1
            real(fd)

        monkeypatch.setattr(os, "fsync", fsync)
        real_cdll = ctypes.CDLL

        class Libc:
            def __init__(self, *args: Any, **how: Any) -> None:
                self._libc = real_cdll(*args, **how)

            def syncfs(inner, fd: int) -> int:  # noqa: N805 - self is the counter
                self.syncs["syncfs"] += 1
                return int(inner._libc.syncfs(fd))

        monkeypatch.setattr(ctypes, "CDLL", Libc)

    def act(self, name: str, args: tuple[Any, ...], real: Callable[[], Any]) -> Any:
        self.store[name] += 1
        return real()


@pytest.mark.parametrize("records", [True, False])
def test_a_trivial_append_costs_at_most_twelve_store_operations_and_twelve_syncs(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, records: bool
) -> None:
    """One small file into a folder that exists, by a task that has run before.

    A run record, where one is asked for, is a copy for people: it is no store operation, and it is written
    and synced twice, when the run begins and when it ends.
    """
    shop.run({"": "1"}, batch=shop.batch("2026-10-31"))
    store = shop.store()
    count = Counting(monkeypatch)
    changes: dict[str, Any] = {} if records else {"records": None}
    setting = shop.setting(store=intercepted(store, count.act), **changes)
    count.store.clear()
    count.syncs.clear()
    shop.run({"": "2"}, setting=setting)
    print(f"store: {dict(count.store)}, syncs: {dict(count.syncs)}")
    assert count.store.total() <= 12, dict(count.store)
    assert count.syncs.total() <= 12 + 2 * records, dict(count.syncs)
    assert shop.rows() == ["1", "2"]


def test_many_files_are_synced_by_one_call(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    shop.store()
    count = Counting(monkeypatch)
    shop.run({f"a={n}": "1" for n in range(30)})
    assert count.syncs["syncfs"] == 2
    assert count.syncs["fsync"] < 30


# ── at the edges of done ────────────────────────────────────────────────────────────────────────


def test_a_done_that_was_never_answered_is_found_out_though_another_run_finished_it(
    shop: Shop, caplog: pytest.LogCaptureFixture
) -> None:
    """Field case 18: it counted, and whoever took over saw that: this run is a success."""
    store = shop.store()
    done_key = f"leases/{TASK}/{shop.batch().key}/00000003.json"
    asked: list[str] = []

    def lose(name: str, args: tuple[Any, ...], act: Callable[[], Any]) -> Any:
        if args and args[0] == done_key and name in ("create", "read") and len(asked) < 6:
            asked.append(name)
            if len(asked) == 1:
                assert act()
                LIVE_RUNS.clear()
                with pytest.raises(BatchFinished):
                    shop.run({"": "2"})
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return act()

    done = shop.run({"": "1"}, setting=shop.setting(store=intercepted(store, lose)))
    assert asked == ["create"] * 5 + ["read"]
    assert done is not None
    assert "had committed the batch when it was stopped" in caplog.text
    assert (shop.rows(), shop.debris()) == (["1"], [])
    assert read(shop).outcome_of(done.run) == "success"


def test_an_interrupt_of_the_last_prune_changes_nothing(shop: Shop) -> None:
    interrupted: list[str] = []

    def interrupt(name: str, args: tuple[Any, ...], act: Callable[[], Any]) -> Any:
        if name == "delete" and not interrupted:
            interrupted.append(name)
            raise KeyboardInterrupt
        return act()

    done = shop.run({"": "1"}, setting=shop.setting(store=intercepted(shop.store(), interrupt)))
    assert done is not None
    assert done.stopped
    assert len(shop.log_files()) == 1
    assert (shop.rows(), shop.debris()) == (["1"], [])


def test_a_child_process_that_leaves_the_block_changes_nothing(shop: Shop) -> None:
    run = shop.open()
    mine = run._pid
    run._pid = 1
    run.__exit__(None, None, None)
    assert read(shop).holder is not None
    run._pid = mine
    run.__exit__(ValueError, ValueError("boo"), None)
    assert read(shop).holder is None


def test_an_overwrite_names_the_live_run_whose_files_it_leaves(
    shop: Shop, caplog: pytest.LogCaptureFixture
) -> None:
    other = "b" * 32
    (shop.path() / "_ubunye-bbbbbbbbbbbb").mkdir(parents=True)
    (shop.path() / f"part-00000-{other}.csv").write_text("landing")
    shop.run({"": "1"}, mode="overwrite")
    assert shop.rows() == ["1", "landing"]
    assert "1 file of run bbbbbbbb" in caplog.text
