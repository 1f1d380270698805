"""The memory disk, the fake clock and the kill points: as good as what they stand beside."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from airflow_provider_ubunye.core.disk import Disk, LocalDisk
from airflow_provider_ubunye.core.testing import FakeClock, Killed, KillPoints, MemoryDisk, MemoryStore

NAMES = st.sampled_from(["a", "b", "a/a", "a/b", "b/a", "a/a/b"])
ACTS = st.one_of(
    st.tuples(st.just("write"), NAMES, st.sampled_from([b"", b"x", b"PAR1...PAR1"])),
    st.tuples(st.just("rename"), NAMES, NAMES),
    st.tuples(
        st.sampled_from(
            ["make_folder", "make_folders", "remove", "remove_folder", "list_folder", "names", "look"]
        ),
        NAMES,
    ),
    st.tuples(st.just("read_ends"), NAMES, st.just(4)),
    st.tuples(st.just("sync_file"), NAMES),
    st.tuples(st.just("sync_folder"), NAMES),
)


def _write(disk: Disk, path: str, data: bytes) -> None:
    if isinstance(disk, MemoryDisk):
        disk.write(path, data)
        return
    with open(path, "wb") as file:
        file.write(data)


def _is_folder(disk: Disk, path: str) -> bool:
    item = disk.look(path)
    return item is not None and item.folder


def _act(disk: Disk, root: str, name: str, args: tuple[Any, ...]) -> object:
    """What an act comes to: a value, or the kind of error."""
    paths = [f"{root}/{arg}" if isinstance(arg, str) else arg for arg in args]
    acts: dict[str, Callable[..., Any]] = {
        "write": lambda path, data: _write(disk, path, data),
        # Of a folder it is not asked; Linux would sync one all the same.
        "sync_file": lambda path: None if _is_folder(disk, path) else disk.sync_files([path]),
        "sync_folder": lambda path: disk.sync_folders([path]),
    }
    try:
        found: Any = acts[name](*paths) if name in acts else getattr(disk, name)(*paths)
    except OSError as error:
        return type(error).__name__, error.errno
    if name == "list_folder" and found is not None:
        return sorted((item.name, item.folder, item.size if not item.folder else 0) for item in found)
    if name == "look" and found is not None:
        return found.name, found.folder
    return sorted(found) if name == "names" else found


def _tree(disk: Disk, root: str) -> list[tuple[str, bytes | None]]:
    if isinstance(disk, MemoryDisk):
        return sorted(
            (path.removeprefix(root), None if node is None else node[0])
            for path, node in disk.nodes.items()
            if path.startswith(root + "/")
        )
    found: list[tuple[str, bytes | None]] = []
    for at, folders, files in os.walk(root):
        found += [(f"{at}/{name}".removeprefix(root), None) for name in folders]
        for name in files:
            with open(f"{at}/{name}", "rb") as file:
                found.append((f"{at}/{name}".removeprefix(root), file.read()))
    return sorted(found)


EVERY_ANSWER = [
    ("make_folder", "a"),
    ("make_folder", "a"),
    ("write", "a/a", b"PAR1...PAR1"),
    ("write", "a", b"x"),
    ("write", "b/a", b"x"),
    ("make_folders", "a/a"),
    ("make_folders", "a/a/b"),
    ("make_folders", "b/a"),
    ("remove", "a"),
    ("remove", "a/b"),
    ("remove_folder", "a"),
    ("remove_folder", "a/b"),
    ("list_folder", "a"),
    ("list_folder", "a/a"),
    ("names", "a"),
    ("names", "a/b"),
    ("look", "a/a"),
    ("look", "a/b"),
    ("read_ends", "a/a", 4),
    ("rename", "a/a", "b/a"),
    ("rename", "b/a", "a/b"),
    ("rename", "b/a", "b/a"),
    ("sync_file", "a/b"),
    ("sync_folder", "a"),
    ("remove", "a/a"),
    ("remove", "a/b"),
    ("remove_folder", "a"),
    ("write", "a", b"x"),
    ("remove", "a"),
    ("remove_folder", "b"),
]


@settings(max_examples=150, deadline=None)
@example(acts=EVERY_ANSWER)
@given(acts=st.lists(ACTS, max_size=14))
def test_the_memory_disk_does_what_a_real_one_does(acts: list[tuple[Any, ...]]) -> None:
    with tempfile.TemporaryDirectory() as root:
        local, memory = LocalDisk(), MemoryDisk()
        memory.make_folders("/root")
        for name, *args in acts:
            real = _act(local, root, name, tuple(args))
            kept = _act(memory, "/root", name, tuple(args))
            if isinstance(real, tuple) and isinstance(kept, tuple) and str(real[0]).endswith("Error"):
                assert kept[0] == real[0] or {real[0], kept[0]} <= _SAME, (name, args, real, kept)
            else:
                assert kept == real, (name, args)
            assert _tree(memory, "/root") == _tree(local, root), (name, args)


# Which of two true reasons a file system names first is its own choice.
_SAME = {"NotADirectoryError", "FileNotFoundError", "FileExistsError", "IsADirectoryError", "OSError"}


def test_what_the_memory_disk_alone_can_do() -> None:
    disk = MemoryDisk()
    disk.make_folders("/lake/day=1")
    disk.write("/lake/day=1/a", b"1")
    disk.write("/lake/b", b"2")
    assert disk.read("/lake/b") == b"2"
    assert disk.files() == ["/lake/b", "/lake/day=1/a"]
    assert disk.files("/lake/day=1") == ["/lake/day=1/a"]
    assert disk.real("/lake/./day=1/../b") == "/lake/b"
    assert disk.same_inheritance("/lake", "/lake/day=1")
    disk.rename("/lake/b", "/lake/b")
    with pytest.raises(OSError, match="Invalid argument"):
        disk.rename("/lake", "/lake/day=1/lake")
    with pytest.raises(FileNotFoundError):
        disk.same_inheritance("/lake", "/sea")
    for act in (disk.read, lambda path: disk.sync_files([path])):
        with pytest.raises(IsADirectoryError):
            act("/lake")
        with pytest.raises(FileNotFoundError):
            act("/sea")


@pytest.mark.parametrize(
    ("source", "target", "error"),
    [
        ("/folder", "/file", NotADirectoryError),
        ("/file", "/folder", IsADirectoryError),
        ("/folder", "/full", OSError),
        ("/nothing", "/file", FileNotFoundError),
        ("/file", "/nothing/file", FileNotFoundError),
        ("/folder", "/file/folder", NotADirectoryError),
    ],
)
def test_a_rename_that_posix_refuses(source: str, target: str, error: type[OSError]) -> None:
    disk = MemoryDisk()
    disk.make_folder("/folder")
    disk.make_folders("/full/inside")
    disk.write("/file", b"")
    before = dict(disk.nodes)
    with pytest.raises(error):
        disk.rename(source, target)
    assert disk.nodes == before


def test_a_rename_onto_an_empty_folder_takes_its_place() -> None:
    disk = MemoryDisk()
    disk.make_folder("/empty")
    disk.make_folder("/full")
    disk.write("/full/a", b"1")
    disk.rename("/full", "/empty")
    assert disk.files() == ["/empty/a"]
    assert disk.look("/full") is None


def test_syncing_a_file_as_a_folder_is_refused() -> None:
    disk = MemoryDisk()
    disk.write("/file", b"")
    disk.sync_files(["/file"])
    with pytest.raises(NotADirectoryError):
        disk.sync_folders(["/file"])
    with pytest.raises(FileNotFoundError):
        disk.sync_folders(["/", "/nothing"])


def test_a_point_that_only_looks_lets_the_run_go_on() -> None:
    seen: list[str] = []
    store = KillPoints(at=1, act=seen.append).around(MemoryStore())
    assert store.create("a", b"")
    assert store.create("b", b"")
    assert seen == ["create a"]


def test_a_file_has_the_time_of_the_clock() -> None:
    clock = FakeClock()
    disk = MemoryDisk(clock)
    disk.write("/a", b"1")
    first = disk.look("/a")
    clock.advance(5)
    disk.write("/a", b"1")
    second = disk.look("/a")
    assert first is not None
    assert second is not None
    assert second.changed - first.changed == 5_000_000_000


def test_the_dead_do_nothing_more() -> None:
    store = MemoryStore()
    points = KillPoints(at=2)
    guarded = points.around(store)
    assert guarded.create("a", b"")
    with pytest.raises(Killed):
        guarded.create("b", b"")
    with pytest.raises(Killed):
        guarded.read("a")
    assert points.seen == ["create a", "create b"]
    assert store.list("") == []
    assert sorted(store.data) == ["a"]


def test_kill_points_only_count_without_a_point() -> None:
    points = KillPoints()
    store = points.around(MemoryStore())
    store.create("a", b"")
    store.read("a")
    assert points.seen == ["create a"]
    assert store.where == "memory"
