"""The sentences that a person reads at 3 a.m.: who holds or finished what, since when, what to type next."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_provider_ubunye.core.errors import BatchFinished, RunLeaseHeld
from airflow_provider_ubunye.core.judge import Evidence, Verdict
from airflow_provider_ubunye.core.owner import Owner
from airflow_provider_ubunye.core.state import Finished, Holder

if TYPE_CHECKING:
    from airflow_provider_ubunye.core.batch import Batch


def who(run: str) -> str:
    """A run's id as people see it: its first eight digits."""
    return run[:8]


def seconds(value: float) -> str:
    """A time span for people: ``40 s``, ``15 min``, ``2.5 h``."""
    if value < 120:
        return f"{value:.0f} s"
    if value < 7200:
        return f"{value / 60:.0f} min"
    return f"{value / 3600:.1f} h"


def holder_line(holder: Holder, evidence: Evidence | None = None) -> str:
    """A holder in one clause: run, user, host, pid, since when, last heartbeat, and for Airflow the try."""
    owner = Owner.from_json(holder.owner)
    by = f" by {owner.user}" if owner.user else ""
    parts = [f"run {who(holder.run)}{by} on {owner.host or 'an unknown host'}, pid {owner.pid}"]
    parts.append(f"since {holder.since}")
    if evidence is not None and evidence.age is not None:
        parts.append(f"last heartbeat {seconds(max(evidence.age, 0))} ago")
    if holder.attempt:
        shown = ("dag_id", "run_id", "task_id", "try_number")
        parts.append(" ".join(f"{k}={holder.attempt[k]}" for k in shown if k in holder.attempt))
    return ", ".join(parts)


def held(batch: Batch, holder: Holder, verdict: Verdict, evidence: Evidence, where: str) -> RunLeaseHeld:
    """The refusal while another run holds the batch."""
    if verdict is Verdict.UNKNOWN:
        hint = "whether it is alive can't be told yet; run again later, or with --wait"
    elif evidence.process:
        hint = f"wait for it (--wait 10m), or stop process {holder.owner.get('pid')} and run again"
    else:
        hint = (
            f"wait for it (--wait 10m); it counts as dead once it is silent for {seconds(holder.ttl)}. Do not "
            "remove its entries by hand: they hold its claims"
        )
    return RunLeaseHeld(
        f"{batch.label} is still running: {holder_line(holder, evidence)}", where=where, hint=hint
    )


def finished(batch: Batch, done: Finished, appending: list[str], where: str) -> BatchFinished:
    """The refusal of a finished batch whose task appends."""
    to = f" and appends to {', '.join(appending)}" if appending else ""
    return BatchFinished(
        f"{batch.label} already finished this batch (run {who(done.run)}, finished {done.at}){to}: running it "
        "again would add its rows twice",
        where=where,
        hint="to replace the batch, run it again with --rerun (rerun=True in Python); if each run adds new rows "
        "to the same batch, give each run a variable of its own, such as --var hour=13",
    )
