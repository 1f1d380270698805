"""Appending one entry to a batch's log, against making a file durable and giving it a name by a hard link."""

from __future__ import annotations

import os
import uuid
from pathlib import Path

from airflow_provider_ubunye.core.localdisk import sync_folder
from airflow_provider_ubunye.core.log import BatchLog
from airflow_provider_ubunye.core.owner import this_process
from airflow_provider_ubunye.core.store.file import FileStore
from benchmarks.measure import Figure, interleaved, ratio, timed

_EACH = 100


def measure(work: Path, rounds: int) -> list[Figure]:
    """A: append a hundred entries. B: write, fsync, link, unlink and fsync of the folder, as often."""
    store = FileStore(work / "state")

    def entries(number: int) -> float:
        log = BatchLog(store, f"leases/shop/daily/load_orders/{number:016x}")
        run = uuid.uuid4().hex
        acquired = {
            "owner": this_process().to_json(),
            "ttl": 900.0,
            "beat": 30.0,
            "purpose": "run",
            "recorded": False,
            "over": None,
            "variables": {},
            "outputs": [],
        }
        state = log.append(log.read(), run, "acquired", acquired)

        def append() -> None:
            nonlocal state
            for _ in range(_EACH):
                state = log.append(state, run, "writing", {"outputs": []})

        return timed(append)

    def bare(number: int) -> float:
        folder = work / "bare" / str(number)
        folder.mkdir(parents=True)

        def create() -> None:
            for index in range(_EACH):
                temp = folder / f".tmp-{index}"
                with open(temp, "xb") as file:
                    file.write(bytes(250))
                    file.flush()
                    os.fsync(file.fileno())
                os.link(temp, folder / f"{index:08d}.json")
                os.unlink(temp)
                sync_folder(str(folder))

        return timed(create)

    a, b = interleaved(rounds, entries, bare)
    return [ratio(f"{_EACH} entries of a log", a, b, None, "BatchLog.append", "write, link, fsyncs")]
