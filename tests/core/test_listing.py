"""What an overwrite may replace: it lists the output, and leaves alone whoever is landing there."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_ubunye.core.disk import LocalDisk
from airflow_provider_ubunye.core.listing import data_files, replaceable, walk
from airflow_provider_ubunye.core.places import staging_name
from airflow_provider_ubunye.core.testing import intercepted

MINE, A, B = "a" * 32, "b" * 32, "c" * 32
DISK = LocalDisk()


@pytest.fixture
def out(tmp_path: Path) -> Path:
    folder = tmp_path / "out"
    folder.mkdir()
    return folder


def put(out: Path, name: str, text: str = "x") -> None:
    path = out / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def names(out: Path, under: list[str] | None = None, disk: Any = DISK) -> tuple[list[str], list[str]]:
    claims, warnings = replaceable(disk, str(out), MINE, under or [""])
    return [claim.final for claim in claims], warnings


def test_data_files_are_what_readers_see(out: Path, tmp_path: Path) -> None:
    seen = ["a=1/b=2/x.csv", "foreign.csv", "_c=1/x.csv", f"part-0-{A}.csv"]
    for name in [
        *seen,
        "_SUCCESS",
        ".hidden",
        "_temporary/0/x.csv",
        f"{staging_name(A)}/o/x.csv",
        "a=1/.x.crc",
    ]:
        put(out, name)
    put(tmp_path, "elsewhere/x.csv")
    (out / "link").symlink_to(tmp_path / "elsewhere")
    found = [name for name, _ in data_files(DISK, str(out))]
    assert found == sorted([*seen, "link"]), "a link is a name, never read through"
    assert [name for name, _ in data_files(DISK, str(out), "a=1")] == ["a=1/b=2/x.csv"]
    assert data_files(DISK, str(out / "absent")) == []


def test_an_overwrite_replaces_all_that_readers_see(out: Path) -> None:
    for name in (f"part-0-{A}.csv", "a=1/foreign.csv", f"part-0-{MINE}.csv", "_SUCCESS"):
        put(out, name)
    assert names(out) == (["a=1/foreign.csv", f"part-0-{A}.csv"], [])


def test_an_overwrite_of_partitions_replaces_those_alone(out: Path) -> None:
    for name in ("a=1/x.csv", "a=2/x.csv", "a=1/b=1/y.csv", "z.csv"):
        put(out, name)
    assert names(out, ["a=1"])[0] == ["a=1/b=1/y.csv", "a=1/x.csv"]
    assert names(out, ["a=3"]) == ([], [])


def test_a_claim_remembers_size_and_time(out: Path) -> None:
    put(out, "x.csv", "12345")
    ((claim,), _) = replaceable(DISK, str(out), MINE, [""])
    assert claim.seen == (5, (out / "x.csv").stat().st_mtime_ns)


@pytest.mark.parametrize("under", [[""], ["a=1"]])
def test_summaries_of_the_whole_folder_go_with_the_whole_folder(out: Path, under: list[str]) -> None:
    for name in ("_metadata", "_common_metadata", "a=1/x.parquet"):
        put(out, name)
    (out / "sub" / "_metadata").mkdir(parents=True)
    found, _ = names(out, under)
    assert ("_metadata" in found) is (under == [""])


def test_a_folder_called_like_a_summary_stays(out: Path) -> None:
    (out / "_metadata").mkdir()
    assert names(out) == ([], [])


def test_the_files_of_a_run_whose_marker_stands_stay(out: Path) -> None:
    put(out, f"part-0-{A}.csv")
    put(out, f"part-0-{B}.csv")
    (out / staging_name(A)).mkdir()
    found, warnings = names(out)
    assert found == [f"part-0-{B}.csv"]
    assert len(warnings) == 1
    assert A[:8] in warnings[0]
    assert staging_name(A) in warnings[0]
    assert walk(DISK, str(out)).markers == {staging_name(A)}


def between(out: Path, act: str, do: Callable[[], None]) -> Any:
    """A disk on which ``do`` happens just after the first listing, or just after the markers were read."""
    done: list[str] = []

    def step(name: str, args: tuple[Any, ...], real: Callable[[], Any]) -> Any:
        result = real()
        if name == act and not done:
            done.append(name)
            do()
        return result

    return intercepted(DISK, step)


def test_a_run_seen_half_landed_and_without_its_marker_stays_whole(out: Path) -> None:
    """Its second file came, and its marker went, between the overwrite's two looks."""
    put(out, f"part-0-{A}.csv")
    disk = between(out, "list_folder", lambda: put(out, f"part-1-{A}.csv"))
    found, warnings = names(out, disk=disk)
    assert found == []
    assert A[:8] in warnings[0]


def test_a_foreign_file_that_changes_meanwhile_stays(out: Path) -> None:
    put(out, "foreign.csv", "1")
    put(out, "still.csv", "1")
    disk = between(out, "list_folder", lambda: put(out, "foreign.csv", "22"))
    assert names(out, disk=disk)[0] == ["still.csv"]


def test_a_run_that_comes_after_the_first_look_is_not_seen(out: Path) -> None:
    put(out, f"part-0-{B}.csv")
    disk = between(out, "list_folder", lambda: put(out, f"part-0-{A}.csv"))
    assert names(out, disk=disk) == ([f"part-0-{B}.csv"], [])
