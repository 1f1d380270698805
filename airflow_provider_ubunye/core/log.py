"""One batch's log: read it, and append to it (contract, invariants 2 and 3).

Acquire, save a claim, commit and take over are all one act: append the next entry, or find that somebody
else did. An appender confirms after it created: its number must be the highest, and its predecessor must
still be there. A run that slept while its predecessor was pruned finds that out here.
"""

from __future__ import annotations

import datetime
import re
import uuid
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from airflow_provider_ubunye.core.entries import CHECKPOINTS, Entry, decode, encode
from airflow_provider_ubunye.core.errors import LeaseLost, StateUnreadable
from airflow_provider_ubunye.core.fold import LogGap, fold, step
from airflow_provider_ubunye.core.state import BatchState, checkpoint_json
from airflow_provider_ubunye.core.store.base import BatchStore, StoreBroken

_ENTRY = re.compile(r"[0-9]{8}\.json(/|\Z)")
_READS = 20
_CREATES = 5


def utc_now() -> str:
    """Now, for people to read: UTC, ISO 8601, seconds."""
    return datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


class Superseded(LeaseLost):
    """Another run's entry stands where this one was to go."""


class BatchLog:
    """The log of one batch in a store.

    :param store: where it lives.
    :param prefix: its folder: ``leases/<usecase>/<package>/<task>/<key>``.
    :param shell: the options that name the store in the shell, for hints.
    """

    def __init__(self, store: BatchStore, prefix: str, shell: str = "") -> None:
        self.store = store
        self.prefix = prefix
        self._shell = shell
        self._seen: frozenset[int] = frozenset()
        self.siblings: frozenset[str] = frozenset()
        """Keys beside the log (``<key>.json``, ``<key>.finished.json``), as of the last look."""

    @property
    def where(self) -> str:
        return f"{self.store.where}/{self.prefix}"

    def typed(self, command: str) -> str:
        """A command about this store as a person types it."""
        return f"ubunye {command} {self._shell}".rstrip()

    def entry_key(self, number: int) -> str:
        return f"{self.prefix}/{number:08d}.json"

    def read(self) -> BatchState:
        """The state that the log says now.

        :raises StateUnreadable: an entry is damaged, or a number stays missing.
        :raises OSError: the store does not answer.
        """
        for left in reversed(range(_READS)):
            entries = self._entries()
            try:
                if entries is not None:
                    return fold(entries, self.where)
            except LogGap:
                # Read while it was pruned: numbers went between the list and the read.
                if not left:
                    raise
        raise LogGap("the batch's log changes faster than it can be read", where=self.where)

    def content(self, key: str) -> bytes | None:
        """What ``key``, an entry or one beside the log, holds; None when it does not exist.

        :raises StateUnreadable: a folder stands there. It is never taken for absent.
        :raises OSError: the store does not answer.
        """
        try:
            return self.store.read(key)
        except IsADirectoryError:
            where = f"{self.store.where}/{key}"
            raise StateUnreadable("a folder stands where the state has a file", where=where) from None

    def append(
        self, state: BatchState, run: str, kind: str, body: Mapping[str, Any] | None = None
    ) -> BatchState:
        """Append one entry after ``state`` and return the state with it.

        :param state: the state as this run knows it, which the entry builds on.
        :raises Superseded: somebody else appended there first; the entry does not count.
        :raises StoreBroken: the store stopped answering; whether the entry counts could not be found out.
        :raises OSError: the store refused the entry, and it is not there.
        """
        number = state.number + 1
        entry = Entry(number, uuid.uuid4().hex, state.last, run, utc_now(), kind, dict(body or {}))
        after = replace(step(state, entry, self.where), number=number, last=entry.id)
        if kind in CHECKPOINTS:
            entry = replace(entry, body={**entry.body, "state": checkpoint_json(after)})
        stands = self._create(entry)
        if stands and self._confirmed(number):
            return after
        if not stands and kind != "done":
            raise Superseded(f"another run recorded entry {number} of the batch first", where=self.where)
        return self._settle(entry, after)

    def prune(self, state: BatchState) -> None:
        """Remove what stands below a checkpoint. Nothing reads it: the highest checkpoint is the root."""
        # As of the last look, which was after the checkpoint. An entry that came later, on a freed number, is
        # below the root like these: its own run removes it, or the next prune does.
        below = [self.entry_key(n) for n in sorted(self._seen) if n < state.number]
        # Lowest first: a number that is free again then never has a predecessor that is still there.
        # Number 0 never exists: it names the folder, which is swept of what killed creates left.
        self.store.delete(below or [self.entry_key(0)])

    def ends_with(self, state: BatchState) -> bool:
        """Whether nobody appended since ``state``: one listing, nothing is read."""
        return max(self._numbers(), default=0) == state.number

    def _create(self, entry: Entry) -> bool:
        """Whether the entry stands there now. One that does not may have counted: pruned since by a taker."""
        key = self.entry_key(entry.number)
        data = encode(entry)
        broken: OSError | None = None
        for _ in range(_CREATES):
            try:
                if self.store.create(key, data):
                    return True
            except OSError as error:
                broken = error
                continue
            return self._is_there(key, entry, self.content(key))
        assert broken is not None
        # It may be there although no answer came: its id settles that.
        try:
            there = self.content(key)
        except OSError:
            raise StoreBroken(
                f"the state store stopped answering while {entry.kind!r} was recorded: {broken}",
                where=self.where,
                hint="see what the batch's log says, once it answers: "
                + self.typed(f"leases show {entry.run[:8]}"),
            ) from broken
        if there is None:
            raise broken
        return self._is_there(key, entry, there)

    def _is_there(self, key: str, entry: Entry, there: bytes | None) -> bool:
        return there is not None and decode(there, f"{self.store.where}/{key}").id == entry.id

    def _confirmed(self, number: int) -> bool:
        numbers = self._numbers()
        if number == max(numbers, default=0) and (number == 1 or number - 1 in numbers):
            return True
        if 1 < number < max(numbers, default=0) and number - 1 not in numbers:
            # On a number freed by pruning: below the root, so nobody will ever count it. The highest one may be
            # the root itself, below which somebody else has pruned already.
            self.store.delete([self.entry_key(number)])
        return False

    def _settle(self, entry: Entry, after: BatchState) -> BatchState:
        """Others appended meanwhile: on top of this entry, or past it."""
        now = self.read()
        if now.last == entry.id:
            return now
        # A done that counted is a success whatever came on top of it (contract, invariant 6).
        if entry.kind == "done" and now.outcome_of(entry.run) == "success":
            return after
        raise Superseded(f"the batch was taken over while {entry.kind!r} was recorded", where=self.where)

    def _numbers(self) -> set[int]:
        numbers = set()
        siblings = set()
        for key in self.store.list(self.prefix):
            name = key.removeprefix(self.prefix + "/")
            if name == key:
                siblings.add(key)
            elif _ENTRY.match(name):
                # What lies in a folder of that name is no entry, and yet the number is not free.
                numbers.add(int(name[:8]))
        self.siblings = frozenset(siblings)
        self._seen = frozenset(numbers)
        return numbers

    def _entries(self) -> list[Entry] | None:
        """The entries from the highest checkpoint on; None when one went while they were read."""
        entries: list[Entry] = []
        for number in sorted(self._numbers(), reverse=True):
            data = self.content(self.entry_key(number))
            if data is None:
                return None
            entry = decode(data, f"{self.store.where}/{self.entry_key(number)}")
            if entry.number != number:
                raise LogGap(f"entry {number} says it is entry {entry.number}", where=self.where)
            entries.append(entry)
            if entry.kind in CHECKPOINTS:
                break
        return entries
