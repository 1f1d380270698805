"""The finished note: a readable copy of who finished a batch, at the reference's path.

``<key>.finished.json`` beside the batch's log. The log is the truth; the note is there for people, and for an
older Ubunye that runs the batch, which refuses when it finds one. It is replaced whole, and never read
where a log exists.
"""

from __future__ import annotations

import contextlib
import json
import os
from typing import Any

from airflow_provider_ubunye.core.batch import Batch
from airflow_provider_ubunye.core.errors import NotTakenBack
from airflow_provider_ubunye.core.lease import Lease
from airflow_provider_ubunye.core.log import BatchLog
from airflow_provider_ubunye.core.places import Places
from airflow_provider_ubunye.core.state import Finished, Written

LOG_BESIDE = 1
"""Says in a note that a log stands beside it, which an older Ubunye's note does not."""


def note_key(log: BatchLog) -> str:
    """The note's key in the store."""
    return f"{log.prefix}.finished.json"


def write_note(lease: Lease, batch: Batch, finished: Finished, places: Places) -> None:
    """Put the note of a finished batch in its place.

    :raises LeaseLost: another run took over; the note is its.
    :raises OSError: the store refused; the log stands all the same.
    """
    lease.log.store.put(note_key(lease.log), _note(batch, finished, places), lease.confirm)


def _note(batch: Batch, finished: Finished, places: Places) -> bytes:
    outputs: dict[str, dict[str, Any]] = {}
    for output in finished.outputs:
        # What an older Ubunye left may be one output in several folders.
        entry = outputs.setdefault(output.name, {"claimed": [], "mode": output.mode})
        entry["claimed"] += _claimed(output, places)
    document = {
        "run_id": finished.run,
        "task": batch.task,
        "finished_at": finished.at,
        "outputs": outputs,
        "variables": dict(batch.variables),
        "named_by": None if batch.named_by is None else list(batch.named_by),
        "batch_log": LOG_BESIDE,
    }
    return json.dumps(document, indent=2, ensure_ascii=False).encode("utf-8", "surrogateescape") + b"\n"


def _claimed(output: Written, places: Places) -> list[Any]:
    """The landed files as an older Ubunye names them: relative to the use case folder where there is one."""
    try:
        base = output.place.path if output.place.base == "usecase" else places.path(output.place)
    except NotTakenBack:
        return []
    if output.place.base != "usecase" and places.usecase_dir is not None:
        with contextlib.suppress(ValueError):  # another drive
            base = os.path.relpath(base, places.usecase_dir).replace(os.sep, "/")
    return [f"{base}/{claim.final}" for claim in output.claims]
