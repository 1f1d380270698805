"""Landing files on a real folder: staging, claims, renames, and what an output may already hold."""

from __future__ import annotations

import errno
import os
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_ubunye.core.batch import Batch
from airflow_provider_ubunye.core.disk import SYNC_ONE_BY_ONE, LocalDisk
from airflow_provider_ubunye.core.errors import BatchFinished, LandingFailed, LeaseLost, OutputExists
from airflow_provider_ubunye.core.landing import PROBE, FilesLanding
from airflow_provider_ubunye.core.places import Places, run_in, staging_name
from airflow_provider_ubunye.core.run import Run
from airflow_provider_ubunye.core.testing import intercepted
from tests.core.kit import Shop, write

RUN, OTHER = "a" * 32, "b" * 32


def nothing() -> None:
    """A check that never stops a run."""


class Refusing:
    """A local disk on which an act is refused with a code, from the n-th time it is asked for."""

    def __init__(self, act: str, code: int, *, times: int = 10**9, skip: int = 0, on: str = "") -> None:
        self.left, self.skip = times, skip
        self.before: Callable[[], None] | None = None

        def step(name: str, args: tuple[Any, ...], real: Callable[[], Any]) -> Any:
            if name == act and on in str(args[0]):
                self.skip -= 1
                if self.skip < 0 and self.left > 0:
                    self.left -= 1
                    if self.before is not None:
                        self.before()
                    raise OSError(code, os.strerror(code), args[0])
            return real()

        self.disk = intercepted(LocalDisk(), step)


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    return tmp_path / "lake" / "orders"


def landing(
    lake: Path, mode: str = "append", *, disk: Any = None, root: Path | None = None, **how: Any
) -> Any:
    staging_root = None if root is None else str(root)
    return FilesLanding(disk or LocalDisk(), Places(), RUN, "o", mode, str(lake), staging_root, **how)


def land(it: FilesLanding, rows: dict[str, str] | None = None, suffix: str = ".csv") -> None:
    write(it.open(), {"": "1"} if rows is None else rows, suffix)
    it.claim()
    it.land(nothing)


def seen(lake: Path) -> list[str]:
    return sorted(p.relative_to(lake).as_posix() for p in lake.rglob("part-*"))


# ── staging ─────────────────────────────────────────────────────────────────────────────────────


def test_it_stages_below_the_state_folder_where_no_reader_looks(lake: Path, tmp_path: Path) -> None:
    it = landing(lake, root=tmp_path / "state")
    staging = it.open()
    assert staging.folder == tmp_path / "state" / staging_name(RUN) / "o"
    assert staging.part_name(7, ".json.gz") == f"part-00007-{RUN}.json.gz"
    assert [p.name for p in lake.iterdir()] == [staging_name(RUN)], "the marker: an empty folder"
    assert list((tmp_path / "state").iterdir()) == [tmp_path / "state" / staging_name(RUN)]


def test_without_a_state_folder_on_a_disk_it_stages_below_the_marker(lake: Path) -> None:
    assert landing(lake).open().folder == lake / staging_name(RUN) / "o"


@pytest.mark.parametrize("code", [errno.EXDEV, errno.EPERM, errno.EACCES, errno.EROFS])
def test_where_a_rename_out_of_the_state_folder_is_not_one_step_it_stages_in_the_output(
    lake: Path, tmp_path: Path, code: int
) -> None:
    refusing = Refusing("rename", code, on=PROBE)
    it = landing(lake, root=tmp_path / "state", disk=refusing.disk)
    land(it)
    assert it.staging is not None
    assert it.staging.folder == lake / staging_name(RUN) / "o"
    assert seen(lake) == [f"part-00000-{RUN}.csv"]
    assert not list((tmp_path / "state").glob(f"*{PROBE}"))


def test_where_group_or_acl_would_differ_it_stages_in_the_output(lake: Path, tmp_path: Path) -> None:
    lake.mkdir(parents=True)
    os.chown(lake, -1, 4321)
    lake.chmod(0o2775)
    it = landing(lake, root=tmp_path / "state")
    land(it)
    assert (lake / f"part-00000-{RUN}.csv").stat().st_gid == 4321


@pytest.mark.debian
def test_where_the_output_gives_its_files_an_acl_they_have_it(lake: Path, tmp_path: Path) -> None:
    lake.mkdir(parents=True)
    subprocess.run(["setfacl", "-d", "-m", "u:4321:rwx", str(lake)], check=True)
    land(landing(lake, root=tmp_path / "state"))
    part = lake / f"part-00000-{RUN}.csv"
    acl = subprocess.run(["getfacl", "-n", str(part)], check=True, capture_output=True, text=True).stdout
    assert "user:4321:" in acl


@pytest.mark.parametrize("code", [errno.EIO, errno.ENOSPC])
def test_an_output_folder_that_can_not_be_written_fails_the_run(
    lake: Path, tmp_path: Path, code: int
) -> None:
    for act in ("rename", "make_folders"):
        it = landing(lake, root=tmp_path / "state", disk=Refusing(act, code).disk)
        with pytest.raises(LandingFailed, match="can't be written") as error:
            it.open()
        assert error.value.where == str(lake)
        assert error.value.exit_code == 3


def test_a_file_in_the_outputs_place_fails_the_run(lake: Path, tmp_path: Path) -> None:
    lake.parent.mkdir()
    lake.write_text("a file")
    with pytest.raises(LandingFailed, match="can't be written"):
        landing(lake, root=tmp_path / "state").open()


def test_an_output_folder_that_another_run_takes_away_is_made_again(lake: Path, tmp_path: Path) -> None:
    """A run that made the folder and failed removes it while it is empty, at any moment."""
    refusing = Refusing("rename", errno.ENOENT, times=3, on=PROBE)
    refusing.before = lambda: os.rmdir(lake)
    land(landing(lake, root=tmp_path / "state", disk=refusing.disk))
    assert seen(lake) == [f"part-00000-{RUN}.csv"]


def test_an_output_folder_that_goes_again_and_again_ends_the_run(lake: Path, tmp_path: Path) -> None:
    it = landing(lake, root=tmp_path / "state", disk=Refusing("rename", errno.ENOENT).disk)
    with pytest.raises(LandingFailed, match="removed again and again"):
        it.open()


# ── claiming ────────────────────────────────────────────────────────────────────────────────────


def test_only_data_files_are_claimed_each_under_a_name_with_the_runs_id(lake: Path) -> None:
    it = landing(lake)
    folder = it.open().folder
    (folder / "a=1").mkdir()
    spark = "part-00003-f4eda558-165e-4c93-a270-e89ccdc964cc.c000.csv"
    for name in (f"a=1/{spark}", "plain.csv", "_SUCCESS", "._SUCCESS.crc", ".part.crc", "_metadata"):
        (folder / name).write_text("x")
    written, replaces = it.claim()
    assert [(c.final, c.staged) for c in written.claims] == [
        (f"a=1/part-00003-{RUN}.c000.csv", f"a=1/{spark}"),
        (f"part-{RUN}-plain.csv", "plain.csv"),
    ]
    assert written.folders == ("a=1",)
    assert replaces == []
    it.land(nothing)
    assert seen(lake) == [f"a=1/part-00003-{RUN}.c000.csv", f"part-{RUN}-plain.csv"]


def test_folders_that_stand_already_are_not_the_runs_own(lake: Path) -> None:
    (lake / "a=1").mkdir(parents=True)
    it = landing(lake)
    assert it.written.made == 0
    write(it.open(), {"a=1/b=1": "x", "a=2": "y"})
    assert it.claim()[0].folders == ("a=2", "a=1/b=1")
    assert landing(lake / "x" / "y").written.made == 2


@pytest.mark.parametrize(
    "content", [b"", b"PAR1", b"PAR1 half of it", b"half of itPAR1", b"PAR1PAR1", b"x" * 100]
)
def test_a_parquet_file_without_its_footer_is_refused_before_anything_lands(
    lake: Path, content: bytes
) -> None:
    """Field case 17. Four bytes are head and foot at once: no file that short has a footer between them."""
    it = landing(lake)
    staging = it.open()
    (staging.folder / staging.part_name(0, ".parquet")).write_bytes(content)
    with pytest.raises(LandingFailed, match="has no footer"):
        it.claim()
    assert seen(lake) == [f"{staging_name(RUN)}/o/part-00000-{RUN}.parquet"]


def test_a_whole_parquet_file_is_claimed(lake: Path) -> None:
    it = landing(lake)
    staging = it.open()
    (staging.folder / staging.part_name(0, ".parquet")).write_bytes(b"PAR1" + b"x" * 20 + b"\x10\0\0\0PAR1")
    assert len(it.claim()[0].claims) == 1


def test_a_staged_link_is_refused(lake: Path, tmp_path: Path) -> None:
    """Field case 34: landing it would publish what it points to, or let a later write go through it."""
    (tmp_path / "secret").mkdir()
    for target in ("secret", "nothing"):
        it = landing(lake)
        folder = it.open().folder
        (folder / target).symlink_to(tmp_path / target)
        with pytest.raises(LandingFailed, match="is a link"):
            it.claim()
        (folder / target).unlink()


def test_two_staged_files_that_would_land_under_one_name_are_refused(lake: Path) -> None:
    it = landing(lake)
    folder = it.open().folder
    for uuid in ("f4eda558-165e-4c93-a270-e89ccdc964cc", "00000000-165e-4c93-a270-e89ccdc964cc"):
        (folder / f"part-00000-{uuid}.c000.csv").write_text("x")
    with pytest.raises(LandingFailed, match="under one name"):
        it.claim()


def test_a_name_that_is_taken_is_refused_before_anything_is_claimed(lake: Path) -> None:
    it = landing(lake)
    write(it.open(), {"": "1"})
    (lake / f"part-00000-{RUN}.csv").write_text("of another")
    with pytest.raises(LandingFailed, match="exists already; nothing was claimed"):
        it.claim()
    assert (lake / f"part-00000-{RUN}.csv").read_text() == "of another"


def test_a_partition_folder_that_is_a_link_is_refused(lake: Path, tmp_path: Path) -> None:
    """Field case 34."""
    (tmp_path / "elsewhere").mkdir()
    lake.mkdir(parents=True)
    (lake / "a=1").symlink_to(tmp_path / "elsewhere")
    it = landing(lake)
    write(it.open(), {"a=1": "1"})
    with pytest.raises(LandingFailed, match="is a link to"):
        it.claim()
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_an_output_that_is_a_link_is_landed_in_where_it_points(lake: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    lake.parent.mkdir()
    lake.symlink_to(tmp_path / "elsewhere")
    it = landing(lake)
    land(it)
    assert it.written.place.path == f"{tmp_path}/elsewhere"
    assert seen(tmp_path / "elsewhere") == [f"part-00000-{RUN}.csv"]


def test_an_error_of_the_disk_while_claiming_fails_the_run(lake: Path) -> None:
    it = landing(lake, disk=Refusing("list_folder", errno.EIO).disk)
    it.open()
    with pytest.raises(LandingFailed, match="can't be claimed: Input/output error"):
        it.claim()


def test_a_stray_row_of_another_day_is_refused_naming_its_value(lake: Path) -> None:
    """Field case 15."""
    it = landing(lake, "overwrite_partitions", pinned={"day": "2026-11-01"})
    write(it.open(), {"day=2026-11-01": "1", "day=2026-10-31": "2"})
    with pytest.raises(LandingFailed, match="day='2026-10-31'") as error:
        it.claim()
    assert "2026-11-01" in error.value.what
    assert error.value.hint is not None


@pytest.mark.parametrize(
    ("mode", "folder"),
    [
        ("append", "day=2026-10-31"),
        ("overwrite_partitions", "day=2026-11-01"),
        ("overwrite_partitions", "hour=3/day=2026%2D11-01"),
        ("overwrite_partitions", "region=x"),
    ],
)
def test_a_row_of_the_batchs_own_day_is_not_stray(lake: Path, mode: str, folder: str) -> None:
    it = landing(lake, mode, pinned={"day": "2026-11-01"})
    land(it, {folder: "1"})
    assert len(it.written.claims) == 1


@pytest.mark.parametrize("folder", ["", "plain", "region=x/plain"])
def test_an_overwrite_of_partitions_refuses_a_file_in_none(lake: Path, folder: str) -> None:
    """It would list the whole folder, every other batch included, for removal."""
    land(landing(lake), {"region=x": "other"})
    it = landing(lake, "overwrite_partitions")
    write(it.open(), {"region=x": "1", folder: "2"})
    with pytest.raises(LandingFailed, match="lies in no partition folder") as error:
        it.claim()
    assert "partition_by" in str(error.value.hint)
    assert it.written.claims == ()


# ── landing ─────────────────────────────────────────────────────────────────────────────────────


def test_a_staged_file_that_is_gone_is_a_lost_lease(lake: Path) -> None:
    """Nothing but a takeover removes it."""
    it = landing(lake)
    write(it.open(), {"": "1"})
    it.claim()

    def take_over() -> None:
        for staged in it.staging.folder.iterdir():
            staged.unlink()

    with pytest.raises(LeaseLost, match="is gone"):
        it.land(take_over)
    assert seen(lake) == []


def test_a_partition_folder_that_goes_while_it_lands_is_made_again(lake: Path) -> None:
    refusing = Refusing("rename", errno.ENOENT, times=2, skip=1)
    it = landing(lake, disk=refusing.disk)
    land(it, {"a=1": "1", "a=2": "2"})
    assert len(seen(lake)) == 2
    it = landing(lake, disk=Refusing("rename", errno.ENOENT).disk)
    it._run = OTHER
    write(it.open(), {"a=3": "1"})
    it.claim()
    with pytest.raises(LandingFailed, match="removed again and again"):
        it.land(nothing)


@pytest.mark.parametrize("act", ["sync_files", "rename", "sync_folders"])
def test_an_error_of_the_disk_while_landing_fails_the_run(lake: Path, act: str) -> None:
    it = landing(lake, disk=Refusing(act, errno.EIO, on=str(lake) if act == "rename" else "").disk)
    write(it.open(), {"": "1"})
    it.claim()
    with pytest.raises(LandingFailed, match="can't be moved into place: Input/output error"):
        it.land(nothing)


def test_every_rename_asks_first(lake: Path) -> None:
    it = landing(lake)
    write(it.open(), {f"a={n}": "1" for n in range(4)})
    it.claim()
    asked: list[int] = []

    def stop_at_the_third() -> None:
        asked.append(1)
        if len(asked) == 3:
            raise LeaseLost("lost")

    with pytest.raises(LeaseLost):
        it.land(stop_at_the_third)
    assert len([n for n in seen(lake) if not n.startswith("_")]) == 2


def test_an_output_wiped_while_files_land_fails_the_run(lake: Path) -> None:
    it = landing(lake)
    write(it.open(), {"": "1"})
    it.claim()

    def wipe() -> None:
        os.rename(lake / staging_name(RUN), lake / "moved")
        (lake / staging_name(RUN) / "o").mkdir(parents=True)
        for item in (lake / "moved" / "o").iterdir():
            item.rename(lake / staging_name(RUN) / "o" / item.name)

    it.land(wipe)
    os.rename(lake / staging_name(RUN), lake.parent / "moved")
    with pytest.raises(LandingFailed, match="something else removed or replaced"):
        it._check_alone()


@pytest.mark.parametrize("count", [1, SYNC_ONE_BY_ONE + 1])
def test_names_and_content_are_synced_before_it_returns(
    lake: Path, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    acts: list[str] = []

    def note(name: str, args: tuple[Any, ...], real: Callable[[], Any]) -> Any:
        if name in ("rename", "sync_files", "sync_folders"):
            acts.append(name)
        if name == "sync_folders":
            made = {str(lake.parent), str(lake.parent.parent), str(lake)}
            assert made <= set(args[0])
            assert {f"{lake}/a={n}" for n in range(count)} <= set(args[0])
        return real()

    land(landing(lake, disk=intercepted(LocalDisk(), note)), {f"a={n}": "1" for n in range(count)})
    # A rename into a folder that is not made yet is tried twice.
    landed = acts[acts.index("sync_files") :]
    assert landed == ["sync_files", *["rename"] * 2 * count, "sync_folders"]


@pytest.mark.parametrize("mode", ["errorifexists", "ignore"])
def test_a_file_that_appears_while_it_writes_fails_errorifexists_and_ignore(lake: Path, mode: str) -> None:
    it = landing(lake, mode)
    assert not it.skips()
    write(it.open(), {"": "1"})
    it.claim()
    (lake / "part-0.csv").write_text("of another")
    with pytest.raises(LandingFailed, match=f"has mode {mode}") as error:
        it.land(nothing)
    assert "part-0.csv" in error.value.what


def test_errorifexists_and_ignore_look_for_data_first(lake: Path) -> None:
    (lake / "_temporary").mkdir(parents=True)
    (lake / "_SUCCESS").write_text("")
    assert not landing(lake, "ignore").skips()
    (lake / "part-0.csv").write_text("x")
    assert landing(lake, "ignore").skips()
    assert not landing(lake, "append").skips()
    with pytest.raises(OutputExists, match="errorifexists") as error:
        landing(lake, "errorifexists").skips()
    assert error.value.exit_code == 1


# ── with others in the folder ───────────────────────────────────────────────────────────────────

FOREIGN = [
    "_temporary/0/task_1/part-00000.csv",
    "_ubunye-0123456789ab/o/part-0.csv",
    "part-00000-f4eda558-165e-4c93-a270-e89ccdc964cc.csv",
    f"part-00000-{OTHER}.csv",
    "day=1/foreign.csv",
    "_SUCCESS",
]


@pytest.mark.parametrize("mode", ["append", "overwrite", "overwrite_partitions"])
def test_foreign_staging_is_never_landed_or_removed_and_named_in_a_warning(
    shop: Shop, caplog: pytest.LogCaptureFixture, mode: str
) -> None:
    """Field case 13."""
    for name in FOREIGN:
        path = shop.path() / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    shop.run({"day=2": "1"}, mode=mode, batch=shop.batch(dt=None, hour=1))
    stays = FOREIGN if mode != "overwrite" else [n for n in FOREIGN if n.startswith("_")]
    for name in stays:
        assert (shop.path() / name).read_text() == name
    assert len([n for n in shop.files() if "day=2" in n]) == 1
    if mode == "overwrite":
        assert len(shop.files()) == 1
    for named in ("_temporary", "_ubunye-0123456789ab"):
        assert [r for r in caplog.records if r.levelname == "WARNING" and f"/{named} is" in r.message]


def test_an_empty_append_lands_nothing_and_finishes_the_batch(shop: Shop) -> None:
    """Field case 14."""
    done = shop.run({})
    assert done is not None
    assert done.files == {"orders": 0}
    assert (shop.files(), shop.debris()) == ([], [])
    with pytest.raises(BatchFinished):
        shop.run({"": "1"})


def test_an_empty_overwrite_of_partitions_loses_none(shop: Shop) -> None:
    """Field case 14."""
    shop.run({"day=1": "1", "day=2": "2"}, mode="overwrite_partitions")
    shop.run({}, mode="overwrite_partitions")
    assert shop.rows() == ["1", "2"]


def test_an_empty_overwrite_by_a_writer_that_leaves_no_file_keeps_what_is_there_and_says_so(
    shop: Shop, caplog: pytest.LogCaptureFixture
) -> None:
    """Field case 14. Our own engine leaves a file without rows, which replaces."""
    shop.run({"": "old"}, mode="overwrite")
    shop.run({}, mode="overwrite")
    assert shop.rows() == ["old"]
    assert "stays: nothing there shows" in caplog.text


def test_two_batches_append_to_one_folder_in_every_order(shop: Shop) -> None:
    """Field case 12: to one folder, and to one that neither finds there."""
    for number, (existing, second_fails) in enumerate([(e, f) for e in (True, False) for f in (True, False)]):
        out = f"orders{number}"
        if existing:
            shop.path(out).mkdir(parents=True)
        other = shop.batch("2026-11-02")

        def land_beside(run: Run, out: str = out, fails: bool = second_fails, other: Batch = other) -> None:
            def fail(run: Run) -> None:
                raise ValueError("the other one fails")

            try:
                shop.run({"r=1": "2", "r=2": "2"}, out=out, batch=other, meanwhile=fail if fails else None)
            except ValueError:
                assert fails

        shop.run({"r=1": "1", "r=3": "1"}, out=out, batch=shop.batch(number=number), meanwhile=land_beside)
        assert shop.rows(out) == (["1", "1"] if second_fails else ["1", "1", "2", "2"])
        assert not (shop.path(out) / "r=2").exists() or not second_fails
        shop.state.joinpath("leases", *other.task.split("/"), other.key).rename(shop.root / f"done{number}")
        shop.note(other).unlink(missing_ok=True)


def test_two_batches_at_once_into_one_new_folder_are_both_exact(shop: Shop) -> None:
    """Field case 12, with threads: the crowd test has processes."""
    shop.store()
    for number in range(15):
        out = f"new{number}/orders"
        errors: list[BaseException] = []

        def append(day: str, out: str = out, errors: list[BaseException] = errors) -> None:
            try:
                shop.run(
                    {"a=1": day, f"b={day}": day},
                    out="orders",
                    batch=shop.batch(day, round=out),
                    **paths(out),
                )
            except BaseException as error:  # noqa: BLE001 - told below
                errors.append(error)

        def paths(out: str) -> dict[str, Any]:
            return {"outputs": {"orders": ("append", str(shop.path(out)), "files")}}

        threads = [threading.Thread(target=append, args=(day,)) for day in ("1", "2")]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert errors == []
        assert shop.rows(out) == ["1", "1", "2", "2"]


def test_an_overwrite_beside_an_append_leaves_each_whole(shop: Shop) -> None:
    shop.run({"": "old"}, batch=shop.batch("2026-10-01"))

    def append_beside(run: Run) -> None:
        shop.run({"a": "appended", "b": "appended"}, batch=shop.batch("2026-11-02"))

    shop.run({"": "whole"}, mode="overwrite", batch=shop.batch("2026-11-03"), meanwhile=append_beside)
    # The append came before the overwrite listed what it replaces: it is replaced with the rest.
    assert shop.rows() == ["whole"]

    def overwrite_beside(run: Run) -> None:
        shop.run({"": "whole 2"}, mode="overwrite", batch=shop.batch("2026-11-04"))

    shop.run({"a": "late", "b": "late"}, batch=shop.batch("2026-11-05"), meanwhile=overwrite_beside)
    assert shop.rows() == ["late", "late", "whole 2"]
    assert all(run_in(name) for name in shop.files())
