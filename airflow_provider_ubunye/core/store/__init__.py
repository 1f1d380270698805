"""Batch stores: where the state of batches lives."""

from __future__ import annotations

import errno
import os

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
]


def open_store(uri: str, *, testing: bool = True) -> BatchStore:
    """Open the store that a URI names, and let it pass the self-test.

    :param uri: a folder, or ``file:///folder``.
    :param testing: False for who only looks: nothing is written then, and nothing may be run.
    :raises UsageError: a kind of store that is not built yet, or a text that names none.
    :raises StoreUnusable: the store can't be read or written, or does not keep its promise.
    """
    scheme, colon, rest = uri.partition("://")
    if not uri.strip() or "\0" in uri:
        raise UsageError(
            "the state store's name is empty or has a NUL", hint="--state FOLDER or UBUNYE_STATE"
        )
    if colon and scheme != "file":
        raise UsageError(
            f"a state store of kind {scheme!r} is not built yet",
            hint="name a folder on a disk that all share",
        )
    store = FileStore(rest if colon else uri)
    if testing:
        self_test(store)
    elif os.path.lexists(store.root) and not os.path.isdir(store.root):
        raise unusable(store.where, NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR)))
    return store
