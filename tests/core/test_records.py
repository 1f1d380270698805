"""Run records on a disk: written whole, read back, never what a run depends on."""

from __future__ import annotations

import dataclasses
import datetime
import errno
import importlib.metadata
import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_ubunye.core.errors import BatchFinished, StateUnreadable, UsageError
from airflow_provider_ubunye.core.records import (
    ERROR,
    INTERRUPTED,
    RUNNING,
    SUCCESS,
    FileRecords,
    RunRecord,
    now_text,
)
from airflow_provider_ubunye.core.run import Run, open_run
from airflow_provider_ubunye.core.testing import Killed, intercepted
from tests.core.kit import TASK, Shop, write

RUN = "a" * 32
OLDER = Path(__file__).parents[1] / "data" / "ubunye-0.8.0" / "record-success" / "lineage"


def record(run: str = RUN, **changes: Any) -> RunRecord:
    values: dict[str, Any] = {"run_id": run, "task_path": TASK, "status": RUNNING, "started_at": now_text()}
    return RunRecord(**{**values, **changes})


@pytest.fixture
def records(tmp_path: Path) -> FileRecords:
    return FileRecords(tmp_path / "lineage")


def path_of(records: FileRecords, run: str = RUN) -> Path:
    return records.root / TASK / f"{run}.json"


def test_a_record_comes_back_as_it_was(records: FileRecords) -> None:
    there = record(
        variables={"dt": "2026-11-01"},
        outputs=({"name": "o", "files": 2},),
        attempt={"dag_id": "d"},
        more={"timings": [1]},
    )
    records.save(there)
    assert records.load(TASK, RUN) == RunRecord(**{**there.__dict__, "more": {**there.more, **beside()}})
    document = json.loads(path_of(records).read_text())
    assert document["record_version"] == 3
    assert document["timings"] == [1]
    assert "more" not in document


def beside() -> dict[str, str]:
    usecase, package, task = TASK.split("/")
    return {"usecase": usecase, "package": package, "task_name": task}


def test_closing_replaces_the_whole_file_and_keeps_what_another_version_wrote(records: FileRecords) -> None:
    (run,) = [p.stem for p in (OLDER / TASK).iterdir()]
    older = FileRecords(OLDER).load(TASK, run)
    assert older is not None
    assert (older.record_version, older.status, older.batch_key) == (2, SUCCESS, None)
    records.save(older.ended(INTERRUPTED, "taken over"))
    before = json.loads((OLDER / TASK / f"{run}.json").read_text())
    after = json.loads(path_of(records, run).read_text())
    assert before.keys() <= after.keys()
    assert {k for k in before if before[k] != after[k]} == {"status", "error", "ended_at", "duration_sec"}


def test_an_ended_record_says_when_and_how_long() -> None:
    ended = record(started_at="2026-11-01T00:00:00.000000+00:00").ended(
        ERROR, "boo", outputs=({"name": "o"},)
    )
    assert (ended.status, ended.error, ended.outputs) == (ERROR, "boo", ({"name": "o"},))
    assert ended.duration_sec is not None
    assert ended.duration_sec > 0


def test_records_are_found_newest_first(records: FileRecords) -> None:
    assert records.list_runs(TASK) == []
    assert list(records.search(TASK)) == []
    for number, status in enumerate((SUCCESS, ERROR, SUCCESS)):
        records.save(
            record(str(number) * 32, status=status, started_at=f"2026-11-0{number + 1}T00:00:00+00:00")
        )
    path_of(records, ".hidden").write_text("{")
    path_of(records).with_name("readme.txt").write_text("x")
    assert records.list_runs(TASK) == ["0" * 32, "1" * 32, "2" * 32]
    assert [r.run_id[0] for r in records.search(TASK)] == ["2", "1", "0"]
    assert [r.run_id[0] for r in records.search(TASK, status=SUCCESS)] == ["2", "0"]
    assert records.load(TASK, RUN) is None


def test_records_that_can_not_be_read_are_named_and_left_out(
    records: FileRecords, caplog: pytest.LogCaptureFixture
) -> None:
    records.save(record())
    path_of(records, "b" * 32).write_text("{")
    path_of(records, "a b").write_text("{}")
    path_of(records, "folder").mkdir()
    os.symlink("nowhere", path_of(records, "c" * 32))
    assert [r.run_id for r in records.search(TASK)] == [RUN]
    assert caplog.text.count("is left out") == 3
    assert str(path_of(records, "b" * 32)) in caplog.text


def test_records_that_can_not_be_listed_are_none(
    records: FileRecords, caplog: pytest.LogCaptureFixture
) -> None:
    folder = path_of(records).parent
    folder.parent.mkdir(parents=True)
    folder.write_text("no folder")
    assert list(records.search(TASK)) == []
    assert f"The run records of {TASK} can't be listed" in caplog.text


def test_every_text_is_masked_but_what_a_record_is_found_by(tmp_path: Path) -> None:
    """Even where a secret happens to be a task's name: the record must stay one that can be read."""
    records = FileRecords(tmp_path, lambda text: re.sub("orders|2026", "***", text))
    there = record(
        error="no orders",
        variables={"orders": "orders"},
        outputs=({"name": "orders", "columns": ["a orders"], "files": 2},),
        attempt={"on": datetime.date(2026, 11, 1)},
    )
    records.save(there)
    found = records.load(TASK, RUN)
    assert found is not None
    assert (found.task_path, found.started_at, found.error) == (TASK, there.started_at, "no ***")
    assert found.variables == {"orders": "***"}
    assert found.outputs == ({"name": "***", "columns": ["a ***"], "files": 2},)
    assert found.attempt == {"on": "***-11-01"}


def test_any_text_comes_back(records: FileRecords) -> None:
    """A file name that is not UTF-8, and a user's message with half a surrogate pair."""
    odd = os.fsdecode(b"caf\xe9") + " \ud800 ø 🚲"
    records.save(record(error=odd))
    found = records.load(TASK, RUN)
    assert found is not None
    assert found.error == odd


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"[]",
        b"5",
        b"\xff",
        b"{}",
        b'{"run_id": "x", "task_path": "a/b/c", "status": "running", "started_at": "yesterday"}',
        b'{"run_id": "x", "task_path": "a/b/c", "status": "running", "started_at": 5}',
        b'{"run_id": "x", "task_path": "a/b/c", "status": "running", "started_at": "2026-11-01T00:00:00"}',
        b'{"run_id": "x", "task_path": "a/b/c", "status": "x", "started_at": "2026-11-01T00:00Z", "inputs": 5}',
        b'{"run_id": "x", "task_path": "a/b/c", "status": "x", "started_at": "2026-11-01T00:00Z", "outputs": "a"}',
        b"[" * 100_000,
    ],
)
def test_a_damaged_record_is_refused_by_name(records: FileRecords, content: bytes) -> None:
    path_of(records).parent.mkdir(parents=True)
    path_of(records).write_bytes(content)
    with pytest.raises(StateUnreadable) as error:
        records.load(TASK, RUN)
    assert error.value.where == str(path_of(records))


def test_a_record_that_says_it_is_anothers_is_refused(records: FileRecords) -> None:
    records.save(record())
    os.rename(path_of(records), path_of(records, "b" * 32))
    with pytest.raises(StateUnreadable, match="another's"):
        records.load(TASK, "b" * 32)


@pytest.mark.parametrize("run", ["", "../../x", "a/b", "a\0b", ".", "x" * 65])
def test_an_id_that_is_no_plain_name_is_refused(records: FileRecords, run: str) -> None:
    with pytest.raises(StateUnreadable, match="no run id"):
        records.load(TASK, run)
    with pytest.raises(UsageError):
        records.list_runs("../../x")


def test_a_save_that_the_disk_refuses_keeps_the_earlier_state(
    records: FileRecords, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Field case 16."""
    records.save(record())

    def refuse(source: object, target: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "replace", refuse)
    with pytest.raises(OSError, match="No space left"):
        records.save(record(status=SUCCESS))
    found = records.load(TASK, RUN)
    assert found is not None
    assert found.status == RUNNING
    assert [p.name for p in path_of(records).parent.rglob("*") if p.is_file()] == [f"{RUN}.json"]


def test_what_a_killed_save_left_goes_with_the_batchs_next(records: FileRecords) -> None:
    records.save(record(batch_key="k1"))
    folder = path_of(records).parent / ".tmp"
    (folder / "k1.dead").write_text("half")
    (folder / "k2.live").write_text("half")
    records.save(record("b" * 32, batch_key="k1"))
    assert [p.name for p in folder.iterdir()] == ["k2.live"]


def test_a_save_that_is_swept_away_is_made_again(
    records: FileRecords, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, swept = os.replace, [0]

    def sweep(source: Any, target: Any) -> None:
        swept[0] += 1
        if swept[0] <= limit[0]:
            os.unlink(source)
        real(source, target)

    limit = [1]
    monkeypatch.setattr(os, "replace", sweep)
    records.save(record())
    assert records.load(TASK, RUN) is not None
    limit[0] = 10**6
    with pytest.raises(FileNotFoundError):
        records.save(record())


# ── a run's own record ──────────────────────────────────────────────────────────────────────────


def of(shop: Shop, run: str) -> RunRecord:
    found = FileRecords(shop.state / "lineage").load(TASK, run)
    assert found is not None
    return found


def test_a_runs_record_says_what_it_did(shop: Shop) -> None:
    seen: list[str] = []

    def look(run: Run) -> None:
        seen.append(of(shop, run.id).status)
        run.outcome.rows["orders"] = 5

    done = shop.run(
        {"a=1": "1", "a=2": "2"},
        meanwhile=look,
        attempt={"try_number": 2},
        about={"model": "etl", "version": "1.2"},
    )
    assert done is not None
    assert seen == [RUNNING]
    record = of(shop, done.run)
    assert record.status == SUCCESS
    assert record.outputs == (
        {
            "name": "orders",
            "direction": "output",
            "mode": "append",
            "location": str(shop.path()),
            "files": 2,
            "row_count": 5,
        },
    )
    assert (record.model, record.version, record.attempt) == ("etl", "1.2", {"try_number": 2})
    assert record.batch_key == shop.batch().key
    assert record.engine_version == importlib.metadata.version("airflow-provider-ubunye")


def test_a_failed_runs_record_says_why(shop: Shop) -> None:
    def fail(run: Run) -> None:
        runs.append(run.id)
        raise ValueError("\ud800 boo")

    runs: list[str] = []
    with pytest.raises(ValueError, match="boo"):
        shop.run(meanwhile=fail)
    assert (of(shop, runs[0]).status, of(shop, runs[0]).error) == (ERROR, "\ud800 boo")


def test_a_dead_runs_record_is_closed_as_interrupted_by_the_taker(shop: Shop) -> None:
    dead = shop.die("rename")
    assert of(shop, dead).status == RUNNING
    done = shop.run()
    assert done is not None
    assert (of(shop, dead).status, of(shop, dead).error) == (INTERRUPTED, f"taken over by run {done.run}")


def test_a_dead_run_that_had_committed_is_closed_as_success(shop: Shop) -> None:
    prefix = f"leases/{TASK}/{shop.batch().key}"
    dead = shop.die(f"create {prefix}/00000004")
    with pytest.raises(Exception, match="already finished"):
        shop.run()
    assert of(shop, dead).status == SUCCESS


def test_a_record_never_stops_a_run(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    dead = shop.die("rename")

    def refuse(*args: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(FileRecords, "save", refuse)
    done = shop.run()
    assert done is not None
    assert shop.rows() == ["1"]
    assert f"The record of run {dead[:8]} could not be closed" in caplog.text
    assert "The run record could not be written" in caplog.text
    monkeypatch.undo()
    shop.die("rename", batch=shop.batch("2026-11-02"))
    for path in (shop.state / "lineage" / TASK).glob("*.json"):
        path.write_text("{")
    assert shop.run(batch=shop.batch("2026-11-02")) is not None


def test_without_an_installed_distribution_a_record_has_no_version(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(name: str) -> str:
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "version", missing)
    done = shop.run()
    assert done is not None
    assert of(shop, done.run).engine_version is None


def test_without_records_nothing_is_written(shop: Shop) -> None:
    setting = shop.setting(records=None)
    shop.run(setting=setting)
    assert not (shop.state / "lineage").exists()
    shop.die("rename", batch=shop.batch("2026-11-02"))
    assert shop.run(setting=setting, batch=shop.batch("2026-11-02")) is not None


def test_a_run_that_died_before_it_could_close_its_record_is_closed_as_the_success_it_was(shop: Shop) -> None:
    dead: list[str] = []

    def die(name: str, args: tuple[Any, ...], act: Callable[[], Any]) -> Any:
        if dead or (name == "save" and args[0].status == SUCCESS):
            dead.append(name)
            raise Killed(name)
        return act()

    setting = shop.setting(heartbeat=False)
    setting = dataclasses.replace(
        setting, records=intercepted(setting.records, die), store=intercepted(setting.store, die)
    )
    run = open_run(setting, shop.request())
    assert run is not None
    with pytest.raises(Killed), run:
        write(run.output("orders", "append", str(shop.path())), {"": "1"})
    assert of(shop, run.id).status == RUNNING
    with pytest.raises(BatchFinished):
        shop.run()
    assert of(shop, run.id).status == SUCCESS
