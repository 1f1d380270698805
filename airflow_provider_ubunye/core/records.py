"""Run records (receipts) on a disk: what ran, when, with what outcome.

A record is a copy for people and for later questions. No protection rests on it: the batch's log decides,
and whoever looks next closes a record that its run could not close.
"""

from __future__ import annotations

import datetime
import json
import logging
import os
import re
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Protocol

from airflow_provider_ubunye.core.batch import check_task
from airflow_provider_ubunye.core.errors import StateUnreadable
from airflow_provider_ubunye.core.localdisk import again_if_swept, retry_in_use

logger = logging.getLogger("airflow_provider_ubunye")

RECORD_VERSION = 3
"""2 is the older Ubunye's; its records are read."""

RUNNING = "running"
SUCCESS = "success"
ERROR = "error"
INTERRUPTED = "interrupted"


_ANY_TEXT = "surrogatepass"
"""A record never fails for its text: a file name or a user's message may hold what UTF-8 has no bytes for."""

_IN_CLEAR = frozenset(
    (
        "run_id",
        "task_path",
        "usecase",
        "package",
        "task_name",
        "batch_key",
        "status",
        "started_at",
        "ended_at",
    )
)
"""Never masked: a record is found and read by them, and each comes from names, not from the user's code."""

_TEMP = ".tmp"
_PLAIN = re.compile(r"[0-9A-Za-z-]{1,64}")


def now_text() -> str:
    """Now as records write it: UTC, ISO 8601, microseconds."""
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="microseconds")


@dataclass(frozen=True)
class RunRecord:
    """One run. Field names are the reference's; times are UTC, ISO 8601.

    :param run_id: 32 hex digits; an older Ubunye's is a UUID.
    :param task_path: ``usecase/package/task``.
    :param profile: the mode.
    :param status: ``running``, ``success``, ``error`` or ``interrupted``.
    :param outputs: per output: name, format, location, mode, row_count, files.
    :param batch_key: the batch's key; None for an older Ubunye's record.
    :param more: what another version wrote beside; kept when the record is closed.
    """

    run_id: str
    task_path: str
    status: str
    started_at: str
    ended_at: str | None = None
    duration_sec: float | None = None
    profile: str = "DEV"
    model: str | None = None
    version: str | None = None
    config_hash: str | None = None
    backend: str | None = None
    engine_version: str | None = None
    variables: Mapping[str, str] = field(default_factory=dict)
    inputs: tuple[Mapping[str, Any], ...] = ()
    outputs: tuple[Mapping[str, Any], ...] = ()
    error: str | None = None
    batch_key: str | None = None
    attempt: Mapping[str, Any] | None = None
    record_version: int = RECORD_VERSION
    more: Mapping[str, Any] = field(default_factory=dict)

    def ended(self, status: str, error: str | None = None, **changes: Any) -> RunRecord:
        """The record closed now."""
        at = now_text()
        began = datetime.datetime.fromisoformat(self.started_at)
        spent = (datetime.datetime.fromisoformat(at) - began).total_seconds()
        return replace(self, status=status, ended_at=at, duration_sec=spent, error=error, **changes)


class Records(Protocol):
    """A run record store."""

    def save(self, record: RunRecord) -> None:
        """Write the record whole, replacing an earlier state of it. :raises OSError: it could not."""

    def load(self, task: str, run_id: str) -> RunRecord | None:
        """One record, None when there is none. :raises StateUnreadable: it is damaged."""

    def list_runs(self, task: str) -> list[str]:
        """The ids of a task's recorded runs."""

    def search(self, task: str, *, status: str | None = None) -> Iterator[RunRecord]:
        """A task's records, newest first. One that can't be read is named in a warning and left out."""


class FileRecords:
    """Records as files, ``<root>/<usecase>/<package>/<task>/<run id>.json``.

    :param root: usually ``<usecase_dir>/.ubunye/lineage``.
    :param mask: what hides secrets in a text; every text of a record passes it on its way to the disk.
    """

    def __init__(self, root: str | os.PathLike[str], mask: Callable[[str], str] = str) -> None:
        self.root = Path(root)
        self._mask = mask

    def save(self, record: RunRecord) -> None:
        path = self._path(record.task_path, record.run_id)
        usecase, package, task = record.task_path.split("/")
        document = {
            **record.more,
            **{name: value for name, value in asdict(record).items() if name != "more"},
            "usecase": usecase,
            "package": package,
            "task_name": task,
        }
        data = self._text(document).encode("utf-8", _ANY_TEXT)
        # One run of a batch writes at a time, so what stands there under the batch's key was left by a kill.
        folder = path.parent / _TEMP
        key = record.batch_key or ""
        prefix = f"{key if _PLAIN.fullmatch(key) else record.run_id}."
        try:
            again_if_swept(lambda: _replace(path, folder, prefix, data))
        except OSError:
            # Once more: an error that passes must not leave a record that says running for ever.
            again_if_swept(lambda: _replace(path, folder, prefix, data))

    def load(self, task: str, run_id: str) -> RunRecord | None:
        path = self._path(task, run_id)
        try:
            data = retry_in_use(path.read_bytes)
        except FileNotFoundError:
            return None
        record = _parse(data, str(path))
        if (record.task_path, record.run_id) != (task, run_id):
            raise StateUnreadable("a run record says that it is another's", where=str(path))
        return record

    def list_runs(self, task: str) -> list[str]:
        folder = self.root.joinpath(*check_task(task).split("/"))
        try:
            names = os.listdir(folder)
        except FileNotFoundError:
            return []
        return sorted(n.removesuffix(".json") for n in names if n.endswith(".json") and n[0] != ".")

    def search(self, task: str, *, status: str | None = None) -> Iterator[RunRecord]:
        for record in sorted(self._readable(task), key=lambda r: r.started_at, reverse=True):
            if status is None or record.status == status:
                yield record

    def _readable(self, task: str) -> Iterator[RunRecord]:
        try:
            runs = self.list_runs(task)
        except OSError as error:
            logger.warning("The run records of %s can't be listed: %s", task, error)
            return
        for run in runs:
            try:
                record = self.load(task, run)
            except (OSError, StateUnreadable) as error:
                where = self.root.joinpath(*task.split("/"), f"{run}.json")
                logger.warning("The run record %s is left out: %s", where, error)
                continue
            if record is not None:
                yield record

    def _text(self, document: Mapping[str, Any]) -> str:
        clear = {name: value for name, value in document.items() if name in _IN_CLEAR}
        masked = {**_masked(document, self._mask), **clear}
        return json.dumps(masked, indent=2, ensure_ascii=False, default=lambda o: self._mask(str(o)))

    def _path(self, task: str, run_id: str) -> Path:
        if not _PLAIN.fullmatch(run_id):
            raise StateUnreadable(f"{run_id[:80]!r} is no run id", where=str(self.root))
        return self.root.joinpath(*check_task(task).split("/"), f"{run_id}.json")


def _masked(value: Any, mask: Callable[[str], str]) -> Any:
    """The value with every text in it masked, at any depth."""
    if isinstance(value, str):
        return mask(value)
    if isinstance(value, Mapping):
        return {name: _masked(part, mask) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [_masked(part, mask) for part in value]
    return value


def _replace(path: Path, folder: Path, prefix: str, data: bytes) -> None:
    """Write a file whole, by way of ``folder``, in which what begins with ``prefix`` is swept first."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in os.listdir(folder):
        if name.startswith(prefix):
            (folder / name).unlink(missing_ok=True)
    temp = folder / f"{prefix}{uuid.uuid4().hex}"
    try:
        with open(temp, "xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        retry_in_use(lambda: os.replace(temp, path))
    except BaseException:
        temp.unlink(missing_ok=True)
        raise


def _parse(data: bytes, where: str) -> RunRecord:
    try:
        document = json.loads(data.decode("utf-8", _ANY_TEXT))
        known = {f.name for f in fields(RunRecord)} - {"more"}
        values = {k: v for k, v in document.items() if k in known}
        values["more"] = {k: v for k, v in document.items() if k not in known}
        values["inputs"] = tuple(values.get("inputs") or ())
        values["outputs"] = tuple(values.get("outputs") or ())
        if not all(isinstance(part, dict) for part in values["inputs"] + values["outputs"]):
            raise ValueError("its inputs or outputs are no objects")
        record = RunRecord(**values)
        if datetime.datetime.fromisoformat(record.started_at).tzinfo is None:
            raise ValueError("started_at has no time zone")
    except (ValueError, TypeError, AttributeError, RecursionError) as error:
        raise StateUnreadable(f"a run record can't be read: {error}", where=where) from None
    return record
