"""Settling what runs left: after a takeover, and after a run's own done (contract, invariants 4 to 7).

One order for both: the note, the records, then the files. Whoever settles holds the lease meanwhile, and
its ``cleaned`` or ``finished`` entry says what is left. It may die at any step: the next one does it again.
"""

from __future__ import annotations

import logging

from airflow_provider_ubunye.core.errors import NotTakenBack, StateUnreadable
from airflow_provider_ubunye.core.lease import Lease
from airflow_provider_ubunye.core.note import write_note
from airflow_provider_ubunye.core.records import INTERRUPTED, RUNNING, SUCCESS
from airflow_provider_ubunye.core.request import Request, Setting
from airflow_provider_ubunye.core.state import UNFINISHED, Debt, to_json
from airflow_provider_ubunye.core.takeback import Settled, TakeBack

log = logging.getLogger("airflow_provider_ubunye")


def settle(setting: Setting, request: Request, lease: Lease) -> Settled:
    """Settle every debt of the batch and record it.

    After this run's own done the entry is ``finished`` and the lease is free; before, it is ``cleaned``.

    :returns: what was removed, what is left and why.
    :raises LeaseLost: another run took over; it settles the rest.
    :raises OSError: the store or disk refused; the next run of the batch goes on from here.
    """
    state = lease.state
    assert state.holder is not None
    own = state.holder.phase == "done"
    unnoted = []
    if state.finished is not None and (own or state.unclosed):
        try:
            write_note(lease, request.batch, state.finished, setting.places)
        except OSError as error:
            # The log is the truth: what was replaced still goes, and the next run of the batch writes the note.
            log.warning("The finished note could not be written: %s", error.strerror or error)
            unnoted.append(state.finished.run)
    for run in state.unclosed:
        close_record(setting, request, run, state.outcome_of(run) == "success", by=lease.run)
    settled = take_back(setting, request, lease, state.debts)
    if own or state.debts or state.unclosed:
        body = {"debts": to_json(settled.left), "unclosed": unnoted}
        lease.append("finished" if own else "cleaned", body)
    return settled


def take_back(
    setting: Setting, request: Request, lease: Lease, debts: tuple[Debt, ...] | list[Debt]
) -> Settled:
    """Settle debts without recording it; says what happened in the log."""
    act = TakeBack(setting.disk, setting.places, setting.staging_root, lease.check, request.owns)
    settled = act.settle(debts)
    for line in settled.warnings + settled.problems:
        log.warning("%s", line)
    for debt in settled.named:
        log.warning(
            "The output %s may hold rows of run %s, which did not finish; they can't be taken back.",
            debt.output.name,
            (debt.run or "?")[:8],
        )
    return settled


def refuse_what_is_left(settled: Settled, label: str) -> None:
    """Refuse to go on over files that could not be removed.

    :raises NotTakenBack: naming the first problem and how many there are.
    """
    if not settled.left:
        return
    more = len(settled.problems) - 1
    dead = any(debt.why == UNFINISHED for debt in settled.left)
    raise NotTakenBack(
        f"{label}: files of {'a dead run' if dead else 'a replaced run'} could not be removed: "
        f"{settled.problems[0]}{f' (and {more} more)' if more > 0 else ''}",
        hint="free or remove what is named, then run the batch again; nothing was added",
    )


def close_record(setting: Setting, request: Request, run: str, success: bool, by: str) -> None:
    """Close a dead run's record, if it has one that is open. A record never stops a run."""
    if setting.records is None:
        return
    try:
        record = setting.records.load(request.batch.task, run)
        if record is None or record.status != RUNNING:
            return
        if success:
            setting.records.save(record.ended(SUCCESS))
        else:
            setting.records.save(record.ended(INTERRUPTED, f"taken over by run {by}"))
    except (OSError, StateUnreadable) as error:
        log.warning("The record of run %s could not be closed: %s", run[:8], error)
