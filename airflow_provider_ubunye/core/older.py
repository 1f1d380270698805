"""What an older Ubunye left of a batch, or an earlier spelling of it: read, honoured, taken into the log.

An older Ubunye (0.8) keeps a lease ``<key>.json`` while it runs and a note ``<key>.finished.json`` when it has
finished; a takeover of its own that died leaves ``<key>.dead-<hex>.json``. What is found goes into this run's
``acquired`` entry; from then on the log alone is read.

==================================  =====================================================================
evidence                            what it comes to
==================================  =====================================================================
lease, its process or beat alive    refused
lease, dead, run had committed      finished; what it replaced is owed
lease, dead, not committed          what it claims is owed
lease, empty or torn                judged by its age; claims nothing
note                                finished
==================================  =====================================================================

Only where the log is empty is anything but the lease looked at.
"""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from airflow_provider_ubunye.core import messages
from airflow_provider_ubunye.core.entries import parse
from airflow_provider_ubunye.core.errors import NotTakenBack, RunLeaseHeld
from airflow_provider_ubunye.core.lease import DEFAULT_TTL, Lease
from airflow_provider_ubunye.core.log import BatchLog, utc_now
from airflow_provider_ubunye.core.note import note_key, write_note
from airflow_provider_ubunye.core.olderfiles import OlderReader
from airflow_provider_ubunye.core.owner import start_of
from airflow_provider_ubunye.core.places import is_run_id
from airflow_provider_ubunye.core.request import RELEASE, Request, Setting
from airflow_provider_ubunye.core.settle import close_record
from airflow_provider_ubunye.core.state import (
    REPLACED,
    UNFINISHED,
    BatchState,
    Debt,
    Finished,
    Place,
    Written,
)
from airflow_provider_ubunye.core.store.file import NETWORK_CACHING
from airflow_provider_ubunye.core.takeback import OLDER_RUN

_LEASE = re.compile(r"\.(dead-[0-9a-f]{8}\.)?json\Z")
_LEFTOVER = re.compile(r"\.(finished\.)?[0-9a-f]{8}\.tmp\Z")
_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\Z")


@dataclass(frozen=True)
class OlderLease:
    """A lease that an older Ubunye left, as far as it can be read.

    :param log: the spelling of the batch that it is of.
    :param key: its key in the store.
    :param run: its run id, empty for a lease that is empty or torn: it then claims nothing.
    :param document: what it says.
    :param committed: whether its run had committed the batch.
    """

    log: BatchLog
    key: str
    run: str
    document: Mapping[str, Any]
    committed: bool

    def beside(self, ending: str) -> str:
        """The key of a mark of its run."""
        return f"{self.log.prefix}.{ending}-{self.run}"


class Older:
    """Everything about this batch that is not in its own log."""

    def __init__(self, setting: Setting, request: Request, log: BatchLog) -> None:
        self._setting = setting
        self._request = request
        self._log = log
        self._leases: list[OlderLease] = []
        self._leftovers: list[str] = []
        self._others: list[tuple[BatchLog, BatchState, tuple[str, ...] | None]] = []
        self._places = {name: setting.places.place(path) for name, (_, path, _) in request.outputs.items()}
        self._reader = OlderReader(setting.places, self._places, request.batch.label, setting.store.where)

    def finished(self, state: BatchState) -> Finished | None:
        """The run that finished the batch according to evidence outside the log.

        An older Ubunye's counts only where no log exists: the log, once begun, took it in. What a run landed
        under another spelling counts as long as it is there: ``CONFIG.batch`` may change to and fro.

        :raises StateUnreadable: a note or lease is damaged: it is written in one step, so something changed it.
        """
        self._others = self._other_names()
        spellings = [] if state.number else [log for log, _, names in self._others if names is None]
        logs = [self._log, *spellings]
        self._leases = [found for log in logs for found in self._leases_of(log, state)]
        self._leftovers = [
            k for log in logs for k in log.siblings if _LEFTOVER.match(k.removeprefix(log.prefix))
        ]
        if state.number:
            return self._with_other_spellings(state.finished)
        for lease in self._leases:
            if lease.committed:
                return self._finished_by(lease)
        return self._noted(self._log) or self._under_other_names()

    def _with_other_spellings(self, own: Finished | None) -> Finished | None:
        """``own`` and what runs under other spellings of the batch landed that is still there.

        :returns: None where there is nothing beside ``own``.
        """
        known = {(o.place, claim.final) for o in (own.outputs if own else ()) for claim in o.claims}
        beside: list[Written] = []
        for _, other, _ in self._others:
            done = other.finished
            for output in done.outputs if done is not None else ():
                path = self._setting.places.path(output.place)
                claims = tuple(
                    claim
                    for claim in output.claims
                    if (output.place, claim.final) not in known
                    and self._setting.disk.look(f"{path}/{claim.final}") is not None
                )
                if claims and done is not None:
                    beside.append(replace(output, claims=claims, run=output.run or done.run))
                    own = own or replace(done, outputs=())
        return replace(own, outputs=(*own.outputs, *beside)) if own is not None and beside else None

    def refuse_other_names(self, state: BatchState) -> None:
        """Refuse while the batch, under an earlier spelling, is held or owes files.

        :raises RunLeaseHeld: naming the run and how to release it.
        """
        if state.number or self._request.purpose == RELEASE:
            return
        for log, other, _ in self._others:
            if other.holder is not None or other.debts:
                run = other.holder.run if other.holder else str(other.debts[0].run)
                raise RunLeaseHeld(
                    f"{self._request.batch.label} was begun under another spelling (key "
                    f"{posixpath.basename(log.prefix)}) and is not settled: run {messages.who(run)}",
                    where=log.where,
                    hint=f"if that run is dead: {log.typed(f'leases release {messages.who(run)}')}",
                )

    def refuse_strangers(
        self, run: str, outputs: Iterable[Written], places: Collection[Place] | None = None
    ) -> None:
        """Refuse to replace what an older run wrote anywhere but in the outputs of this one.

        :param run: the run that wrote ``outputs``.
        :param places: the outputs of this run; by default those known beforehand, and without any nothing is
            refused yet.
        :raises NotTakenBack: naming the file. Nothing was removed.
        """
        if is_run_id(run) or (places is None and not self._places):
            return
        for output in outputs:
            if output.claims and output.place not in (self._places.values() if places is None else places):
                raise self._stranger(f"{output.place.path}/{output.claims[0].final}", self._log)

    def has_lease(self) -> bool:
        return bool(self._leases)

    def held(self) -> RunLeaseHeld | None:
        """The refusal while an older Ubunye's run holds the batch, or can't be told dead yet."""
        for lease in [] if self._request.force else self._leases:
            document = lease.document
            owner = self._setting.owner
            # Without a boot pids mean nothing in this place (owner.py).
            here = bool(owner.boot) and document.get("host") == f"{owner.host}|{owner.pid_space}"
            pid, started = document.get("pid"), document.get("pid_started")
            beaten = ""
            if here and isinstance(pid, int) and isinstance(started, str):
                alive = str(int(start_of(pid) or -1)) == started
            else:
                age = self._setting.store.age(lease.key)
                alive = age is not None and age < DEFAULT_TTL + NETWORK_CACHING
                beaten = f", last heartbeat {messages.seconds(max(age or 0, 0))} ago"
            if alive:
                host, since = (
                    " ".join(str(document.get(n, "?")).split())[:80] for n in ("host", "started_at")
                )
                return RunLeaseHeld(
                    f"{self._request.batch.label} is still running: an older Ubunye's run "
                    f"{messages.who(lease.run) or '(its lease is empty)'} on {host}, "
                    f"pid {pid if isinstance(pid, int) else '?'}, since {since}{beaten}",
                    where=f"{self._setting.store.where}/{lease.key}",
                    hint="wait for it (--wait 10m); its lease holds its claims, so do not remove it by hand",
                )
        return None

    def debts(self) -> list[Debt]:
        """What dead older runs owe: their claims, or, once they committed, the files they replaced.

        :raises NotTakenBack: one lies in no output of this batch.
        """
        debts: list[Debt] = []
        for lease in self._leases:
            if lease.committed:
                replaces = lease.document.get("replaces") or {}
                listed = {n: {"claimed": c} for n, c in self._reader.mapping(replaces, lease.key).items()}
                outputs = self._reader.outputs(listed, lease.key)
                found = [Debt(REPLACED, OLDER_RUN, o, by=OLDER_RUN) for o in outputs]
            else:
                outputs = self._reader.outputs(lease.document.get("outputs") or {}, lease.key)
                found = [Debt(UNFINISHED, OLDER_RUN, o) for o in outputs]
            for debt in found:
                if debt.output.claims or debt.output.detail:
                    if self._places and debt.output.place not in self._places.values():
                        raise self._stranger(debt.output.place.path, lease.log)
                    debts.append(debt)
        return debts

    def fence(self, lease: Lease) -> None:
        """Leave the mark by which an older run that wakes late knows that it was taken over, and stops."""
        for dead in self._leases:
            if dead.run and not dead.committed:
                lease.check()
                self._setting.store.create(dead.beside("taken"), f"{utc_now()}\n".encode())

    def forget(self, lease: Lease) -> None:
        """Remove older leases that were taken in and settled; this run's lease holds the batch meanwhile."""
        for dead in self._leases:
            lease.check()
            if dead.run:
                close_record(self._setting, self._request, dead.run, dead.committed, by=lease.run)
            done = lease.state.finished
            if dead.committed and done is not None:
                # An older Ubunye that runs the batch looks for the note alone.
                write_note(lease, self._request.batch, done, self._setting.places)
            # The lease first: without its done mark it would look like one that had not committed.
            done_mark = [dead.beside("done")] if dead.run else []
            self._setting.store.delete([dead.key, *done_mark, *self._leftovers])
        self._leases = []

    def _leases_of(self, log: BatchLog, state: BatchState) -> list[OlderLease]:
        found = []
        for key in sorted(log.siblings):
            data = None
            if _LEASE.match(key.removeprefix(log.prefix)):
                data = log.content(key)
            if data is None:
                continue
            try:
                document = parse(data)
            except json.JSONDecodeError:
                document = None
            except ValueError as error:
                raise self._reader.damaged(f"can't be read: {error}", key) from None
            # Empty or torn: a crash inside its creation leaves one. It names no process and claims nothing.
            if not isinstance(document, dict):
                found.append(OlderLease(log, key, "", {}, committed=False))
                continue
            run = document.get("run_id")
            if not isinstance(run, str) or not _UUID.match(run):
                raise self._reader.damaged("names no run", key)
            lease = OlderLease(log, key, run, document, committed=False)
            found.append(OlderLease(log, key, run, document, self._committed(lease, state)))
        return found

    def _committed(self, lease: OlderLease, state: BatchState) -> bool:
        if lease.document.get("committed") is True:
            return True
        if state.finished is not None and state.finished.run == lease.run:
            return True
        if self._setting.store.read(lease.beside("done")) is not None:
            return True
        if self._setting.records is not None:
            record = self._setting.records.load(self._request.batch.task, lease.run)
            return record is not None and record.status == "success"
        return False

    def _finished_by(self, lease: OlderLease) -> Finished:
        """Its own note where it wrote one: it empties the lease's outputs after that."""
        noted = self._noted(lease.log)
        if noted is not None and noted.run == lease.run:
            return noted
        mark = self._setting.store.read(lease.beside("done"))
        at = mark.decode(errors="replace") if mark else lease.document.get("started_at")
        return self._finished(lease.run, lease.document.get("outputs") or {}, at, lease.key)

    def _noted(self, log: BatchLog, named_by: tuple[str, ...] | None = None) -> Finished | None:
        """What the note says; None without one, or where it names no output: then nothing was written."""
        key = note_key(log)
        data = log.content(key) if key in log.siblings else None
        if data is None:
            return None
        try:
            document = self._reader.mapping(parse(data), key)
        except ValueError as error:
            raise self._reader.damaged(f"is not valid JSON: {error}", key) from None
        if named_by is not None and document.get("named_by") != list(named_by):
            return None
        if not document.get("outputs"):
            return None
        return self._finished(
            str(document.get("run_id")), document["outputs"], document.get("finished_at"), key
        )

    def _finished(self, run: str, outputs: object, at: object, key: str) -> Finished:
        return Finished(run, at if isinstance(at, str) else "?", tuple(self._reader.outputs(outputs, key)))

    def _other_names(self) -> list[tuple[BatchLog, BatchState, tuple[str, ...] | None]]:
        found = []
        for key, names in self._request.batch.other_keys():
            log = self._setting.log(key, self._request.batch.task)
            state = log.read()
            if names is not None and state.number and state.named_by != names:
                # Some variables of this batch name another one, unless CONFIG.batch said so then.
                continue
            found.append((log, state, names))
        return found

    def _under_other_names(self) -> Finished | None:
        for log, state, names in self._others:
            noted = self._noted(log, names)
            if noted is not None:
                return state.finished or noted
        return None

    def _stranger(self, path: str, log: BatchLog) -> NotTakenBack:
        return NotTakenBack(
            f"{self._request.batch.label}: an older note or lease lists {path[:200]!r}, which lies in no "
            "output of this batch; nothing was removed",
            where=f"{log.where}.finished.json",
            hint="if the output's path has changed since, set it back for this run",
        )
