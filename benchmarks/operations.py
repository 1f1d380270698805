"""What a trivial append asks of the store and of the disk: counted, not timed."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import pandas as pd

from airflow_provider_ubunye.api import batch_run, run_task
from airflow_provider_ubunye.core import disk, localdisk
from airflow_provider_ubunye.core.store import MARK, FileStore
from benchmarks.measure import Figure
from benchmarks.usecase import TASK, make_task

# Of operations and of fsyncs alike. A block's output is not known when it begins, so it is announced by an
# entry of its own, and an entry is two of each.
_LIMITS = {"run_task": 12, "batch_run": 14}
_OPERATIONS = ("create", "read", "list", "delete", "put", "beat", "age")


def measure(work: Path) -> list[Figure]:
    """One small file into an output folder that is there, by a task that ran before."""
    source = work / "orders.csv"
    source.write_text("id,price\n1,1.0\n")
    uc = make_task(work / "uc", source, str(work / "out"))
    frame = pd.DataFrame({"id": [1], "price": [1.0]})

    def append(day: str) -> None:
        with batch_run(TASK, dt=day, state=work / "state") as run:
            run.append(frame, work / "frames")

    figures = []
    ways: list[tuple[str, Callable[[str], object]]] = [
        ("run_task", lambda day: run_task(TASK, usecase_dir=uc, dt=day)),
        ("batch_run", append),
    ]
    for name, act in ways:
        act("2026-11-01")
        with _counted() as (operations, syncs):
            act("2026-11-02")
        what = f"a trivial append by {name}"
        opening = [operation for operation in operations if operation.endswith(f" {MARK}")]
        appending = [operation for operation in operations if operation not in opening]
        limit = _LIMITS[name]
        figures.append(Figure(f"{what}, opening the store", len(opening), "", None, opening))
        figures.append(Figure(f"{what}, store operations", len(appending), "", limit, appending))
        figures.append(Figure(f"{what}, fsyncs", len(syncs), "", limit, syncs))
    return figures


@contextlib.contextmanager
def _counted() -> Iterator[tuple[list[str], list[str]]]:
    operations: list[str] = []
    syncs: list[str] = []

    def noting(name: str) -> Callable[..., Any]:
        real = getattr(FileStore, name)

        def noted(self: FileStore, key: Any, *rest: Any) -> Any:
            operations.append(f"{name} {key}")
            return real(self, key, *rest)

        return noted

    fsync, whole = os.fsync, localdisk.sync_file_system

    def noted_fsync(fd: int) -> None:
        syncs.append(f"fsync {os.readlink(f'/proc/self/fd/{fd}')}")
        fsync(fd)

    def noted_whole(path: str) -> bool:
        syncs.append(f"syncfs {path}")
        return whole(path)

    with contextlib.ExitStack() as stack:
        for name in _OPERATIONS:
            stack.enter_context(mock.patch.object(FileStore, name, noting(name)))
        stack.enter_context(mock.patch.object(os, "fsync", noted_fsync))
        stack.enter_context(mock.patch.object(disk, "sync_file_system", noted_whole))
        yield operations, syncs
