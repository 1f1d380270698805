"""Places: what a recorded path may be, and which names may be acted on."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from airflow_provider_ubunye.core import places as module
from airflow_provider_ubunye.core.errors import NotTakenBack, UsageError
from airflow_provider_ubunye.core.places import (
    Places,
    folders_of,
    hidden,
    is_plain,
    is_run_id,
    landed_name,
    run_in,
    staging_name,
)
from airflow_provider_ubunye.core.state import Place

RUN = "0123456789abcdef" * 2
OTHER = "f" * 32


def test_an_output_beneath_the_use_case_folder_is_recorded_relative_to_it(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    at_a = Places(tmp_path / "a")
    place = at_a.place(tmp_path / "a" / "lake" / "orders")
    assert place == Place("usecase", "lake/orders")
    assert at_a.path(place) == f"{tmp_path}/a/lake/orders"
    # Another mount point of the same folder finds it.
    assert Places(tmp_path / "b").path(place) == f"{tmp_path}/b/lake/orders"


@pytest.mark.parametrize("inside", [".", "../lake", "../pipelines2/lake", "/srv/lake"])
def test_an_output_elsewhere_is_recorded_whole(tmp_path: Path, inside: str) -> None:
    root = tmp_path / "pipelines"
    root.mkdir()
    place = Places(root).place(os.path.join(root, inside))
    assert place == Place("root", os.path.normpath(os.path.join(root, inside)))
    assert Places(root).path(place) == place.path
    assert Places().path(place) == place.path


def test_links_are_resolved_before_a_place_is_recorded(tmp_path: Path) -> None:
    (tmp_path / "real" / "lake").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "real")
    assert Places(tmp_path / "link").place(tmp_path / "real" / "lake") == Place("usecase", "lake")
    (tmp_path / "real" / "out").symlink_to("/srv")
    assert Places(tmp_path / "real").place(tmp_path / "real" / "out" / "x") == Place("root", "/srv/x")


def test_without_a_use_case_folder_every_place_is_whole(tmp_path: Path) -> None:
    assert Places().place(tmp_path / "x") == Place("root", f"{tmp_path}/x")


@pytest.mark.parametrize("path", ["", "a\0b", "/", "//", "/../.."])
def test_what_is_no_output_path_is_a_usage_error(path: str) -> None:
    with pytest.raises(UsageError):
        Places().place(path)


@pytest.mark.parametrize("path", ["", "/lake", "../lake", "a/../b", "a//b", "a/./b", "a/", ".", "a\0b"])
def test_a_recorded_path_that_leaves_the_use_case_folder_is_refused(tmp_path: Path, path: str) -> None:
    """Field case 34."""
    with pytest.raises(NotTakenBack):
        Places(tmp_path).path(Place("usecase", path))


@pytest.mark.parametrize("path", ["", "lake", "../lake", "/a/../b", "/a//b", "/a/", "/", "//", "/a\0b"])
def test_a_recorded_path_that_is_not_clean_is_refused(path: str) -> None:
    """Field case 34."""
    with pytest.raises(NotTakenBack):
        Places().path(Place("root", path))


def test_a_recorded_relative_path_needs_the_use_case_folder() -> None:
    with pytest.raises(NotTakenBack, match="none is given") as error:
        Places().path(Place("usecase", "lake"))
    assert error.value.hint is not None


def test_another_drive_is_never_beneath_the_use_case_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_same_drive", lambda a, b: False)
    assert Places(tmp_path).place(tmp_path / "lake").base == "root"


@pytest.mark.parametrize("name", ["part-1.csv", "a=1/b=2/part", "..a/b", "a..", "a b/ c"])
def test_a_plain_name_goes_nowhere_but_down(name: str) -> None:
    assert is_plain(name)


@pytest.mark.parametrize("name", ["", ".", "..", "/a", "a/", "a//b", "a/../b", "../a", "a/..", "./a", "a\0"])
def test_a_name_that_goes_elsewhere_is_not_plain(name: str) -> None:
    assert not is_plain(name)


def test_on_windows_a_backslash_is_a_separator(monkeypatch: pytest.MonkeyPatch) -> None:
    assert is_plain("a\\b")
    monkeypatch.setattr(os, "sep", "\\")
    assert not is_plain("a\\..\\b")


@pytest.mark.parametrize(
    ("name", "run"),
    [
        (f"part-00000-{RUN}.csv", RUN),
        (f"a=1/part-{RUN}-x.csv", RUN),
        (f"{OTHER}/part-{RUN}.csv", RUN),
        (f"{RUN}/part.csv", None),
        (f"part-{RUN}a.csv", None),
        (f"part-{RUN[:31]}.csv", None),
        (f"part-{RUN.upper()}.csv", None),
        ("part-00000-f4eda558-165e-4c93-a270-e89ccdc964cc-c000.csv", None),
    ],
)
def test_a_file_is_of_the_run_whose_whole_id_its_name_carries(name: str, run: str | None) -> None:
    assert run_in(name) == run


@pytest.mark.parametrize(
    ("staged", "landed"),
    [
        (f"part-00000-{RUN}.csv", f"part-00000-{RUN}.csv"),
        (f"a=1/part-00000-{RUN}.csv", f"a=1/part-00000-{RUN}.csv"),
        (
            "a=1/part-00007-f4eda558-165e-4c93-a270-e89ccdc964cc.c000.snappy.parquet",
            f"a=1/part-00007-{RUN}.c000.snappy.parquet",
        ),
        ("data.csv", f"part-{RUN}-data.csv"),
        (f"part-00000-{OTHER}.csv", f"part-{RUN}-part-00000-{OTHER}.csv"),
    ],
)
def test_every_landed_name_carries_the_runs_id(staged: str, landed: str) -> None:
    assert landed_name(staged, RUN) == landed
    assert run_in(landed) == RUN


def test_folders_on_the_way_come_outermost_first() -> None:
    assert folders_of(["a=1/b=2/x", "a=1/y", "z", "c=1/x"]) == ["a=1", "c=1", "a=1/b=2"]
    assert folders_of([]) == []


def test_run_ids_and_staging_names() -> None:
    assert is_run_id(RUN)
    assert not is_run_id(RUN + "\n")
    assert not is_run_id(RUN.upper())
    assert not is_run_id("f4eda558-165e-4c93-a270-e89ccdc964cc")
    assert staging_name(RUN) == "_ubunye-0123456789ab"


@pytest.mark.parametrize(
    ("name", "folder", "skipped"),
    [
        ("_SUCCESS", False, True),
        (".crc", False, True),
        ("_ubunye-0123456789ab", True, True),
        ("_temporary", True, True),
        ("_c=1", True, False),
        ("_c=1", False, True),
        ("a=1", True, False),
        ("part-0.csv", False, False),
    ],
)
def test_readers_skip_what_begins_with_a_dot_or_underscore(name: str, folder: bool, skipped: bool) -> None:
    assert hidden(name, folder) is skipped
