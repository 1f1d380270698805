"""What landing needs of a file system, and the local or shared disk that gives it.

A second implementation (Hadoop's file system, the memory of the model checker) gives the same few acts with
the same promises, so landing, fencing and taking back exist once.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Protocol, TypeVar

from airflow_provider_ubunye.core.localdisk import (
    again_if_swept,
    retry_in_use,
    same_inheritance,
    sync_file,
    sync_file_system,
    sync_folder,
)

T = TypeVar("T")

SYNC_ONE_BY_ONE = 8
"""Up to this many files or folders are synced one by one; more of them by one sync of the file system."""


@dataclass(frozen=True)
class Item:
    """One name in a folder.

    :param folder: a real folder; a link to one is a link.
    :param size: bytes, for a file.
    :param changed: mtime in ns, for a file.
    """

    name: str
    folder: bool
    link: bool
    size: int
    changed: int


class Disk(Protocol):
    """A file system where a rename is one step. Paths are absolute, with forward slashes.

    Every method raises :class:`OSError` when the file system refuses for a reason not named here.
    """

    def make_folder(self, path: str) -> None:
        """Make one folder. :raises FileExistsError: there already. :raises FileNotFoundError: no parent."""

    def make_folders(self, path: str) -> None:
        """Make a folder and its parents, as far as they are missing."""

    def rename(self, source: str, target: str) -> None:
        """Move a file or folder in one step. :raises FileNotFoundError: no source, or no target folder."""

    def remove(self, path: str) -> bool:
        """Remove a file or link. False when it is absent."""

    def remove_folder(self, path: str) -> bool:
        """Remove a folder that is empty. False when it is absent or holds anything."""

    def list_folder(self, path: str) -> list[Item] | None:
        """The names in a folder, None when it is absent. A link to a folder is never read through."""

    def names(self, path: str) -> list[str]:
        """The names in a folder, and nothing more about them; none when it is absent."""

    def look(self, path: str) -> Item | None:
        """What is at a path, not following a link there; None when absent."""

    def real(self, path: str) -> str:
        """The path with every link on the way resolved."""

    def same_inheritance(self, a: str, b: str) -> bool:
        """Whether files made in both folders get the same group and ACL."""

    def read_ends(self, path: str, count: int) -> tuple[bytes, bytes]:
        """The first and the last ``count`` bytes of a file."""

    def sync_files(self, paths: Iterable[str]) -> None:
        """Make the content of files durable."""

    def sync_folders(self, paths: Iterable[str]) -> None:
        """Make the names in folders durable."""


class LocalDisk:
    """A local or shared disk through the operating system."""

    def make_folder(self, path: str) -> None:
        os.mkdir(path)

    def make_folders(self, path: str) -> None:
        # Another run may remove a folder on the way, empty as it is, before the one below it is made.
        again_if_swept(lambda: _make_folders(path))

    def rename(self, source: str, target: str) -> None:
        os.rename(source, target)

    def remove(self, path: str) -> bool:
        try:
            retry_in_use(lambda: os.unlink(path))
        except OSError as error:
            return _absent(error, False)
        return True

    def remove_folder(self, path: str) -> bool:
        try:
            os.rmdir(path)
        except OSError as error:
            if error.errno in (errno.ENOTEMPTY, errno.EEXIST, errno.EBUSY):
                return False
            return _absent(error, False)
        return True

    def list_folder(self, path: str) -> list[Item] | None:
        if os.path.islink(path):
            return None
        try:
            with os.scandir(path) as found:
                entries = list(found)
        except OSError as error:
            return _absent(error, None)
        items = []
        for entry in entries:
            try:
                items.append(_item(entry.name, entry.stat(follow_symlinks=False)))
            except FileNotFoundError:
                continue
        return items

    def names(self, path: str) -> list[str]:
        try:
            return os.listdir(path)
        except OSError as error:
            return _absent(error, [])

    def look(self, path: str) -> Item | None:
        try:
            return _item(os.path.basename(path), os.lstat(path))
        except OSError as error:
            return _absent(error, None)

    def real(self, path: str) -> str:
        return os.path.realpath(path)

    def same_inheritance(self, a: str, b: str) -> bool:
        return same_inheritance(a, b)

    def read_ends(self, path: str, count: int) -> tuple[bytes, bytes]:
        # Without a file object: a run may ask this of thousands of files.
        fd = os.open(path, os.O_RDONLY | getattr(os, "O_BINARY", 0))
        try:
            first = os.read(fd, count)
            os.lseek(fd, max(os.fstat(fd).st_size - count, 0), os.SEEK_SET)
            return first, os.read(fd, count)
        finally:
            os.close(fd)

    def sync_files(self, paths: Iterable[str]) -> None:
        self._sync(list(paths), sync_file)

    def sync_folders(self, paths: Iterable[str]) -> None:
        self._sync(list(paths), sync_folder)

    def _sync(self, paths: list[str], one: Callable[[str], None]) -> None:
        if len(paths) > SYNC_ONE_BY_ONE and sync_file_system(paths[0]):
            return
        for path in paths:
            one(path)


def _make_folders(path: str) -> None:
    try:
        os.makedirs(path, exist_ok=True)
    except FileExistsError:
        if os.path.lexists(path):
            raise
        # It was there, and went before that could be seen.
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path) from None


def _absent(error: OSError, answer: T) -> T:
    """The answer for a path at which there can be nothing; any other error is raised again."""
    if error.errno in (errno.ENOENT, errno.ENOTDIR, errno.ENAMETOOLONG):
        return answer
    raise error


def _item(name: str, status: os.stat_result) -> Item:
    return Item(
        name=name,
        folder=stat.S_ISDIR(status.st_mode),
        link=stat.S_ISLNK(status.st_mode),
        size=status.st_size,
        changed=status.st_mtime_ns,
    )
