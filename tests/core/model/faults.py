"""Faults planted in the core, to show that the checker would find them. Each takes one promise away."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any
from unittest import mock

from airflow_provider_ubunye.core import fold, landing, lease, run, takeback
from airflow_provider_ubunye.core.disk import Disk
from airflow_provider_ubunye.core.entries import Entry
from airflow_provider_ubunye.core.listing import data_files
from airflow_provider_ubunye.core.log import BatchLog
from airflow_provider_ubunye.core.settle import take_back
from airflow_provider_ubunye.core.state import BatchState, Claim, Debt, Reader, Written
from airflow_provider_ubunye.core.testing import MemoryStore


@dataclass(frozen=True)
class Fault:
    """:param scenario: one that finds it, within its bound.
    :param says: the invariant that it breaks first.
    """

    name: str
    plant: Callable[[], contextlib.AbstractContextManager[object]]
    scenario: str
    says: str


def no_fence() -> contextlib.AbstractContextManager[object]:
    """A takeover removes what has landed, and leaves what is staged."""
    honest = takeback.TakeBack._take_back

    def unfenced(self: takeback.TakeBack, debt: Debt, path: str, settled: takeback.Settled) -> None:
        if not debt.output.claims:
            return honest(self, debt, path, settled)
        for claim in debt.output.claims:
            self._count(self._disk.remove(f"{path}/{claim.final}"), settled)
        return None

    return mock.patch.object(takeback.TakeBack, "_take_back", unfenced)


def landed_first() -> contextlib.AbstractContextManager[object]:
    """A takeover removes the landed name before the staged one."""
    honest = takeback.TakeBack._take_back

    def reversed_order(self: takeback.TakeBack, debt: Debt, path: str, settled: takeback.Settled) -> None:
        for claim in debt.output.claims:
            self._check()
            self._count(self._disk.remove(f"{path}/{claim.final}"), settled)
        bare = replace(debt.output, claims=tuple(Claim("gone", c.staged) for c in debt.output.claims))
        honest(self, replace(debt, output=bare), path, settled)

    return mock.patch.object(takeback.TakeBack, "_take_back", reversed_order)


@contextlib.contextmanager
def claim_after_landing() -> Iterator[None]:
    """Files land when they are named; the entry that claims them comes after."""
    honest = landing.FilesLanding.claim

    def claim(self: landing.FilesLanding) -> tuple[Written, list[Debt]]:
        result = honest(self)
        landing.FilesLanding.land(self, lambda: None)
        return result

    land = landing.FilesLanding.land

    def land_once(self: landing.FilesLanding, check: Callable[[], None]) -> None:
        if self.staging is not None and self._staged():
            land(self, check)

    with (
        mock.patch.object(landing.FilesLanding, "claim", claim),
        mock.patch.object(landing.FilesLanding, "land", land_once),
    ):
        yield


@contextlib.contextmanager
def replaced_before_done() -> Iterator[None]:
    """What is replaced goes as soon as the new files have landed."""
    commit, append = run.Run.commit, lease.Lease.append
    runs: dict[lease.Lease, run.Run] = {}

    def commit_and_tell(self: run.Run) -> None:
        runs[self._lease] = self
        commit(self)

    def append_too_late(self: lease.Lease, kind: str, body: Mapping[str, Any] | None = None) -> BatchState:
        holder = self.state.holder
        if kind == "done" and holder is not None:
            take_back(runs[self]._setting, runs[self].request, self, holder.replaces)
        return append(self, kind, body)

    with (
        mock.patch.object(run.Run, "commit", commit_and_tell),
        mock.patch.object(lease.Lease, "append", append_too_late),
    ):
        yield


def debts_forgotten() -> contextlib.AbstractContextManager[object]:
    """A taker owes what the dead run left, and not what that one had taken over itself."""
    honest = fold._acquired

    def acquired(state: BatchState, entry: Entry, reader: Reader) -> BatchState:
        kept = tuple(d for d in state.debts if not d.output.claims or state.holder is None)
        return honest(replace(state, debts=kept), entry, reader)

    return mock.patch.object(fold, "_acquired", acquired)


def not_confirmed() -> contextlib.AbstractContextManager[object]:
    """An appender does not look whether its predecessor is still there."""

    def confirmed(self: BatchLog, number: int) -> bool:
        return number in self._numbers()

    return mock.patch.object(BatchLog, "_confirmed", confirmed)


def create_not_exclusive() -> contextlib.AbstractContextManager[object]:
    """Two creates of one key both win."""

    def create(self: MemoryStore, key: str, data: bytes) -> bool:
        self.put(key, data)
        return True

    return mock.patch.object(MemoryStore, "create", create)


def doubt_not_ended() -> contextlib.AbstractContextManager[object]:
    """A run whose done got no answer takes itself back without finding out."""

    def end_doubt(self: lease.Lease) -> None:
        self._doubt = False

    return mock.patch.object(lease.Lease, "end_doubt", end_doubt)


def no_markers() -> contextlib.AbstractContextManager[object]:
    """An overwrite lists once, and looks for nobody who is landing there."""

    def replaceable(disk: Disk, path: str, run: str, under: list[str]) -> tuple[list[Claim], list[str]]:
        found = {name: item for inside in under for name, item in data_files(disk, path, inside)}
        return [Claim(n, n, (i.size, i.changed)) for n, i in sorted(found.items()) if run not in n], []

    return mock.patch.object(landing, "replaceable", replaceable)


FAULTS = (
    Fault("no fence", no_fence, "two plain runs", "is fenced, and yet changed the output"),
    Fault("landed name removed before the staged one", landed_first, "two plain runs", "the output holds"),
    Fault(
        "claim recorded after landing", claim_after_landing, "two files, one run killed", "the output holds"
    ),
    Fault(
        "replaced files removed before done",
        replaced_before_done,
        "two reruns",
        "is committed and not replaced",
    ),
    Fault("debts forgotten by the taker", debts_forgotten, "takers killed too", "left behind"),
    Fault("no predecessor check", not_confirmed, "two plain runs", "reported success and had not committed"),
    Fault("create not exclusive", create_not_exclusive, "two plain runs", "the log can't be read"),
    Fault(
        "doubt about done not ended",
        doubt_not_ended,
        "answers lost of a rerun",
        "is committed and not replaced",
    ),
    Fault("no markers beside an append", no_markers, "overwrite beside an append", "had not committed"),
)
