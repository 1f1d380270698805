"""Every mutating file-system call that Python code makes below one folder, seen just before it happens.

Audit hooks report opening, renaming, removing, making folders, linking and touching. Writes and syncs go
unreported, so files opened for writing are wrapped, and ``os.write`` and ``os.fsync`` too. A hook can't be
taken out again: call :func:`watch` in a process of its own.
"""

from __future__ import annotations

import builtins
import io
import os
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Act = Callable[["Call"], None]

_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC
# Audit event to how many of its arguments are paths.
_EVENTS = {
    "os.rename": 2,
    "os.link": 2,
    "os.symlink": 2,
    "os.remove": 1,
    "os.mkdir": 1,
    "os.rmdir": 1,
    "os.utime": 1,
    "os.truncate": 1,
    "os.chmod": 1,
    "os.chown": 1,
    "os.setxattr": 1,
}


@dataclass(frozen=True)
class Call:
    """One call that is about to happen.

    :param number: from 1.
    :param kind: ``open``, ``write``, ``fsync``, ``syncfs``, ``rename``, ``link``, ``remove``, …
    :param paths: the paths it is about.
    """

    number: int
    kind: str
    paths: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.number} {self.kind} {' -> '.join(self.paths)}"


def watch(under: str, act: Act) -> None:
    """Have ``act`` called in this process before each mutating call of the calling thread below ``under``."""
    watcher = _Watcher(under, act)
    sys.addaudithook(watcher.audit)
    os_write, os_fsync = os.write, os.fsync

    def write(fd: int, data: Any) -> int:
        watcher.seen("write", _path_of(fd))
        return os_write(fd, data)

    def fsync(fd: Any) -> None:
        watcher.seen("fsync", _path_of(fd if isinstance(fd, int) else fd.fileno()))
        os_fsync(fd)

    os.write, os.fsync = write, fsync
    builtins.open = io.open = watcher.open


class _Watcher:
    def __init__(self, under: str, act: Act) -> None:
        self._under = os.path.join(under, "")
        self._act = act
        self._thread = threading.get_ident()
        self._open = io.open
        self._count = 0
        self._busy = False

    def seen(self, kind: str, *paths: str) -> None:
        if self._busy or threading.get_ident() != self._thread:
            return
        if kind != "syncfs" and not any(path.startswith(self._under) for path in paths):
            return
        self._count += 1
        self._busy = True
        try:
            self._act(Call(self._count, kind, paths))
        finally:
            self._busy = False

    def audit(self, event: str, args: tuple[Any, ...]) -> None:
        if event == "open":
            if args[2] & _WRITES and not isinstance(args[0], int):
                self.seen("open", _text(args[0]))
        elif event in _EVENTS:
            paths = args[: _EVENTS[event]]
            self.seen(event.removeprefix("os."), *(_text(p) for p in paths))
        elif event == "ctypes.dlsym" and args[1] == "syncfs":
            self.seen("syncfs")

    def open(
        self,
        file: Any,
        mode: str = "r",
        buffering: int = -1,
        encoding: str | None = None,
        errors: str | None = None,
        newline: str | None = None,
        closefd: bool = True,
        opener: Any = None,
    ) -> Any:
        if not set(mode) & set("wxa+"):
            return self._open(file, mode, buffering, encoding, errors, newline, closefd, opener)
        raw = _Raw(file, mode.replace("b", "").replace("t", ""), closefd, opener)
        raw.watcher = self
        buffered = io.BufferedWriter(raw)
        return buffered if "b" in mode else io.TextIOWrapper(buffered, encoding, errors, newline)


class _Raw(io.FileIO):
    watcher: _Watcher

    def write(self, data: Any) -> int:
        self.watcher.seen("write", _text(self.name))
        return super().write(data)


def _text(path: Any) -> str:
    return _path_of(path) if isinstance(path, int) else os.path.abspath(os.fsdecode(path))


def _path_of(fd: int) -> str:
    return os.readlink(f"/proc/self/fd/{fd}")
