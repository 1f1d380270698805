"""Leaving a batch whose run broke off in a process that goes on.

Others judge a run of this machine by its process alone. So a run that ends in any way, without having freed its
lease, says so in the log: its outputs become debts, and the next run, of whatever process, settles them at once.
"""

from __future__ import annotations

import contextlib

from airflow_provider_ubunye.core.errors import UbunyeError
from airflow_provider_ubunye.core.log import BatchLog, Superseded
from airflow_provider_ubunye.core.state import UNFINISHED, Debt, to_json

_TRIES = 3


def leave(log: BatchLog, run: str) -> None:
    """Free the batch's lease if ``run`` still holds it; everything it may have left is owed from then on.

    Never raises: where the store does not answer, the lease is free once the process ends.
    """
    for _ in range(_TRIES):
        with contextlib.suppress(UbunyeError, OSError):
            try:
                _leave(log, run)
            except Superseded:
                # An entry of this run that was in doubt, or a taker's: look again.
                continue
        return


def _leave(log: BatchLog, run: str) -> None:
    state = log.read()
    holder = state.holder
    if holder is None or holder.run != run:
        return
    if holder.phase == "done":
        # Committed: what is left to do is the note, the record and the files, as for a dead run.
        log.append(state, run, "finished", {"debts": to_json(state.debts), "unclosed": [run]})
        return
    owed = [*state.debts, *(Debt(UNFINISHED, run, output) for output in holder.outputs)]
    body = {"outcome": "failed", "debts": to_json(owed), "unclosed": [*state.unclosed, run]}
    log.append(state, run, "released", body)
