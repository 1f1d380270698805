"""The sentences that a person reads at 3 a.m.: who holds or finished what, since when, what to type next."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_provider_ubunye.core.errors import BatchFinished, RunInterrupted, RunLeaseHeld
from airflow_provider_ubunye.core.judge import Evidence, Verdict
from airflow_provider_ubunye.core.owner import Owner
from airflow_provider_ubunye.core.state import ROWS, BatchState, Finished, Holder

if TYPE_CHECKING:
    from airflow_provider_ubunye.core.batch import Batch


def who(run: str) -> str:
    """A run's id as people see it: its first eight digits."""
    return run[:8]


def count(number: int, noun: str) -> str:
    """A number of things for people: ``1 file``, ``2 files``, ``12,000 rows``."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


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
        ahead = f"{seconds(evidence.ahead)} in the future"
        parts.append(f"last heartbeat {ahead if evidence.ahead else f'{seconds(evidence.age)} ago'}")
    if holder.attempt:
        shown = ("dag_id", "run_id", "task_id", "try_number")
        parts.append(" ".join(f"{k}={holder.attempt[k]}" for k in shown if k in holder.attempt))
    return ", ".join(parts)


def held(batch: Batch, holder: Holder, verdict: Verdict, evidence: Evidence, where: str) -> RunLeaseHeld:
    """The refusal while another run holds the batch."""
    if evidence.ahead:
        minutes = evidence.needed // 60 + 1
        hint = (
            f"a clock was set back, so only silence can tell: --wait {minutes:.0f}m watches it for "
            f"{seconds(evidence.needed)} and takes over unless it beats meanwhile, as a live run does"
        )
    elif verdict is Verdict.UNKNOWN:
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


def finished(
    batch: Batch, done: Finished, appending: list[str], where: str, *, waited: bool = False
) -> BatchFinished:
    """The refusal of a finished batch whose task appends.

    :param waited: whether the run that finished it is the one that this one waited for.
    """
    if waited:
        return BatchFinished(
            f"{batch.label}: run {who(done.run)} finished it while this one waited ({done.at})",
            where=where,
            hint="nothing is left to do; with --resume such a wait ends with exit code 0. Only --rerun replaces "
            "the batch (rerun=True in Python)",
        )
    if _wrote_no_rows(done):
        return BatchFinished(
            f"{batch.label} already finished this batch with no rows (run {who(done.run)}, finished {done.at})",
            where=where,
            hint="if its data is there now, run it again with --rerun (rerun=True in Python)",
        )
    to = f" and appends to {', '.join(appending)}" if appending else ""
    return BatchFinished(
        f"{batch.label} already finished this batch (run {who(done.run)}, finished {done.at}){to}: running it "
        "again would add its rows twice",
        where=where,
        hint="to replace the batch, run it again with --rerun (rerun=True in Python); if each run adds new rows "
        "to the same batch, give each run a variable of its own, such as --var hour=13",
    )


def left_alone(batch: Batch, output: str, run: str) -> str:
    """What a run says of an output that mode ``ignore`` leaves as it is."""
    return f"{batch.label}: {output} holds data already (mode ignore); kept as it is (run {who(run)})."


def interrupted(label: str, error: KeyboardInterrupt, whole: bool, replacing: bool) -> RunInterrupted:
    """What a run says that was asked to stop.

    :param error: the interrupt; its text is the signal's name where that is known.
    :param whole: whether all that the run wrote is taken back already.
    :param replacing: whether it was to replace an earlier batch.
    """
    by = f" by {error}" if str(error).startswith("SIG") else ""
    taken = "what it wrote is taken back" if whole else "the next run takes back what it wrote"
    stands = ", and the earlier batch stands" if replacing else ""
    return RunInterrupted(f"{label} was interrupted{by}; {taken}{stands}; run it again")


def _wrote_no_rows(done: Finished) -> bool:
    """Whether all that the run added is known to be nothing."""
    # Here, not above: looking at leases must not pay for what a run needs.
    from airflow_provider_ubunye.core.decide import appends

    added = [output for output in done.outputs if appends(output.mode)]
    return bool(added) and all(
        output.kind == "files" and (not output.claims or output.detail.get(ROWS) == 0) for output in added
    )


def gone(number: int, run: str, folder: str) -> str:
    """What a rerun says of files of the earlier run that it does not find."""
    verb, they_were, their = ("is", "it was", "its") if number == 1 else ("are", "they were", "their")
    return (
        f"{count(number, 'file')} of run {who(run)} {verb} no longer there. If {they_were} moved or compacted, "
        f"{their} rows stand twice once this run has finished: check {folder}"
    )


def lost_to(state: BatchState, run: str) -> str:
    """Who took the batch from a run that lost its lease, as far as the log tells."""
    from airflow_provider_ubunye.core.decide import RELEASE

    holder = state.holder
    if holder is not None and holder.run != run:
        if holder.purpose == RELEASE:
            return "it was released by hand"
        host = Owner.from_json(holder.owner).host
        return f"run {who(holder.run)} took the batch over{f', on {host}' if host else ''}"
    last = state.history[-1] if state.history else None
    if holder is None and last is not None and last.run != run:
        if last.outcome == "released":
            return "it was released by hand"
        return f"run {who(last.run)} took the batch over"
    return "the batch was taken over" if state.number else "the batch's log is gone"
