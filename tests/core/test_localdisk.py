"""Small acts on a disk: syncs, Windows' in-use files, what a file inherits."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from airflow_provider_ubunye.core import localdisk as module
from airflow_provider_ubunye.core.localdisk import (
    SWEPT_TRIES,
    again_if_swept,
    retry_in_use,
    same_inheritance,
    sync_file,
    sync_file_system,
    sync_folder,
)


def in_use(times: int) -> tuple[Callable[[], str], list[int]]:
    calls: list[int] = []

    def act() -> str:
        calls.append(1)
        if len(calls) <= times:
            raise PermissionError("in use")
        return "done"

    return act, calls


def test_elsewhere_a_permission_is_not_waited_for() -> None:
    act, calls = in_use(1)
    with pytest.raises(PermissionError):
        retry_in_use(act)
    assert len(calls) == 1


def test_on_windows_a_file_in_use_is_tried_again_for_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "WINDOWS", True)
    act, calls = in_use(2)
    assert retry_in_use(act) == "done"
    assert len(calls) == 3
    monkeypatch.setattr(module, "IN_USE_SECONDS", 0.1)
    act, calls = in_use(10**6)
    with pytest.raises(PermissionError):
        retry_in_use(act)
    assert len(calls) > 1


def test_what_others_sweep_away_is_made_again_and_not_for_ever() -> None:
    calls: list[int] = []

    def swept() -> int:
        calls.append(1)
        if len(calls) < 3:
            raise FileNotFoundError
        return len(calls)

    assert again_if_swept(swept) == 3

    def always() -> None:
        calls.append(1)
        raise FileNotFoundError

    calls.clear()
    with pytest.raises(FileNotFoundError):
        again_if_swept(always)
    assert len(calls) == SWEPT_TRIES + 1


def test_files_and_folders_are_synced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "x"
    path.write_text("x")
    synced: list[str] = []
    monkeypatch.setattr(os, "fsync", lambda fd: synced.append(os.readlink(f"/proc/self/fd/{fd}")))
    sync_file(str(path))
    sync_folder(str(tmp_path))
    assert synced == [str(path), str(tmp_path)]
    monkeypatch.setattr(module, "WINDOWS", True)
    sync_folder(str(tmp_path))
    sync_file(str(path))
    assert synced == [str(path), str(tmp_path), str(path)], "a folder can't be synced there"


def test_a_file_system_is_synced_in_one_call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert sync_file_system(str(tmp_path))
    with pytest.raises(FileNotFoundError):
        sync_file_system(str(tmp_path / "absent"))
    monkeypatch.setattr(module, "LINUX", False)
    assert not sync_file_system(str(tmp_path))


def test_a_sync_that_the_disk_refuses_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import ctypes

    class Refusing:
        def __init__(self, *args: object, **how: object) -> None:
            pass

        def syncfs(self, fd: int) -> int:
            ctypes.set_errno(5)
            return -1

    monkeypatch.setattr(ctypes, "CDLL", Refusing)
    with pytest.raises(OSError, match="Input/output error"):
        sync_file_system(str(tmp_path))


def test_a_group_that_one_folder_hands_down_is_no_match_for_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    a, b = tmp_path / "a", tmp_path / "b"
    a.mkdir()
    b.mkdir()
    assert same_inheritance(str(a), str(b))
    os.chown(b, -1, 4321)
    assert same_inheritance(str(a), str(b)), "without setgid a file gets its writer's group"
    b.chmod(0o2755)
    assert not same_inheritance(str(a), str(b))
    monkeypatch.delattr(os, "getxattr")
    b.chmod(0o755)
    assert same_inheritance(str(a), str(b))
