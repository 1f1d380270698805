"""Faults that a hostile tester found: each is a rule of the contract that once did not hold."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_ubunye.core.batch import belongs, new_run_id
from airflow_provider_ubunye.core.errors import BatchFinished, LandingFailed, NotTakenBack, UsageError
from airflow_provider_ubunye.core.places import Places, staging_name
from airflow_provider_ubunye.core.records import FileRecords
from airflow_provider_ubunye.core.request import RERUN, Request
from airflow_provider_ubunye.core.run import Run, open_run
from airflow_provider_ubunye.core.store import FileStore, open_store
from airflow_provider_ubunye.core.testing import intercepted
from airflow_provider_ubunye.core.where import setting_for
from tests.core.kit import Shop, write


def outputs(shop: Shop, *all_of_them: tuple[str, str, str, dict[str, str]], purpose: str = "run") -> None:
    """A run with several outputs: name, mode, folder, rows."""
    request = Request(
        shop.batch(),
        purpose=purpose,
        appends=any(mode == "append" for _, mode, _, _ in all_of_them),
        outputs={name: (mode, str(shop.path(out)), "files") for name, mode, out, _ in all_of_them},
    )
    run = open_run(shop.setting(), request)
    assert run is not None
    with run:
        for name, mode, out, rows in all_of_them:
            staging = run.output(name, mode, str(shop.path(out)))
            if staging is not None:
                write(staging, rows)


@pytest.mark.parametrize("mode", ["append", "overwrite"])
def test_two_outputs_of_one_run_share_a_folder(shop: Shop, mode: str) -> None:
    outputs(shop, ("a", mode, "orders", {"": "1"}), ("b", mode, "orders", {"": "2"}))
    assert shop.rows() == ["1", "2"]
    assert shop.debris() == []


def test_two_outputs_under_one_name_are_refused_before_anything_is_claimed(shop: Shop) -> None:

    def both(run: Run) -> None:
        for name in ("orders", "more"):
            staging = run.output(name, "append", str(shop.path()))
            assert staging is not None
            (staging.folder / f"part-0-{run.id}.csv").write_text("1")

    with pytest.raises(LandingFailed, match="under one name"), shop.open() as run:
        both(run)
    assert shop.rows() == []
    assert shop.debris() == []


def test_a_rerun_that_ignore_leaves_alone_removes_nothing(shop: Shop) -> None:
    shop.run({"": "1"})
    shop.run({"": "2"}, mode="ignore", purpose=RERUN)
    assert shop.rows() == ["1"]
    shop.run({"": "3"}, purpose=RERUN)
    assert shop.rows() == ["3"]


def test_a_rerun_owes_what_runs_before_the_last_one_landed(shop: Shop) -> None:
    shop.run({"p=a": "1", "p=b": "2"})
    shop.run({"p=a": "3"}, mode="overwrite_partitions")
    assert shop.rows() == ["2", "3"]
    shop.run({"p=a": "4", "p=b": "5"}, purpose=RERUN)
    assert shop.rows() == ["4", "5"]


def test_a_rerun_owes_what_stands_at_an_earlier_path(shop: Shop) -> None:
    shop.run({"": "1"}, out="x")
    outputs(shop, ("x", "overwrite", "y", {"": "2"}), purpose=RERUN)
    assert (shop.rows("x"), shop.rows("y")) == ([], ["2"])
    outputs(shop, ("x", "append", "x", {"": "3"}), purpose=RERUN)
    assert (shop.rows("x"), shop.rows("y")) == (["3"], [])


def test_a_batch_finished_under_config_batch_is_finished_without_it(shop: Shop) -> None:
    shop.run({"": "1"}, batch=shop.batch(region="eu", named_by=["dt"]))
    with pytest.raises(BatchFinished):
        shop.run({"": "2"}, batch=shop.batch(region="eu"))
    shop.run({"": "3"}, batch=shop.batch(region="eu"), purpose=RERUN)
    assert shop.rows() == ["3"]


def test_a_batch_whose_naming_changes_to_and_fro_is_there_once(shop: Shop) -> None:
    by_day = shop.batch(region="eu", named_by=["dt"])
    by_all = shop.batch(region="eu", named_by=["dt", "region"])
    shop.run({"": "1"}, batch=by_day)
    shop.run({"": "2"}, batch=by_all, purpose=RERUN)
    assert shop.rows() == ["2"]
    with pytest.raises(BatchFinished):
        shop.run({"": "3"}, batch=by_day)
    shop.run({"": "3"}, batch=by_day, purpose=RERUN)
    assert shop.rows() == ["3"]
    shop.run({"": "4"}, batch=by_all, purpose=RERUN)
    assert shop.rows() == ["4"]
    assert shop.debris() == []


def test_a_failed_run_under_a_new_spelling_does_not_hide_the_finished_one(shop: Shop) -> None:
    def fail(run: Run) -> None:
        raise ValueError("own")

    by_day = shop.batch(region="eu", named_by=["dt"])
    by_all = shop.batch(region="eu", named_by=["dt", "region"])
    with pytest.raises(ValueError, match="own"):
        shop.run({"": "0"}, batch=by_all, meanwhile=fail)
    shop.run({"": "1"}, batch=by_day)
    with pytest.raises(BatchFinished):
        shop.run({"": "2"}, batch=by_all)
    shop.run({"": "2"}, batch=by_all, purpose=RERUN)
    assert shop.rows() == ["2"]


def test_another_batch_that_has_part_of_the_variables_is_another_batch(shop: Shop) -> None:
    shop.run({"": "1"})
    with shop.open(batch=shop.batch(hour="13")) as held:
        write(held.output("orders", "append", str(shop.path())), {"": "13"})
        shop.run({"": "2"}, batch=shop.batch(hour="13", region="eu"))
    assert shop.rows() == ["1", "13", "2"]


@pytest.mark.parametrize(
    ("state", "out", "mode"),
    [
        ("lake/state", "lake", "overwrite"),
        ("lake/state", "lake/state", "append"),
        ("state", "state/out", "append"),
    ],
)
def test_an_output_where_the_state_is_is_refused(tmp_path: Path, state: str, out: str, mode: str) -> None:
    setting = setting_for(None, tmp_path / state)
    request = Request(Shop(tmp_path / "shop").batch(), outputs={"o": (mode, str(tmp_path / out), "files")})
    with pytest.raises(UsageError, match=r"state or run records|would remove"):
        open_run(setting, request)


def test_an_overwrite_above_a_hidden_state_folder_leaves_it(tmp_path: Path) -> None:
    setting = setting_for(None, tmp_path / "lake" / ".state")
    request = Request(
        Shop(tmp_path / "shop").batch(), outputs={"o": ("overwrite", str(tmp_path / "lake"), "files")}
    )
    run = open_run(setting, request)
    assert run is not None
    with run:
        write(run.output("o", "overwrite", str(tmp_path / "lake")), {"": "1"})
    assert (tmp_path / "lake" / ".state" / "store.json").exists()


def test_run_records_are_no_ground_for_an_output(shop: Shop, tmp_path: Path) -> None:
    setting = shop.setting(records=FileRecords(shop.path() / "records"))
    with pytest.raises(UsageError, match="would remove"):
        open_run(setting, shop.request(mode="overwrite"))


@pytest.mark.parametrize("names", [("store.json",), ("config.yaml", "transformations.py")])
def test_an_overwrite_leaves_folders_that_hold_state_or_a_task(
    shop: Shop, names: tuple[str, ...], caplog: pytest.LogCaptureFixture
) -> None:
    other = shop.path() / "other"
    other.mkdir(parents=True)
    for name in (*names, "data.csv"):
        (other / name).write_text("x")
    shop.run({"": "1"}, mode="overwrite")
    assert sorted(p.name for p in other.iterdir()) == sorted([*names, "data.csv"])
    assert "holds no data but state or a task" in caplog.text


@pytest.mark.parametrize(
    ("append", "overwrite"), [("lake/p=a", "lake"), ("lake", "lake/p=a"), ("lake", "lake")]
)
def test_an_overwrite_around_or_inside_an_append_leaves_it_whole(
    shop: Shop, append: str, overwrite: str
) -> None:
    """The append has landed and not committed yet when the overwrite lists and removes."""
    other = shop.batch(task="shop/daily/all")
    inner: dict[str, str] = {"": "a"} if append != "lake" else {"p=a": "a", "p=b": "b"}

    def beside(name: str, args: tuple[Any, ...], real: Callable[[], Any]) -> Any:
        if name == "create" and b'"kind": "done"' in args[1]:
            shop.run({"": "all"}, mode="overwrite", out=overwrite, batch=other)
        return real()

    shop.run(inner, out=append, setting=shop.setting(store=intercepted(shop.store(), beside)))
    assert set(inner.values()) <= {*shop.rows("lake")}


def test_two_use_case_folders_that_share_a_state_do_not_settle_each_others_outputs(tmp_path: Path) -> None:
    a, b = Shop(tmp_path / "a"), Shop(tmp_path / "b")
    for shop in (a, b):
        shop.state = tmp_path / "state"
    homes = [
        s.setting(places=Places(s.root, home=str(os.stat(s.root).st_ino)), store=open_store(str(s.state)))
        for s in (a, b)
    ]
    run = open_run(homes[0], a.request())
    assert run is not None
    with run:
        write(run.output("orders", "append", str(a.path())), {"": "1"})
    with pytest.raises(NotTakenBack, match="another use case folder"):
        open_run(homes[1], b.request(purpose=RERUN))
    assert a.rows() == ["1"]


def test_where_the_state_lies_outside_the_use_case_folder_says_which_it_is(tmp_path: Path) -> None:
    (tmp_path / "pipelines").mkdir()
    apart = setting_for(tmp_path / "pipelines", tmp_path / "state")
    assert apart.places.home == str(os.stat(tmp_path / "pipelines").st_ino)
    assert setting_for(tmp_path / "pipelines").places.home is None
    assert setting_for(None, tmp_path / "state").places.home is None


def test_a_run_id_belongs_to_its_batch(shop: Shop) -> None:
    mine, other = shop.batch(), shop.batch("2026-11-02")
    run = new_run_id(mine.key)
    assert belongs(run, [other.key, mine.key])
    assert not belongs(run, [other.key])
    assert shop.request().owns(run)


def test_a_log_that_names_another_batchs_run_removes_nothing_of_it(shop: Shop) -> None:
    shop.run({"": "theirs"}, batch=shop.batch("2026-11-02"))
    theirs = shop.files()[0]
    shop.run({"": "mine"})
    log = next((shop.state / "leases").rglob(f"{shop.batch().key}/*.json"))
    document = json.loads(log.read_text())
    document["state"]["finished"]["run"] = theirs.removesuffix(".csv")[-32:]
    document["state"]["finished"]["outputs"][0]["claims"] = [theirs]
    log.write_text(json.dumps(document))
    with pytest.raises(NotTakenBack, match="no run of this batch"):
        shop.run({"": "again"}, purpose=RERUN)
    assert theirs in shop.files()


STUCK = """
import os, sys, time
from pathlib import Path
from tests.core.kit import Shop, write
from airflow_provider_ubunye.core import run as module
shop = Shop(Path(sys.argv[1]))
def broken(*args): raise OSError(5, "Input/output error")
run = shop.open()
try:
    with run:
        write(run.output("orders", "append", str(shop.path())), {"": "1"})
        if sys.argv[2] == "user":
            module.take_back = broken
            raise KeyError("the user's own")
        module.settle = broken
except KeyError:
    pass
print("left", flush=True)
sys.stdin.read()
"""


@pytest.mark.parametrize("how", ["user", "settle"])
def test_a_run_that_broke_off_does_not_block_its_batch_while_its_process_goes_on(
    shop: Shop, how: str
) -> None:
    child = subprocess.Popen(
        [sys.executable, "-c", STUCK, str(shop.root), how],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        assert child.stdout is not None
        assert child.stdout.readline() == "left\n"
        if how == "user":
            shop.run({"": "2"})
            assert shop.rows() == ["2"]
        else:
            with pytest.raises(BatchFinished):
                shop.run({"": "2"})
            assert shop.rows() == ["1"]
        assert shop.debris() == []
    finally:
        child.kill()
        child.communicate()


def test_an_interrupt_while_a_run_takes_itself_back_waits_for_it(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    from airflow_provider_ubunye.core import run as module
    from airflow_provider_ubunye.core import settle as settling

    real = settling.take_back

    def interrupted(*args: Any) -> Any:
        os.kill(os.getpid(), signal.SIGINT)
        return real(*args)

    monkeypatch.setattr(module, "take_back", interrupted)

    def fail(run: Any) -> None:
        raise ValueError("own")

    with pytest.raises(ValueError, match="own"):
        shop.run({"": "1"}, meanwhile=fail)
    assert (shop.rows(), shop.debris()) == ([], [])
    monkeypatch.undo()
    shop.run({"": "2"})


def test_an_output_path_that_is_too_long_does_not_block_the_batch(shop: Shop) -> None:
    with pytest.raises(LandingFailed, match="File name too long"):
        shop.run({"": "1"}, out="x" * 300)
    shop.run({"": "1"})
    assert shop.rows() == ["1"]


def test_a_note_that_can_not_be_written_does_not_keep_replaced_files(shop: Shop) -> None:
    shop.run({"": "1"})
    shop.note().unlink()
    (shop.note() / "in the way").mkdir(parents=True)
    shop.run({"": "2"}, purpose=RERUN)
    assert shop.rows() == ["2"]


def test_a_disk_that_can_not_be_read_is_named_and_owed(shop: Shop) -> None:
    shop.die("rename", {"": "1"})

    def refuse(name: str, args: tuple[Any, ...], real: Callable[[], Any]) -> Any:
        if name == "real":
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return real()

    setting = shop.setting()
    with pytest.raises(NotTakenBack, match="can't be looked at: Input/output error"):
        shop.run({"": "2"}, setting=shop.setting(disk=intercepted(setting.disk, refuse)))
    shop.run({"": "2"})
    assert shop.rows() == ["2"]
    assert isinstance(setting.store, FileStore)


def test_folders_that_can_not_be_tidied_are_nobodys_loss(shop: Shop) -> None:
    shop.die("rename", {"p=a": "1"})

    def refuse(name: str, args: tuple[Any, ...], real: Callable[[], Any]) -> Any:
        if name == "remove_folder" and "_ubunye-" not in args[0]:
            raise OSError(errno.EROFS, os.strerror(errno.EROFS))
        return real()

    shop.run({"p=b": "2"}, setting=shop.setting(disk=intercepted(shop.setting().disk, refuse)))
    assert shop.rows() == ["2"]


def test_a_marker_is_named_by_its_run() -> None:
    assert staging_name("0123456789abcdef" * 2) == "_ubunye-0123456789ab"
