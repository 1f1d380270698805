"""What an older Ubunye left of a batch, or an earlier spelling of it: read, honoured, taken into the log.

An older Ubunye (0.8) keeps a lease ``<key>.json`` while it runs and a note ``<key>.finished.json`` when it has
finished. Its data files carry a UUID of their own, so a name counts only where the note or lease lists it, in
the shape such files have, inside an output of this batch. What is found goes into this run's ``acquired`` entry;
from then on the log alone is read.
"""

from __future__ import annotations

import json
import os
import posixpath
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from airflow_provider_ubunye.core import messages
from airflow_provider_ubunye.core.errors import NotTakenBack, RunLeaseHeld, StateUnreadable
from airflow_provider_ubunye.core.lease import DEFAULT_TTL, Lease
from airflow_provider_ubunye.core.log import BatchLog
from airflow_provider_ubunye.core.note import LOG_BESIDE
from airflow_provider_ubunye.core.owner import start_of
from airflow_provider_ubunye.core.request import RELEASE, Request, Setting
from airflow_provider_ubunye.core.state import (
    REPLACED,
    UNFINISHED,
    BatchState,
    Claim,
    Debt,
    Finished,
    Written,
)
from airflow_provider_ubunye.core.store.file import NETWORK_CACHING
from airflow_provider_ubunye.core.takeback import OLDER_RUN


@dataclass(frozen=True)
class OlderLease:
    """A lease that an older Ubunye left, as far as it can be read.

    :param run: its run id, empty for a lease that is empty or damaged: it then claims nothing.
    :param document: what it says.
    """

    run: str
    document: Mapping[str, Any]


class Older:
    """Everything about this batch that is not in its own log."""

    def __init__(self, setting: Setting, request: Request, log: BatchLog) -> None:
        self._setting = setting
        self._request = request
        self._log = log
        self._lease: OlderLease | None = None
        self._paths = {
            setting.places.path(setting.places.place(path)) for _, path, _ in request.outputs.values()
        }

    def finished(self, state: BatchState) -> Finished | None:
        """The run that finished the batch according to evidence outside the log.

        An older note counts only where no log exists: the log, once begun, took it in.

        :raises StateUnreadable: a note is not valid JSON: it is written in one step, so something changed it.
        :raises NotTakenBack: it lists a file that lies in no output of this batch.
        """
        self._lease = self._read_lease()
        if state.number:
            return None
        if self._lease is not None and self._committed(self._lease):
            return self._finished_of(
                self._lease.run, self._lease.document, at=self._lease.document.get("started_at")
            )
        if f"{self._log.prefix}.finished.json" in self._log.siblings:
            document = self._document(f"{self._log.prefix}.finished.json")
            return self._finished_of(str(document.get("run_id")), document, at=document.get("finished_at"))
        return self._under_other_names()

    def refuse_other_names(self, state: BatchState) -> None:
        """Refuse while the batch, under an earlier spelling, is held or owes files.

        :raises RunLeaseHeld: naming the run and how to release it.
        """
        if state.number or self._request.purpose == RELEASE:
            return
        for key, _ in self._request.batch.other_keys():
            log = self._setting.log(key, self._request.batch.task)
            other = log.read()
            if other.holder is not None or other.debts:
                run = other.holder.run if other.holder else str(other.debts[0].run)
                raise RunLeaseHeld(
                    f"{self._request.batch.label} was begun under another spelling (key {key}) and is not "
                    f"settled: run {messages.who(run)}",
                    where=log.where,
                    hint=f"if that run is dead: ubunye leases release {messages.who(run)}",
                )

    def has_lease(self) -> bool:
        return self._lease is not None

    def refuse_live_lease(self) -> None:
        """Refuse while an older Ubunye's run holds the batch.

        :raises RunLeaseHeld: it lives, or can't be told dead yet.
        """
        if self._lease is None or self._request.force:
            return
        document = self._lease.document
        host = f"{self._setting.owner.host}|{self._setting.owner.pid_space}"
        pid, started = document.get("pid"), document.get("pid_started")
        if document.get("host") == host and isinstance(pid, int) and isinstance(started, str):
            alive = str(int(start_of(pid) or -1)) == started
            since = ""
        else:
            age = self._setting.store.age(f"{self._log.prefix}.json")
            alive = age is not None and age < DEFAULT_TTL + NETWORK_CACHING
            since = f", last heartbeat {messages.seconds(max(age or 0, 0))} ago"
        if alive:
            raise RunLeaseHeld(
                f"{self._request.batch.label} is still running: an older Ubunye's run "
                f"{messages.who(self._lease.run) or '(unnamed)'} on {document.get('host', 'an unknown host')}, "
                f"pid {pid}, since {document.get('started_at', '?')}{since}",
                where=f"{self._log.where}.json",
                hint="wait for it; its lease holds its claims, so do not remove it by hand",
            )

    def debts(self) -> list[Debt]:
        """What a dead older run owes: its claims, or, once it committed, the files it replaced.

        :raises NotTakenBack: it claims a file that lies in no output of this batch.
        """
        if self._lease is None:
            return []
        document = self._lease.document
        if self._committed(self._lease):
            replaces = document.get("replaces")
            entries = {n: {"claimed": c} for n, c in replaces.items()} if isinstance(replaces, dict) else {}
            outputs = self._outputs({"outputs": entries})
            return [Debt(REPLACED, OLDER_RUN, o, by=OLDER_RUN) for o in outputs if o.claims]
        return [Debt(UNFINISHED, OLDER_RUN, o) for o in self._outputs(document) if o.claims]

    def forget(self, lease: Lease) -> None:
        """Remove an older lease that was taken in and settled; this run's lease holds the batch meanwhile."""
        if self._lease is None:
            return
        lease.check()
        keys = [f"{self._log.prefix}.json"]
        if self._lease.run:
            keys.append(f"{self._log.prefix}.done-{self._lease.run}")
        self._setting.store.delete(keys)
        self._lease = None

    def _read_lease(self) -> OlderLease | None:
        key = f"{self._log.prefix}.json"
        data = self._setting.store.read(key) if key in self._log.siblings else None
        if data is None:
            return None
        try:
            document = json.loads(data)
        except ValueError:
            document = None
        # Empty or torn: a crash inside its creation leaves one. It names no process and claims nothing.
        if not isinstance(document, dict):
            return OlderLease("", {})
        run = document.get("run_id")
        return OlderLease(run if isinstance(run, str) and "/" not in run else "", document)

    def _committed(self, lease: OlderLease) -> bool:
        if not lease.run:
            return False
        if lease.document.get("committed") is True:
            return True
        if self._setting.store.read(f"{self._log.prefix}.done-{lease.run}") is not None:
            return True
        if self._setting.records is not None:
            record = self._setting.records.load(self._request.batch.task, lease.run)
            return record is not None and record.status == "success"
        return False

    def _document(self, key: str) -> Mapping[str, Any]:
        data = self._setting.store.read(key)
        try:
            document = json.loads(data or b"")
        except ValueError:
            document = None
        if not isinstance(document, dict):
            raise StateUnreadable(
                "the finished note is not valid JSON",
                where=f"{self._setting.store.where}/{key}",
                hint="something changed it; look at it before you remove it",
            )
        return document

    def _finished_of(self, run: str, document: Mapping[str, Any], at: object) -> Finished:
        return Finished(run=run, at=at if isinstance(at, str) else "?", outputs=self._outputs(document))

    def _outputs(self, document: Mapping[str, Any]) -> tuple[Written, ...]:
        outputs = document.get("outputs")
        if not isinstance(outputs, dict):
            return ()
        found: list[Written] = []
        for name, entry in sorted(outputs.items()):
            claimed = entry.get("claimed") if isinstance(entry, dict) else None
            claimed = claimed if isinstance(claimed, list) else []
            mode = str(entry.get("mode")) if isinstance(entry, dict) and "mode" in entry else None
            by_folder: dict[str, list[str]] = {}
            for path in claimed:
                folder, inside = self._split(path)
                by_folder.setdefault(folder, []).append(inside)
            for folder, files in by_folder.items():
                place = self._setting.places.place(folder)
                claims = tuple(Claim(f, f) for f in files)
                found.append(Written(name, "files", mode or "append", place, claims=claims))
            if not by_folder:
                place = self._setting.places.place(
                    next(iter(self._paths), self._setting.places.usecase_dir or os.getcwd())
                )
                found.append(Written(name, "files", mode or "overwrite", place))
        return tuple(found)

    def _split(self, path: object) -> tuple[str, str]:
        """A claimed path as output folder and name inside: partition folders belong to the name."""
        base = self._setting.places.usecase_dir
        if not isinstance(path, str) or "\0" in path or os.path.isabs(path) or base is None:
            raise self._stranger(path)
        full = posixpath.normpath(posixpath.join(base.replace(os.sep, "/"), path.replace(os.sep, "/")))
        for output in self._paths:
            if full.startswith(output + "/"):
                return output, full[len(output) + 1 :]
        if self._paths:
            raise self._stranger(path)
        folder, inside = posixpath.split(full)
        while "=" in posixpath.basename(folder):
            folder, part = posixpath.split(folder)
            inside = f"{part}/{inside}"
        return folder, inside

    def _stranger(self, path: object) -> NotTakenBack:
        return NotTakenBack(
            f"{self._request.batch.label}: an older note or lease lists {str(path)[:200]!r}, which lies in no "
            "output of this batch; nothing was removed",
            where=f"{self._log.where}.finished.json",
            hint="if the output's path has changed since, set it back for this run",
        )

    def _under_other_names(self) -> Finished | None:
        for key, names in self._request.batch.other_keys():
            log = self._setting.log(key, self._request.batch.task)
            state = log.read()
            note = f"{log.prefix}.finished.json"
            if note not in log.siblings:
                continue
            document = self._document(note)
            if names is not None and document.get("named_by") != list(names):
                continue
            if state.finished is not None:
                return state.finished
            if state.number == 0 and document.get("batch_log") != LOG_BESIDE:
                return self._finished_of(
                    str(document.get("run_id")), document, at=document.get("finished_at")
                )
        return None
