"""What a batch store is: the one primitive everything rests on, and five small ones beside it."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable
from typing import Protocol

from airflow_provider_ubunye.core.errors import NeedsPerson, Refused, RunFailed

MARK = "store.json"
"""The key that says the self-test passed here."""

_SELF_TEST = "self-test"
_SELF_TESTS = 5


class StoreUnusable(Refused):
    """The state store can't be used, so nothing runs: unprotected is never the default."""

    reason = "store"


class StoreFailed(RunFailed):
    """A step could not be recorded, so it was not taken. The run is taken back, by itself or by the next."""

    reason = "store"


class StoreBroken(NeedsPerson):
    """The state store stopped answering in the middle of a run, and its answer matters."""

    reason = "store"


class BatchStore(Protocol):
    """Where the state of batches lives. Nothing else knows where that is.

    Keys are relative, with forward slashes. A method that can't be carried out raises :class:`OSError`; a
    ``create`` that raised may have happened, and its caller finds out by reading back.

    :ivar where: the place as a person writes it, without secrets.
    """

    where: str

    @property
    def caching(self) -> float:
        """Seconds for which another client of this store may be shown an old state."""

    def create(self, key: str, data: bytes) -> bool:
        """Create ``key`` with ``data`` if it does not exist: whole content or nothing, durable on return.

        :returns: False when the key exists; nothing was changed.
        """

    def read(self, key: str) -> bytes | None:
        """The content of ``key``, None when it does not exist. Never None because it can't be read."""

    def list(self, prefix: str) -> list[str]:
        """The keys below ``prefix/`` and its own siblings ``prefix.*``, sorted.

        A key that stood before the call and stands after it is in the list. Of the siblings of a prefix that
        has keys below it, only ``prefix.json`` and ``prefix.finished.json`` need be.
        """

    def delete(self, keys: Iterable[str]) -> None:
        """Remove keys, in the order given; one that does not exist is no error."""

    def put(self, key: str, data: bytes, check: Callable[[], None] = lambda: None) -> None:
        """Replace ``key`` by whole content. For readable copies only: nothing that must be safe uses it.

        :param check: called last before it is replaced; raises when the caller must not go on.
        """

    def beat(self, key: str) -> bool:
        """Mark ``key`` as fresh by the store's own clock. False when it does not exist."""

    def age(self, key: str) -> float | None:
        """Seconds since ``key`` was made or last beaten, by the store's own clock; None when absent.

        May be negative when the store's clock was set back.
        """


def self_test(store: BatchStore) -> None:
    """Let two creates of one key compete; refuse a store where both win (contract, "Limits … we lift").

    A mark left in the store says that the test passed, so it runs once per store, not once per run.

    :raises StoreUnusable: preconditions are ignored, or the store can't be read or written.
    """
    try:
        for _ in range(_SELF_TESTS):
            if store.read(MARK) is not None:
                return
            key = f"{_SELF_TEST}/{uuid.uuid4().hex}.json"
            first = store.create(key, b"first")
            second = store.create(key, b"second")
            content = store.read(key)
            if first and not second and content == b"first":
                # Those of others too: of one that was killed nobody else would know.
                store.delete(store.list(_SELF_TEST))
                store.create(MARK, b'{"format": 1, "exclusive_create": true}\n')
                return
            # Once more: another process that passed may have removed this one's key between the two creates.
            store.delete([key])
    except OSError as error:
        raise unusable(store.where, error) from error
    raise StoreUnusable(
        f"the state store {store.where} does not keep its promise: two creates of one key "
        f"{'both won' if second else 'gave ' + repr((first, content))}",
        hint="use a store with exclusive create; see 'which store' in the docs",
    )


def unusable(where: str, error: OSError) -> StoreUnusable:
    """The refusal for a store that answers with ``error``."""
    return StoreUnusable(
        f"the state store {where} can't be used: {error.strerror or error}",
        hint="name another with --state or UBUNYE_STATE, or mend this one; nothing was run",
    )
