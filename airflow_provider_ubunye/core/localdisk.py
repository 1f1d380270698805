"""Small acts on a local or shared disk that several modules need, each with its reason."""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

# Read at run time, so that one machine checks and tests every branch.
LINUX: bool = sys.platform == "linux"
WINDOWS: bool = sys.platform == "win32"

IN_USE_SECONDS = 2.0
"""For how long a file that Windows says is in use is tried again (reference, F-048)."""


SWEPT_TRIES = 100
"""How often something that others sweep away is made again."""


def retry_in_use(act: Callable[[], T]) -> T:
    """Carry out ``act``; on Windows, try again for two seconds while the file is in use elsewhere.

    Elsewhere a PermissionError is about permissions, and waiting would not change it.
    """
    if not WINDOWS:
        return act()
    end = time.monotonic() + IN_USE_SECONDS
    while True:
        try:
            return act()
        except PermissionError:
            if time.monotonic() >= end:
                raise
            time.sleep(0.05)


def again_if_swept(act: Callable[[], T]) -> T:
    """Carry out ``act``; again when it finds gone what it made itself a moment ago, a temp file or a folder.

    Whoever sweeps away what a kill left can't tell it from what a live run is just making.

    :raises FileNotFoundError: it goes again and again, or something else is missing.
    """
    for _ in range(SWEPT_TRIES):
        with contextlib.suppress(FileNotFoundError):
            return act()
    return act()


def sync_folder(path: str) -> None:
    """Make the names in a folder durable. Windows has no such call and needs none."""
    if WINDOWS:
        return
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def sync_file(path: str) -> None:
    """Make a file's content durable."""
    fd = os.open(path, os.O_RDWR if WINDOWS else os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def sync_file_system(path: str) -> bool:
    """Make everything on the file system that holds ``path`` durable in one call, where there is one.

    :returns: False where there is none (not Linux): sync each file and folder instead.
    :raises OSError: the disk refused; nothing may be taken for durable.
    """
    if not LINUX:
        return False
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    fd = os.open(path, os.O_RDONLY)
    try:
        if libc.syncfs(fd) != 0:
            code = ctypes.get_errno()
            raise OSError(code, os.strerror(code), path)
    finally:
        os.close(fd)
    return True


def same_inheritance(a: str, b: str) -> bool:
    """Whether a file made in folder ``a`` gets the group and ACL that one made in ``b`` would get."""
    return _inherits(a) == _inherits(b)


def _inherits(folder: str) -> tuple[int | None, bytes | None]:
    status = os.stat(folder)
    group = status.st_gid if status.st_mode & 0o2000 else None
    acl = None
    if hasattr(os, "getxattr"):
        with contextlib.suppress(OSError):
            acl = os.getxattr(folder, "system.posix_acl_default")
    return group, acl
