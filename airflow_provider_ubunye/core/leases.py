"""Looking at the leases of a state store, and releasing one by hand."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from airflow_provider_ubunye.core import messages
from airflow_provider_ubunye.core.entries import parse
from airflow_provider_ubunye.core.errors import StateUnreadable, UbunyeError, UsageError
from airflow_provider_ubunye.core.judge import Evidence, Verdict
from airflow_provider_ubunye.core.lease import Watch
from airflow_provider_ubunye.core.owner import LIVE_RUNS
from airflow_provider_ubunye.core.setting import Setting
from airflow_provider_ubunye.core.state import BatchState, to_json
from airflow_provider_ubunye.core.store.base import unusable

if TYPE_CHECKING:
    from airflow_provider_ubunye.core.batch import Batch

ROOT = "leases"

_LOG_ENTRY = r"leases/([^/]+/[^/]+/[^/]+)/([^/]+)/[0-9]{8}\.json(?:/.*)?\Z"
_OLDER_LEASE = r"leases/([^/]+/[^/]+/[^/]+)/([0-9a-f]{16})\.json\Z"


@dataclass(frozen=True)
class LeaseInfo:
    """One batch as its log says it is.

    :param problem: why its log can't be read; the other fields but ``task``, ``key`` and ``where`` are empty then.
    :param where: the file that can't be read.
    :param verdict: whether the holder lives, None where nobody holds the batch.
    :param older: what an older Ubunye's lease of the batch says; empty for one that can't be read.
    """

    task: str
    key: str
    state: BatchState
    verdict: Verdict | None = None
    evidence: Evidence | None = None
    problem: str | None = None
    where: str | None = None
    older: Mapping[str, Any] | None = None

    @property
    def open(self) -> bool:
        """Whether somebody holds the batch, it owes files, or it can't be read."""
        state = self.state
        held = state.holder is not None or self.older is not None
        return held or bool(state.debts) or self.problem is not None

    @property
    def runs(self) -> list[str]:
        """The ids by which a person may mean this batch."""
        holder = [self.state.holder.run] if self.state.holder else []
        done = [self.state.finished.run] if self.state.finished else []
        done += [self.state.history[-1].run] if self.state.history else []
        older = [str(self.older.get("run_id"))] if self.older else []
        return holder + [debt.run for debt in self.state.debts if debt.run] + done + older


def leases(setting: Setting) -> Iterator[LeaseInfo]:
    """Every batch that the store has a log or an older Ubunye's lease of, by task and key.

    :raises StoreUnusable: the store does not answer. A single log that can't be read is in the list, named.
    """
    try:
        keys = setting.store.list(ROOT)
    except OSError as error:
        raise unusable(setting.store.where, error) from error
    logs = {found.groups() for key in keys if (found := re.match(_LOG_ENTRY, key))}
    older = {found.groups() for key in keys if (found := re.match(_OLDER_LEASE, key))}
    for task, key in sorted(logs | older):
        info = look(setting, task, key)
        yield replace(info, older=_older(setting, task, key)) if (task, key) in older else info


def look(setting: Setting, task: str, key: str) -> LeaseInfo:
    """One batch by its task and key."""
    log = setting.log(key, task)
    try:
        state = log.read()
        if state.holder is None:
            return LeaseInfo(task, key, state)
    except (UbunyeError, OSError) as error:
        where = getattr(error, "where", None) or log.where
        return LeaseInfo(task, key, BatchState(), problem=str(error), where=where)
    try:
        verdict, evidence = Watch(log, setting.owner, time.monotonic, setting.is_alive).look(state.holder)
    except OSError:
        # The store's clock is read off a file made beside the heartbeat: who may not write there can't tell.
        return LeaseInfo(task, key, state, Verdict.UNKNOWN)
    return LeaseInfo(task, key, state, verdict, evidence)


def _older(setting: Setting, task: str, key: str) -> Mapping[str, Any]:
    try:
        document = parse(setting.store.read(f"{ROOT}/{task}/{key}.json") or b"")
    except (OSError, ValueError):
        return {}
    return document if isinstance(document, dict) else {}


def find(setting: Setting, given: str) -> LeaseInfo:
    """The batch that a person means by a run id or its first digits, or a batch key.

    :raises UsageError: no batch, or more than one.
    """
    wanted = given.strip().lower().replace("-", "")
    if len(wanted) < 4 or not all(c in "0123456789abcdef" for c in wanted):
        raise UsageError(
            f"{given[:60]!r} is no run id or batch key",
            hint=f"{setting.typed('leases list --all')} shows the ids; 8 digits will do",
        )
    found = [
        info
        for info in leases(setting)
        if info.key.startswith(wanted) or any(r.replace("-", "").startswith(wanted) for r in info.runs)
    ]
    if not found:
        raise UsageError(
            f"no batch in {setting.store.where} is held by, or was finished last by, run {wanted[:32]}, and none "
            "has that key",
            hint=f"{setting.typed('leases list --all')} shows every batch with its last run",
        )
    if len(found) > 1:
        raise UsageError(
            f"{wanted} means {len(found)} batches: {', '.join(i.key for i in found)}; give more digits"
        )
    return found[0]


def release(setting: Setting, info: LeaseInfo, *, force: bool = False) -> str:
    """Free a batch by hand: a takeover that ends in ``released``. After done it completes the run instead.

    :param force: even if the holder may be alive. It is fenced: it can land nothing more.
    :returns: one sentence that says what was done.
    :raises RunLeaseHeld: the holder is alive, or can't be told dead yet, and ``force`` is not given.
    :raises NotTakenBack: files could not be removed.
    """
    # Here, not above: looking at leases must not pay for what a takeover needs.
    from airflow_provider_ubunye.core.leaving import leave
    from airflow_provider_ubunye.core.request import RELEASE, Request
    from airflow_provider_ubunye.core.settle import refuse_what_is_left
    from airflow_provider_ubunye.core.start import Start

    if info.problem is not None:
        raise StateUnreadable(info.problem, where=info.where)
    if info.older is not None and info.state.holder is None:
        raise UsageError(
            f"{info.task} {info.key}: this lease is an older Ubunye's, which does not say its variables",
            hint="run the batch again: a dead run is taken over, a live one is named",
        )
    if not info.open:
        return f"{info.task} {info.key}: nobody holds this batch and it owes nothing."
    request = Request(batch_of(setting, info), purpose=RELEASE, force=force)
    start = Start(setting, request)
    try:
        lease = start.acquire(())
        assert lease is not None
        with lease.kept_alive():
            over = lease.state.holder.over if lease.state.holder else None
            start.settle(lease)
            lease.append("released", {"outcome": "released", "debts": to_json(start.settled.left)})
            lease.log.prune(lease.state)
    except BaseException:
        leave(start.log, request.run)
        raise
    finally:
        LIVE_RUNS.discard(request.run)
    refuse_what_is_left(start.settled, request.batch.label)
    if over is None:
        return f"{request.batch.label}: {messages.count(start.settled.removed, 'owed file')} removed."
    if lease.state.outcome_of(over) == "success":
        return f"{request.batch.label}: run {messages.who(over)} had committed; what it left is completed."
    taken = f"{messages.count(start.settled.removed, 'file')} taken back"
    if start.shut_out:
        return f"{request.batch.label}: shut out run {messages.who(over)}, which had not committed; {taken}."
    return f"{request.batch.label}: released from run {messages.who(over)}, which is dead; {taken}."


def batch_of(setting: Setting, info: LeaseInfo) -> Batch:
    """The batch that a log belongs to.

    :raises StateUnreadable: the log says the variables of another one.
    """
    from airflow_provider_ubunye.core.batch import Batch, check_task

    batch = Batch(check_task(info.task), info.state.variables, info.state.named_by)
    if batch.key != info.key:
        raise StateUnreadable(
            "the batch's log says the variables of another batch",
            where=setting.log(info.key, info.task).where,
        )
    return batch
