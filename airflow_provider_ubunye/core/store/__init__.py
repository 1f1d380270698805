"""Batch stores: where the state of batches lives."""

from __future__ import annotations

import errno
import os
import re
import unicodedata

from airflow_provider_ubunye.core.errors import UsageError
from airflow_provider_ubunye.core.store.base import (
    MARK,
    BatchStore,
    StoreBroken,
    StoreUnusable,
    self_test,
    unusable,
)
from airflow_provider_ubunye.core.store.file import FileStore
from airflow_provider_ubunye.core.store.memory import MemoryStore

__all__ = [
    "MARK",
    "BatchStore",
    "FileStore",
    "MemoryStore",
    "StoreBroken",
    "StoreUnusable",
    "open_store",
    "self_test",
    "store_folder",
]


# Two letters at least: C:/data is a Windows drive.
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.\-]+):/|(file):", re.IGNORECASE)
_FILE = re.compile(r"file:(//(localhost)?(?=/))?", re.IGNORECASE)
_GIVE = "give a folder on a disk: --state FOLDER or UBUNYE_STATE"


def store_folder(uri: str) -> str:
    """The folder that a state store's name means, read as the config's paths are. Nothing is opened.

    A name that is read in another way than it was meant would make a second, empty store: every batch in it is
    unknown, and runs again.

    :param uri: a folder, or ``file:///folder``.
    :raises UsageError: it is not plainly one of the two.
    """
    if not uri.strip() or "\0" in uri:
        raise UsageError("the state store's name is empty or has a NUL", hint=_GIVE)
    if uri != uri.strip() or any(unicodedata.category(c) == "Cc" for c in uri):
        raise UsageError(f"the state store {uri[:80]!r} is padded or has a control character", hint=_GIVE)
    folder = uri
    if scheme := _SCHEME.match(uri):
        kind = (scheme[1] or scheme[2]).lower()
        if kind != "file":
            raise UsageError(
                f"a state store of kind {kind!r} is not built yet",
                hint="name a folder on a disk that all share",
            )
        folder = _FILE.sub("", uri, count=1)
        if "%" in folder or not folder.startswith("/") or folder.startswith("//"):
            raise UsageError(
                f"the state store {uri[:80]!r} is no plain file: URI",
                hint="write file:///FOLDER with the whole path, or the folder itself",
            )
    if folder.startswith("~"):
        raise UsageError(f"the state store {uri[:80]!r}: '~' is not expanded", hint="write the whole path")
    return folder


def open_store(uri: str, *, testing: bool = True) -> BatchStore:
    """Open the store that a URI names, and let it pass the self-test.

    :param uri: as :func:`store_folder`.
    :param testing: False for who only looks: nothing is written then, and nothing may be run.
    :raises UsageError: a kind of store that is not built yet, or a text that names none.
    :raises StoreUnusable: the store can't be read or written, or does not keep its promise.
    """
    store = FileStore(store_folder(uri))
    if testing:
        self_test(store)
    elif os.path.lexists(store.root) and not os.path.isdir(store.root):
        raise unusable(store.where, NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR)))
    return store
