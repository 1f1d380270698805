"""For tests of what is built on this package, and for its own: state, disk and clock in memory, and kill points.

Nothing here needs a test framework::

    points = KillPoints(at=7)
    setting = Setting(points.around(MemoryStore()), Places("/pipe"), points.around(MemoryDisk()))
    …                                       # dies before the seventh act that changes something
"""

from __future__ import annotations

import errno
import os
import posixpath
from collections.abc import Callable, Iterable
from typing import Any, TypeVar, cast

from airflow_provider_ubunye.core.disk import Item
from airflow_provider_ubunye.core.store.memory import MemoryStore

__all__ = ["CHANGES", "FakeClock", "KillPoints", "Killed", "MemoryDisk", "MemoryStore", "intercepted", "kill"]

T = TypeVar("T")

CHANGES = frozenset(
    {
        "create",
        "delete",
        "put",
        "beat",
        "make_folder",
        "make_folders",
        "rename",
        "remove",
        "remove_folder",
        "write",
    }
)
"""The acts of a store or disk that change something."""


class FakeClock:
    """A clock that moves when it is told to: pass it wherever a ``clock`` is asked for.

    :param now: seconds that it shows first.
    """

    def __init__(self, now: float = 1_000_000.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now

    def advance(self, seconds: float) -> None:
        """Move the clock; backwards too."""
        self.now += seconds


class MemoryDisk:
    """A POSIX file system in memory: a :class:`.disk.Disk` without links, and :meth:`write` and :meth:`read`.

    A writer that is given a staging folder writes through this object, not through the operating system.
    Each method is one step. Does not promise thread safety, and keeps no permissions.

    :param clock: seconds, for mtimes.
    """

    def __init__(self, clock: Callable[[], float] | None = None) -> None:
        self._clock = clock or FakeClock()
        self.nodes: dict[str, tuple[bytes, int] | None] = {"/": None}
        """Path to content and mtime in ns of a file, to None of a folder."""

    def write(self, path: str, data: bytes) -> None:
        """Write a whole file, replacing one that is there."""
        self._need_parent(path)
        if path in self.nodes and self.nodes[path] is None:
            raise _error(errno.EISDIR, path)
        self.nodes[path] = (data, int(self._clock() * 1e9))

    def read(self, path: str) -> bytes:
        """The content of a file."""
        return self._file(path)[0]

    def files(self, below: str = "/") -> list[str]:
        """Every file below a folder, sorted: absolute paths."""
        start = below.rstrip("/") + "/"
        return sorted(p for p, node in self.nodes.items() if node is not None and p.startswith(start))

    def make_folder(self, path: str) -> None:
        self._need_parent(path)
        if path in self.nodes:
            raise _error(errno.EEXIST, path)
        self.nodes[path] = None

    def make_folders(self, path: str) -> None:
        missing = []
        at = path
        while at not in self.nodes:
            missing.append(at)
            at = posixpath.dirname(at)
        if self.nodes[at] is not None:
            raise _error(errno.EEXIST if at == path else errno.ENOTDIR, at)
        for folder in missing:
            self.nodes[folder] = None

    def rename(self, source: str, target: str) -> None:
        if source not in self.nodes:
            raise _error(errno.ENOENT, source)
        self._need_parent(target)
        if target == source:
            return
        folder = self.nodes[source] is None
        if folder and target.startswith(source + "/"):
            raise _error(errno.EINVAL, target)
        if target in self.nodes:
            onto = self.nodes[target] is None
            if folder and not onto:
                raise _error(errno.ENOTDIR, target)
            if onto and not folder:
                raise _error(errno.EISDIR, target)
            if onto and self._inside(target):
                raise _error(errno.ENOTEMPTY, target)
        for path in [source, *self._below(source)]:
            self.nodes[target + path[len(source) :]] = self.nodes.pop(path)

    def remove(self, path: str) -> bool:
        if path not in self.nodes:
            return False
        if self.nodes[path] is None:
            raise _error(errno.EISDIR, path)
        del self.nodes[path]
        return True

    def remove_folder(self, path: str) -> bool:
        if path not in self.nodes or self.nodes[path] is not None or self._inside(path):
            return False
        del self.nodes[path]
        return True

    def list_folder(self, path: str) -> list[Item] | None:
        path = path.rstrip("/") or "/"
        if path not in self.nodes or self.nodes[path] is not None:
            return None
        return [self._item(inside) for inside in self._inside(path)]

    def names(self, path: str) -> list[str]:
        return [item.name for item in self.list_folder(path) or []]

    def look(self, path: str) -> Item | None:
        return self._item(path) if path in self.nodes else None

    def real(self, path: str) -> str:
        return posixpath.normpath(path)

    def same_inheritance(self, a: str, b: str) -> bool:
        for path in (a, b):
            if path not in self.nodes:
                raise _error(errno.ENOENT, path)
        return True

    def read_ends(self, path: str, count: int) -> tuple[bytes, bytes]:
        data = self._file(path)[0]
        return data[:count], data[-count:]

    def sync_files(self, paths: Iterable[str]) -> None:
        for path in paths:
            self._file(path)

    def sync_folders(self, paths: Iterable[str]) -> None:
        for path in paths:
            if path not in self.nodes:
                raise _error(errno.ENOENT, path)
            if self.nodes[path] is not None:
                raise _error(errno.ENOTDIR, path)

    def _file(self, path: str) -> tuple[bytes, int]:
        if path not in self.nodes:
            raise _error(errno.ENOENT, path)
        node = self.nodes[path]
        if node is None:
            raise _error(errno.EISDIR, path)
        return node

    def _need_parent(self, path: str) -> None:
        parent = posixpath.dirname(path)
        if parent not in self.nodes:
            raise _error(errno.ENOENT, path)
        if self.nodes[parent] is not None:
            raise _error(errno.ENOTDIR, path)

    def _below(self, path: str) -> list[str]:
        start = path.rstrip("/") + "/"
        return [p for p in self.nodes if p.startswith(start) and p != start]

    def _inside(self, path: str) -> list[str]:
        return sorted(p for p in self._below(path) if posixpath.dirname(p) == path)

    def _item(self, path: str) -> Item:
        node = self.nodes[path]
        size, changed = (0, 0) if node is None else (len(node[0]), node[1])
        return Item(posixpath.basename(path), node is None, link=False, size=size, changed=changed)


def _error(code: int, path: str) -> OSError:
    return OSError(code, os.strerror(code), path)


class _Intercepted:
    def __init__(self, target: object, act: Callable[[str, tuple[Any, ...], Callable[[], Any]], Any]) -> None:
        self._target = target
        self._act = act

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._target, name)
        if not callable(found):
            return found
        return lambda *args: self._act(name, args, lambda: found(*args))


def intercepted(target: T, act: Callable[[str, tuple[Any, ...], Callable[[], Any]], Any]) -> T:
    """A store or disk each of whose acts goes through ``act``.

    :param act: called with the act's name, its arguments and the act itself; what it returns is the result.
    """
    return cast("T", _Intercepted(target, act))


class Killed(BaseException):
    """The process is dead from here on: raised at a kill point, and by every act after it."""


def kill(what: str) -> None:
    """Die at a kill point.

    :raises Killed: always.
    """
    raise Killed(what)


class KillPoints:
    """Counts the acts that change something, and does something before the n-th of them.

    One object serves the store and the disk of one run, so the count goes over both.

    :param at: which act, from 1; None only counts.
    :param act: what to do there: :func:`kill`, raise an error, or pause, carry on another run and return.
        After :class:`Killed` every further act, of whatever kind, raises it again: the dead do nothing.

    :ivar seen: the names of the acts so far, with their first argument.
    """

    def __init__(self, at: int | None = None, act: Callable[[str], None] = kill) -> None:
        self.at = at
        self.seen: list[str] = []
        self._act = act
        self._dead: Killed | None = None

    def around(self, target: T) -> T:
        """A store or disk with these kill points in it."""
        return intercepted(target, self._point)

    def _point(self, name: str, args: tuple[Any, ...], act: Callable[[], Any]) -> Any:
        if self._dead is not None:
            raise self._dead
        if name in CHANGES:
            self.seen.append(f"{name} {args[0]}")
            if len(self.seen) == self.at:
                try:
                    self._act(self.seen[-1])
                except Killed as dead:
                    self._dead = dead
                    raise
        return act()
