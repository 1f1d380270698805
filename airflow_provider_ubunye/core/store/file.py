"""A batch store in a folder: one machine, or a disk that machines share.

``create`` writes a temp file and gives it its name with a hard link, which fails when the name exists and
never shows half a file. Where links are not to be had (SMB, many FUSE mounts) a temp *folder* that holds
the entry is renamed onto the name: a rename onto a non-empty folder is refused everywhere. An exclusive
open is never used: it shows others an empty file, and a writer that dies then leaves it for ever.
"""

from __future__ import annotations

import builtins
import contextlib
import errno
import functools
import os
import re
import uuid
from collections.abc import Callable, Iterable, Iterator

from airflow_provider_ubunye.core.localdisk import LINUX, again_if_swept, retry_in_use, sync_folder

NETWORK_CACHING = 60.0
"""Seconds for which an NFS or SMB client may show an old state (their attribute caches' usual limit)."""

_LOCAL = frozenset(
    {
        "ext2",
        "ext3",
        "ext4",
        "xfs",
        "btrfs",
        "tmpfs",
        "ramfs",
        "overlay",
        "zfs",
        "f2fs",
        "apfs",
        "hfs",
        "ntfs",
    }
)
_NO_LINKS = frozenset(
    {errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK, errno.EINVAL}
)
_TEMP = ".tmp-"
_INSIDE = "entry"


class FileStore:
    """A store below a folder, made on first use.

    Promises exclusive create and durability as far as the file system keeps them through ``fsync``. Does not
    promise anything for a folder that is copied or restored while batches run.

    :param root: the state folder.
    """

    def __init__(self, root: str | os.PathLike[str]) -> None:
        self.root = os.path.abspath(os.fspath(root))
        self.where = self.root

    @functools.cached_property
    def caching(self) -> float:
        return 0.0 if file_system_of(self.root) in _LOCAL else NETWORK_CACHING

    def create(self, key: str, data: bytes) -> bool:
        path = self._path(key)
        # The holder that prunes the batch sweeps this temp file away.
        won = again_if_swept(lambda: self._create(path, data))
        # Lost to the very same bytes: to an earlier try of the same create, whose sync may have failed.
        if won or self._holds(path, data):
            sync_folder(os.path.dirname(path))
        return won

    def _holds(self, path: str, data: bytes) -> bool:
        try:
            return _content(path) == data
        except OSError:
            return False

    def _create(self, path: str, data: bytes) -> bool:
        self._make_folder(os.path.dirname(path))
        temp = self._temp(path)
        try:
            _write_durably(temp, data)
            return _name(temp, path)
        except OSError:
            with contextlib.suppress(OSError):
                _remove(temp)
            raise

    def read(self, key: str) -> bytes | None:
        return _content(self._path(key))

    def list(self, prefix: str) -> builtins.list[str]:
        # A folder is not read in one instant. Two readings that agree miss no key that stood through both,
        # not even where one name went and its successor came while the first was under way.
        found = self._list(prefix)
        while (again := self._list(prefix)) != found:
            found = again
        return found

    def _list(self, prefix: str) -> builtins.list[str]:
        base = self._path(prefix)
        found = [f"{prefix}/{name}" for name in _walk(base)]
        if found:
            # A folder may hold thousands of batches. Beside one that is begun only these two still matter.
            beside = [name for name in (".finished.json", ".json") if os.path.lexists(base + name)]
        else:
            folder, name = os.path.split(base)
            beside = [n.removeprefix(name) for n in _names(folder) if n.startswith(name + ".")]
        return sorted(found + [prefix + ending for ending in beside])

    def delete(self, keys: Iterable[str]) -> None:
        # The root too: there a killed self-test may have left something, and nobody prunes it.
        folders = {self.root}
        for key in keys:
            path = self._path(key)
            folders.add(os.path.dirname(path))
            _remove(path)
        for folder in folders:
            # What a create or put left when it was killed. A live one that loses its temp file so makes
            # another.
            _sweep(folder)

    def put(self, key: str, data: bytes, check: Callable[[], None] = lambda: None) -> None:
        path = self._path(key)
        # Beside the batch's entries, where a prune sweeps what a kill leaves.
        folder = path.removesuffix(".finished.json")
        folder = folder if os.path.isdir(folder) else os.path.dirname(path)
        self._make_folder(os.path.dirname(path))
        self._make_folder(folder)
        again_if_swept(lambda: self._put(path, folder, data, check))

    def _put(self, path: str, folder: str, data: bytes, check: Callable[[], None]) -> None:
        temp = os.path.join(folder, _TEMP + uuid.uuid4().hex)
        try:
            # Whoever sleeps between its check and its rename loses its temp file to the next put here,
            # and is asked again.
            _sweep(folder)
            _write_durably(temp, data)
            check()
            retry_in_use(lambda: os.replace(temp, path))
        except BaseException:
            with contextlib.suppress(OSError):
                _remove(temp)
            raise

    def beat(self, key: str) -> bool:
        try:
            # No time given: the server that holds the disk sets its own, so no two clocks are compared.
            os.utime(self._path(key), None)
        except (FileNotFoundError, NotADirectoryError):
            return False
        return True

    def age(self, key: str) -> float | None:
        path = self._path(key)
        try:
            beaten = os.stat(path).st_mtime
        except (FileNotFoundError, NotADirectoryError):
            return None
        return again_if_swept(lambda: self._now(path)) - beaten

    def _now(self, path: str) -> float:
        """The time by the clock of the disk that holds ``path``."""
        probe = self._temp(path)
        try:
            with open(probe, "xb"):
                pass
            os.utime(probe, None)
            return os.stat(probe).st_mtime
        finally:
            with contextlib.suppress(OSError):
                os.unlink(probe)

    def _path(self, key: str) -> str:
        return os.path.join(self.root, *key.split("/"))

    def _temp(self, path: str) -> str:
        return os.path.join(os.path.dirname(path), _TEMP + uuid.uuid4().hex)

    def _make_folder(self, folder: str) -> None:
        if os.path.isdir(folder):
            return
        missing = []
        at = folder
        while not os.path.isdir(at):
            missing.append(at)
            at = os.path.dirname(at)
        os.makedirs(folder, exist_ok=True)
        for made in missing:
            sync_folder(os.path.dirname(made))


def file_system_of(path: str) -> str:
    """The type of the file system that holds ``path``: ``"ext4"``, ``"nfs4"``; empty when unknown."""
    at = os.path.realpath(path)
    best, kind = "", ""
    for mount, name in _mounts():
        inside = at == mount or at.startswith(mount.rstrip(os.sep) + os.sep)
        if inside and len(mount) >= len(best):
            best, kind = mount, name.lower()
    return kind


def _mounts() -> Iterator[tuple[str, str]]:
    """Every mount point and the type of its file system."""
    if not LINUX:
        import psutil

        for part in psutil.disk_partitions(all=True):
            yield part.mountpoint, part.fstype
        return
    # psutil reads the same file; importing it costs more than looking at a whole store.
    try:
        with open("/proc/self/mounts", encoding="utf-8", errors="surrogateescape") as file:
            lines = file.readlines()
    except OSError:
        return
    for line in lines:
        _, mount, kind, *_ = line.split(" ")
        # Blank, tab, newline and backslash are written in octal.
        yield re.sub(r"\\([0-7]{3})", lambda found: chr(int(found[1], 8)), mount), kind


def _write_durably(path: str, data: bytes) -> None:
    with open(path, "xb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def _name(temp: str, path: str) -> bool:
    """Give the finished temp file its name; False when the name is taken."""
    try:
        os.link(temp, path)
    except FileExistsError:
        _remove(temp)
        return False
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        return _name_as_folder(temp, path)
    # It may be gone: a prune sweeps temp files, and the name stands all the same.
    _remove(temp)
    return True


def _name_as_folder(temp: str, path: str) -> bool:
    folder = temp + ".d"
    os.mkdir(folder)
    try:
        os.rename(temp, os.path.join(folder, _INSIDE))
        sync_folder(folder)
        os.rename(folder, path)
    except OSError as error:
        _remove(folder)
        if error.errno in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR) or os.path.lexists(path):
            return False
        raise
    return True


def _content(path: str) -> bytes | None:
    """What is stored under a name, as a file or as a folder that holds it.

    :raises IsADirectoryError: a folder that holds nothing of the store's. The name is not free.
    """
    try:
        return retry_in_use(lambda: _read(path))
    except IsADirectoryError:
        inside = retry_in_use(lambda: _read(os.path.join(path, _INSIDE)))
    if inside is None and os.path.isdir(path):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
    return inside


def _read(path: str) -> bytes | None:
    try:
        with open(path, "rb") as file:
            return file.read()
    except (FileNotFoundError, NotADirectoryError):
        return None


def _names(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except (FileNotFoundError, NotADirectoryError):
        return []


def _walk(base: str, inside: str = "") -> Iterator[str]:
    try:
        with os.scandir(base) as found:
            items = list(found)
    except (FileNotFoundError, NotADirectoryError):
        return
    for item in items:
        if item.name.startswith(_TEMP):
            continue
        if item.is_dir(follow_symlinks=False) and not os.path.lexists(os.path.join(item.path, _INSIDE)):
            yield from _walk(item.path, f"{inside}{item.name}/")
        else:
            yield inside + item.name


def _sweep(folder: str) -> None:
    """Remove every temp file in a folder."""
    with contextlib.suppress(FileNotFoundError), os.scandir(folder) as items:
        for item in items:
            if item.name.startswith(_TEMP):
                _remove(item.path)


def _remove(path: str) -> None:
    try:
        if os.path.isdir(path) and not os.path.islink(path):
            # Out of the way first: a reader must never meet the folder without what it holds.
            held = os.path.lexists(os.path.join(path, _INSIDE))
            if held and not os.path.basename(path).startswith(_TEMP):
                aside = os.path.join(os.path.dirname(path), _TEMP + uuid.uuid4().hex)
                os.rename(path, aside)
                path = aside
            with contextlib.suppress(FileNotFoundError):
                os.unlink(os.path.join(path, _INSIDE))
            os.rmdir(path)
        else:
            retry_in_use(lambda: os.unlink(path))
    except FileNotFoundError:
        pass
