"""The local disk: each act and each of its promises, on a real folder."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_ubunye.core import disk as module
from airflow_provider_ubunye.core.disk import SYNC_ONE_BY_ONE, Item, LocalDisk


@pytest.fixture
def disk() -> LocalDisk:
    return LocalDisk()


def test_folders_are_made_and_removed_while_empty(disk: LocalDisk, tmp_path: Path) -> None:
    inside = str(tmp_path / "a" / "b")
    with pytest.raises(FileNotFoundError):
        disk.make_folder(inside)
    disk.make_folders(inside)
    disk.make_folders(inside)
    with pytest.raises(FileExistsError):
        disk.make_folder(inside)
    disk.make_folder(f"{inside}/c")
    assert not disk.remove_folder(inside)
    assert disk.remove_folder(f"{inside}/c")
    assert disk.remove_folder(inside)
    assert not disk.remove_folder(inside)
    (tmp_path / "file").write_text("x")
    assert not disk.remove_folder(str(tmp_path / "file"))


def test_a_folder_that_others_remove_while_it_is_made_is_made_again(
    disk: LocalDisk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a" / "b"
    real = os.mkdir
    gone: list[str] = []

    def mkdir(name: str, mode: int = 0o777) -> None:
        if not gone and name == str(path):
            gone.append("the folder above")
            os.rmdir(tmp_path / "a")
        elif len(gone) == 1 and name == str(path):
            gone.append("itself, that another had made just then")
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), name)
        real(name, mode)

    monkeypatch.setattr(os, "mkdir", mkdir)
    disk.make_folders(str(path))
    assert len(gone) == 2
    assert path.is_dir()
    (tmp_path / "file").write_text("x")
    with pytest.raises(FileExistsError):
        disk.make_folders(str(tmp_path / "file"))


def test_a_folder_whose_removal_is_refused_is_an_error(
    disk: LocalDisk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for code, refused in ((errno.EBUSY, False), (errno.EACCES, True)):

        def refuse(path: str, code: int = code) -> None:
            raise OSError(code, os.strerror(code))

        monkeypatch.setattr(os, "rmdir", refuse)
        if refused:
            with pytest.raises(PermissionError):
                disk.remove_folder(str(tmp_path))
        else:
            assert not disk.remove_folder(str(tmp_path))


def test_files_are_moved_and_removed(disk: LocalDisk, tmp_path: Path) -> None:
    a, b = str(tmp_path / "a"), str(tmp_path / "b")
    Path(a).write_text("x")
    disk.rename(a, b)
    with pytest.raises(FileNotFoundError):
        disk.rename(a, b)
    assert disk.remove(b)
    assert not disk.remove(b)
    Path(a).write_text("x")
    assert not disk.remove(f"{a}/below-a-file")
    assert disk.look(f"{a}/below-a-file") is None
    os.symlink(tmp_path, b)
    assert disk.remove(b)
    assert tmp_path.exists()


def test_looking_and_listing_never_go_through_a_link(disk: LocalDisk, tmp_path: Path) -> None:
    (tmp_path / "f").write_text("12345")
    (tmp_path / "d").mkdir()
    os.symlink(tmp_path / "d", tmp_path / "l")
    changed = (tmp_path / "f").stat().st_mtime_ns
    found = {item.name: item for item in disk.list_folder(str(tmp_path)) or []}
    assert found["f"] == Item("f", folder=False, link=False, size=5, changed=changed)
    assert (found["d"].folder, found["d"].link) == (True, False)
    assert (found["l"].folder, found["l"].link) == (False, True)
    assert {name: disk.look(f"{tmp_path}/{name}") for name in found} == found
    assert disk.list_folder(str(tmp_path / "l")) is None
    assert disk.list_folder(str(tmp_path / "absent")) is None
    assert disk.list_folder(str(tmp_path / "f")) is None
    assert sorted(disk.names(str(tmp_path))) == ["d", "f", "l"]
    assert disk.names(str(tmp_path / "absent")) == disk.names(str(tmp_path / "f")) == []
    assert disk.real(f"{tmp_path}/l") == f"{tmp_path}/d"


def test_a_name_that_goes_while_a_folder_is_listed_is_left_out(
    disk: LocalDisk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "stays").write_text("x")
    (tmp_path / "goes").write_text("x")
    real = os.scandir

    class Scan:
        def __init__(self, path: Any) -> None:
            self._found = real(path)

        def __enter__(self) -> Iterator[Any]:
            found = list(self._found)
            (tmp_path / "goes").unlink(missing_ok=True)
            return iter(found)

        def __exit__(self, *args: object) -> None:
            self._found.close()

    monkeypatch.setattr(os, "scandir", Scan)
    assert [item.name for item in disk.list_folder(str(tmp_path)) or []] == ["stays"]


@pytest.mark.parametrize("size", [0, 3, 4, 5, 1000])
def test_the_ends_of_a_file(disk: LocalDisk, tmp_path: Path, size: int) -> None:
    data = bytes(n % 251 for n in range(size))
    (tmp_path / "f").write_bytes(data)
    assert disk.read_ends(str(tmp_path / "f"), 4) == (data[:4], data[-4:])


@pytest.mark.parametrize(("count", "whole"), [(SYNC_ONE_BY_ONE, False), (SYNC_ONE_BY_ONE + 1, True)])
def test_many_files_are_synced_with_their_file_system_where_that_can_be_done(
    disk: LocalDisk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, count: int, whole: bool
) -> None:
    paths = [tmp_path / str(n) for n in range(count)]
    for path in paths:
        path.write_text("x")
    synced: list[str] = []
    systems: list[str] = []
    can: list[bool] = [True]
    monkeypatch.setattr(os, "fsync", lambda fd: synced.append(os.readlink(f"/proc/self/fd/{fd}")))

    def sync(path: str) -> bool:
        systems.append(path)
        return can[0]

    monkeypatch.setattr(module, "sync_file_system", sync)
    disk.sync_files(map(str, paths))
    assert (synced == [], systems) == (whole, [str(paths[0])] if whole else [])
    can[0] = False
    synced.clear()
    disk.sync_files(map(str, paths))
    disk.sync_folders([str(tmp_path)])
    assert synced == [*map(str, paths), str(tmp_path)]


def test_what_is_inherited_is_asked_of_both(disk: LocalDisk, tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    assert disk.same_inheritance(str(tmp_path / "a"), str(tmp_path))
    with pytest.raises(FileNotFoundError):
        disk.same_inheritance(str(tmp_path / "a"), str(tmp_path / "absent"))
