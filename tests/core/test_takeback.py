"""Taking back and removing what was replaced: on real folders, over debts that are genuine, forged or stuck."""

from __future__ import annotations

import dataclasses
import errno
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_ubunye.core.decide import RERUN
from airflow_provider_ubunye.core.disk import LocalDisk
from airflow_provider_ubunye.core.errors import LeaseLost, NotTakenBack
from airflow_provider_ubunye.core.landing import PROBE
from airflow_provider_ubunye.core.places import Places, staging_name
from airflow_provider_ubunye.core.state import REPLACED, UNFINISHED, Claim, Debt, Place, Written
from airflow_provider_ubunye.core.takeback import OLDER_RUN, Settled, TakeBack
from airflow_provider_ubunye.core.testing import intercepted
from tests.core.kit import Shop

RUN, OTHER = "a" * 32, "b" * 32
UUID = "f4eda558-165e-4c93-a270-e89ccdc964cc"


class Lake:
    """An output with a run's files in it, and everything around it that must stay."""

    def __init__(self, tmp_path: Path) -> None:
        self.out = tmp_path / "lake" / "orders"
        self.root = tmp_path / "state" / "staging"
        self.disk: Any = LocalDisk()
        self.around = tmp_path
        for name in (
            f"part-00000-{OTHER}.csv",
            "foreign.csv",
            f"../other/part-00000-{RUN}.csv",
            f"../other/part-00000-{OTHER}.csv",
        ):
            self.put(name)

    def put(self, name: str, text: str = "x") -> Path:
        path = Path(os.path.normpath(self.out / name))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def stage(self, name: str, *, run: str = RUN, output: str = "o") -> Path:
        path = self.root / staging_name(run) / output / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("staged")
        return path

    def written(self, *names: str, **changes: Any) -> Written:
        claims = tuple(Claim(n, n) for n in names)
        values = {"name": "o", "kind": "files", "mode": "append", "place": Place("root", str(self.out))}
        return Written(**{**values, "claims": claims, **changes})

    def settle(self, *debts: Debt, check: Callable[[], None] = lambda: None) -> Settled:
        return TakeBack(self.disk, Places(), str(self.root), check).settle(debts)

    def everything(self) -> dict[str, bytes | str]:
        found: dict[str, bytes | str] = {}
        for path in sorted(self.around.rglob("*")):
            found[str(path)] = (
                os.readlink(path) if path.is_symlink() else path.read_bytes() if path.is_file() else ""
            )
        return found


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake(tmp_path)


def part(number: int = 0, run: str = RUN) -> str:
    return f"part-{number:05d}-{run}.csv"


# ── taking back ─────────────────────────────────────────────────────────────────────────────────


def test_staged_and_landed_files_go_and_nothing_else(lake: Lake) -> None:
    before = lake.everything()
    lake.put(part(0))
    lake.put(f"a=1/b=1/{part(1)}")
    lake.stage(part(2))
    lake.stage("unclaimed.csv")
    (lake.root / (staging_name(RUN) + PROBE)).mkdir()
    (lake.out / staging_name(RUN)).mkdir()
    claimed = lake.written(part(0), f"a=1/b=1/{part(1)}", part(2), folders=("a=1", "a=1/b=1"))
    settled = lake.settle(Debt(UNFINISHED, RUN, claimed))
    assert (settled.removed, settled.missing, settled.left, settled.problems) == (2, 1, [], [])
    after = lake.everything()
    state = [str(lake.root.parent), str(lake.root)]
    assert {k: v for k, v in after.items() if k not in state} == before


def test_the_staged_name_goes_before_the_landed_one(lake: Lake) -> None:
    """The fence: a sleeper's rename came before, and its file goes second, or it finds no source."""
    order: list[str] = []

    def note(name: str, args: tuple[Any, ...], real: Callable[[], Any]) -> Any:
        if name == "remove":
            order.append(os.path.relpath(args[0], lake.around))
        return real()

    lake.disk = intercepted(LocalDisk(), note)
    lake.stage(part(0))
    lake.put(part(1))
    lake.settle(Debt(UNFINISHED, RUN, lake.written(part(0), part(1))))
    marker = staging_name(RUN)
    assert order[:6] == [
        path
        for n in (0, 1)
        for path in (
            f"state/staging/{marker}/o/{part(n)}",
            f"lake/orders/{marker}/o/{part(n)}",
            f"lake/orders/{part(n)}",
        )
    ]


def test_a_sleepers_rename_between_the_two_removals_lands_nothing(lake: Lake) -> None:
    staged = lake.stage(part(0))
    target = lake.out / part(0)
    woken: list[str] = []

    def wake(name: str, args: tuple[Any, ...], real: Callable[[], Any]) -> Any:
        if name == "remove" and not woken:
            woken.append("before the first removal")
            staged.rename(target)
        result = real()
        if name == "remove" and len(woken) == 1:
            woken.append("after it")
            with pytest.raises(FileNotFoundError):
                staged.rename(target)
        return result

    lake.disk = intercepted(LocalDisk(), wake)
    settled = lake.settle(Debt(UNFINISHED, RUN, lake.written(part(0))))
    assert len(woken) == 2
    assert (settled.removed, target.exists(), staged.exists()) == (1, False, False)


def test_a_staged_file_under_its_writers_own_name_goes(lake: Lake) -> None:
    staged = lake.stage("a=1/spark-own-name.csv")
    written = lake.written(claims=(Claim(f"a=1/{part()}", "a=1/spark-own-name.csv"),))
    lake.settle(Debt(UNFINISHED, RUN, written))
    assert not staged.exists()


def test_folders_that_the_run_made_go_while_they_are_empty(lake: Lake) -> None:
    new = lake.out / "new" / "deep"
    new.mkdir(parents=True)
    written = lake.written(part(), place=Place("root", str(new)), made=2)
    lake.settle(Debt(UNFINISHED, RUN, written))
    assert not (lake.out / "new").exists()
    assert lake.out.exists()
    new.mkdir(parents=True)
    (lake.out / "new" / "of-another").write_text("x")
    lake.settle(Debt(UNFINISHED, RUN, written))
    assert not new.exists()
    assert (lake.out / "new").exists()


def test_an_empty_partition_folder_that_the_run_did_not_make_stays(lake: Lake) -> None:
    (lake.out / "a=1").mkdir()
    lake.settle(Debt(UNFINISHED, RUN, lake.written(f"a=1/{part()}")))
    assert (lake.out / "a=1").is_dir()


def test_it_stops_when_its_own_lease_is_lost(lake: Lake) -> None:
    lake.put(part())

    def lost() -> None:
        raise LeaseLost("lost")

    with pytest.raises(LeaseLost):
        lake.settle(Debt(UNFINISHED, RUN, lake.written(part())), check=lost)
    assert (lake.out / part()).exists()


def test_a_file_that_can_not_be_removed_stays_owed_and_the_others_go(lake: Lake) -> None:
    def refuse(name: str, args: tuple[Any, ...], real: Callable[[], Any]) -> Any:
        if name == "remove" and str(args[0]) == f"{lake.out}/{part(1)}":
            raise PermissionError(errno.EACCES, "in use", args[0])
        return real()

    for number in range(3):
        lake.put(part(number))
    lake.disk = intercepted(LocalDisk(), refuse)
    for debt in (
        Debt(UNFINISHED, RUN, lake.written(part(0), part(1), part(2), made=1)),
        Debt(REPLACED, RUN, lake.written(part(0), part(1), part(2))),
    ):
        settled = lake.settle(debt)
        assert settled.problems == [f"{lake.out}/{part(1)} can't be removed: in use"]
        assert [c.final for d in settled.left for c in d.output.claims] == [part(1)]
        assert [p.name for p in lake.out.glob(f"*{RUN}*")] == [part(1)]
    assert lake.out.exists()


def test_a_staging_folder_that_can_not_be_emptied_is_still_owed(lake: Lake) -> None:
    lake.stage("unclaimed.csv")

    def refuse(name: str, args: tuple[Any, ...], real: Callable[[], Any]) -> Any:
        if name == "remove" and str(args[0]).endswith("unclaimed.csv"):
            raise PermissionError(errno.EACCES, "in use", args[0])
        return real()

    lake.disk = intercepted(LocalDisk(), refuse)
    debt = Debt(UNFINISHED, RUN, lake.written())
    settled = lake.settle(debt)
    assert settled.left == [debt]
    assert "can't be removed: in use" in settled.problems[0]


def test_a_staging_folder_that_a_sleeper_keeps_filling_is_left(lake: Lake) -> None:
    lake.stage("0.csv")
    count = [0]

    def refill(name: str, args: tuple[Any, ...], real: Callable[[], Any]) -> Any:
        if name == "remove_folder" and str(args[0]).endswith("/o"):
            count[0] += 1
            lake.stage(f"{count[0]}.csv")
        return real()

    lake.disk = intercepted(LocalDisk(), refill)
    settled = lake.settle(Debt(UNFINISHED, RUN, lake.written()))
    assert settled.left == []
    assert "nothing of it can land" in settled.warnings[0]


def test_what_can_not_be_taken_back_is_named_once_it_began(lake: Lake) -> None:
    began = lake.written(kind="named", detail={"committing": {"named": True}})
    waiting = lake.written(kind="named")
    settled = lake.settle(
        Debt(UNFINISHED, RUN, began), Debt(UNFINISHED, RUN, waiting), Debt(REPLACED, RUN, began, by=OTHER)
    )
    assert [d.output for d in settled.named] == [began]
    assert settled.left == []


# ── replaced files ──────────────────────────────────────────────────────────────────────────────


def listed(lake: Lake, *names: str, proof: tuple[str, ...] = ()) -> Debt:
    claims = []
    for name in names:
        status = (lake.out / name).stat()
        claims.append(Claim(name, name, (status.st_size, status.st_mtime_ns)))
    return Debt(REPLACED, None, lake.written(claims=tuple(claims)), by=RUN, proof=proof)


def test_listed_files_go_once_the_run_that_replaced_them_has_landed(lake: Lake) -> None:
    lake.put(f"a=1/{part(0, OTHER)}")
    debt = listed(lake, f"a=1/{part(0, OTHER)}", "foreign.csv", proof=(part(),))
    settled = lake.settle(debt)
    assert (settled.removed, len(settled.warnings)) == (0, 1)
    lake.put(part())
    settled = lake.settle(debt)
    assert (settled.removed, settled.warnings) == (2, [])
    assert not (lake.out / "a=1").exists()
    assert sorted(p.name for p in lake.out.iterdir()) == sorted([part(), part(0, OTHER)])


@pytest.mark.parametrize("change", ["size", "time"])
def test_a_listed_file_that_changed_since_stays(lake: Lake, change: str) -> None:
    lake.put(part())
    debt = listed(lake, "foreign.csv", proof=(part(),))
    if change == "size":
        lake.put("foreign.csv", "longer")
    else:
        os.utime(lake.out / "foreign.csv", (1, 1))
    settled = lake.settle(debt)
    assert "changed after it was listed" in settled.warnings[0]
    assert (lake.out / "foreign.csv").exists()
    assert settled.left == []


def test_a_listed_file_that_is_gone_is_no_problem(lake: Lake) -> None:
    lake.put(part())
    debt = listed(lake, "foreign.csv", proof=(part(),))
    (lake.out / "foreign.csv").unlink()
    settled = lake.settle(debt)
    assert (settled.removed, settled.missing, settled.left) == (0, 1, [])


# ── forged ──────────────────────────────────────────────────────────────────────────────────────


def forged(lake: Lake) -> Iterator[tuple[str, Debt]]:
    """Field case 34, in every variation."""
    elsewhere = lake.around / "lake" / "other"
    (lake.out / "link=1").symlink_to(elsewhere)
    (lake.out / "linked.csv").symlink_to(elsewhere / part())
    (lake.around / "linked-out").symlink_to(elsewhere)
    os.symlink(elsewhere, lake.around / "a-marker")
    genuine = part(3)
    lake.put(genuine)
    for name in (
        f"{elsewhere}/{part()}",
        f"../other/{part()}",
        f"a=1/../../other/{part()}",
        f"./{part()}",
        f"a=1//{part()}",
        "",
        "..",
        f"{part()}\0",
        f"link=1/{part()}",
        part(0, OTHER),
        "foreign.csv",
        f"{RUN}/foreign.csv",
        "_SUCCESS",
        f"part-00000-{UUID}-c000.csv",
    ):
        yield f"claims {name!r}", Debt(UNFINISHED, RUN, lake.written(genuine, name))
        yield f"replaces {name!r}", Debt(REPLACED, RUN, lake.written(genuine, name), by=OTHER)
    for staged in ("/etc/passwd", "../../x", ""):
        yield f"stages {staged!r}", Debt(UNFINISHED, RUN, lake.written(claims=(Claim(part(), staged),)))
    for folder in ("..", "/", "a/..", "link=1"):
        yield f"made {folder!r}", Debt(UNFINISHED, RUN, lake.written(genuine, folders=(folder,)))
    for name in ("..", "a/b", "", ".", "o\0"):
        yield f"output {name!r}", Debt(UNFINISHED, RUN, lake.written(genuine, name=name))
    for run in ("", "..", "x" * 32, RUN[:12], RUN.upper(), f"{RUN}/..", "../../../x"):
        yield f"run {run!r}", Debt(UNFINISHED, run, lake.written(genuine))
    for path in (
        "",
        "lake",
        "/",
        f"{lake.out}/../other",
        f"{lake.out}/",
        f"{lake.around}/linked-out",
        f"{lake.out}/link=1",
        f"{lake.out}\0",
    ):
        yield f"place {path!r}", Debt(UNFINISHED, RUN, lake.written(part(), place=Place("root", path)))
    yield "use case", Debt(UNFINISHED, RUN, lake.written(part(), place=Place("usecase", "lake/other")))
    yield "kind", Debt(UNFINISHED, RUN, lake.written(genuine, kind="delta"))
    yield "listed nobody's", Debt(UNFINISHED, None, lake.written("foreign.csv"))
    older = lake.written(f"part-00000-{UUID}-c000.csv", f"part-00000-{RUN}.csv")
    yield "an older run's claim on ours", Debt(UNFINISHED, OLDER_RUN, older)
    for staging in ("..", f"{staging_name(RUN)}/..", "a=1", "/etc", f"_ubunye-{'A' * 12}", 5):
        written = lake.written(f"part-00000-{UUID}-c000.csv", detail={"staging": staging})
        yield f"an older staging {staging!r}", Debt(UNFINISHED, OLDER_RUN, written)


def test_a_forged_debt_changes_nothing_and_is_named(lake: Lake) -> None:
    debts = list(forged(lake))
    before = lake.everything()
    for what, debt in debts:
        settled = lake.settle(debt)
        assert settled.left == [debt], what
        assert len(settled.problems) == 1, what
        assert settled.problems[0], what
        assert settled.removed == 0, what
        assert lake.everything() == before, what
        if what != "kind":
            with pytest.raises(NotTakenBack):
                TakeBack(lake.disk, Places(), str(lake.root)).refuse([debt])


@pytest.mark.parametrize("inside", [False, True])
def test_a_staging_folder_that_is_a_link_is_refused(lake: Lake, inside: bool) -> None:
    """Field case 34: its target would be emptied."""
    elsewhere = lake.around / "lake" / "other"
    marker = (lake.out if inside else lake.root) / staging_name(RUN)
    marker.parent.mkdir(parents=True, exist_ok=True)
    marker.symlink_to(elsewhere)
    lake.put(part())
    before = lake.everything()
    settled = lake.settle(Debt(UNFINISHED, RUN, lake.written(part())))
    assert settled.left
    assert "is not a folder" in settled.problems[0]
    assert lake.everything() == before


def test_a_link_in_a_staging_folder_goes_and_what_it_points_to_stays(lake: Lake) -> None:
    staged = lake.stage("x.csv")
    (staged.parent / "link").symlink_to(lake.around / "lake" / "other")
    before = sorted((lake.around / "lake" / "other").iterdir())
    lake.settle(Debt(UNFINISHED, RUN, lake.written()))
    assert not staged.parent.exists()
    assert sorted((lake.around / "lake" / "other").iterdir()) == before


def test_listed_files_need_no_name_but_size_time_and_proof(lake: Lake) -> None:
    """A forged list of an overwrite: without the file that proves the landing nothing goes."""
    lake.put(part())
    before = lake.everything()
    for proof in ((), (part(9),), (f"../other/{part()}",), (part(0, OTHER),), ("foreign.csv",)):
        settled = lake.settle(listed(lake, "foreign.csv", proof=proof))
        assert (settled.removed, len(settled.left + settled.warnings)) == (0, 1)
        assert lake.everything() == before
    unseen = Debt(REPLACED, None, lake.written("foreign.csv"), by=RUN, proof=(part(),))
    assert lake.settle(unseen).left == [unseen]
    assert lake.everything() == before


# ── through whole runs ──────────────────────────────────────────────────────────────────────────


def test_a_forged_entry_refuses_the_run_names_it_and_lets_nothing_go(shop: Shop) -> None:
    """Field case 34, from the log to the refusal: and again the next time."""
    shop.run({"": "of another"}, batch=shop.batch("2026-10-01"))
    (other,) = shop.files()
    prefix = f"leases/{shop.batch().task}/{shop.batch().key}"
    run = shop.die(f"create {prefix}/00000003", {"": "dead"})
    (claimed,) = [p for p in shop.log_files() if b'"claims": ["' in p.read_bytes()]
    claimed.write_bytes(claimed.read_bytes().replace(f"part-00000-{run}.csv".encode(), other.encode()))
    for _ in range(2):
        with pytest.raises(NotTakenBack, match="does not carry its run's id") as error:
            shop.run()
        assert error.value.exit_code == 5
        assert sorted(shop.rows()) == ["dead", "of another"]


def test_a_recorded_output_that_moved_counts_for_a_rerun(shop: Shop) -> None:
    """The output's path changed: the recorded one is where the earlier files are."""
    shop.run({"": "1"}, out="orders")
    moved = {"orders": ("append", str(shop.path("moved")), "files")}
    done = shop.run({"": "2"}, out="orders", purpose=RERUN)
    assert done is not None
    from airflow_provider_ubunye.core.run import open_run
    from tests.core.kit import write

    run = open_run(shop.setting(), shop.request(outputs=moved, purpose=RERUN))
    assert run is not None
    with run:
        write(run.output("orders", "append", str(shop.path("moved"))), {"": "3"})
    assert (shop.rows("orders"), shop.rows("moved")) == ([], ["3"])
    assert run.outcome.replaced == 1


@pytest.mark.debian
def test_a_file_that_can_not_be_removed_refuses_by_name_until_it_can(shop: Shop) -> None:
    """An immutable file stands for one that a reader has open on Windows."""
    shop.die(f"create leases/{shop.batch().task}/{shop.batch().key}/00000003", {"": "dead"})
    (landed,) = shop.files()
    subprocess.run(["chattr", "+i", str(shop.path() / landed)], check=True)
    try:
        for _ in range(2):
            with pytest.raises(NotTakenBack, match="could not be removed") as error:
                shop.run()
            assert landed in error.value.what
            assert shop.rows() == ["dead"]
    finally:
        subprocess.run(["chattr", "-i", str(shop.path() / landed)], check=True)
    shop.run({"": "new"})
    assert shop.rows() == ["new"]


def test_an_older_version_refuses_a_kind_it_does_not_know(shop: Shop) -> None:
    debt = Debt(UNFINISHED, RUN, Written("o", "hdfs", "append", Place("root", "/x")))
    settled = TakeBack(LocalDisk(), Places(), None).settle([dataclasses.replace(debt)])
    assert "which this version can't take back" in settled.problems[0]
