"""``ubunye leases list``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

from airflow_provider_ubunye.cli.lazy import Command
from airflow_provider_ubunye.cli.leases import label_of, state_of, store_of
from airflow_provider_ubunye.cli.options import output_options, place_options
from airflow_provider_ubunye.cli.output import Out
from airflow_provider_ubunye.core import messages
from airflow_provider_ubunye.core.errors import StateUnreadable
from airflow_provider_ubunye.core.leases import LeaseInfo, leases
from airflow_provider_ubunye.core.owner import Owner

_HEAD = ("STATE", "RUN", "BATCH", "HOST", "PID", "SINCE", "HEARTBEAT")


@click.command("list", cls=Command, short_help="Who holds which batch, and who owes files.")
@place_options(required=False)
@click.option("--all", "every", is_flag=True, help="Batches that are finished or free as well.")
@output_options
@click.pass_obj
def command(out: Out, /, **given: Any) -> int:
    """List the batches that somebody holds, that owe files, or that can't be read.

    A dead run's batch needs nothing from you: the next run takes it over. Exit code 5 when one can't be read.
    """
    setting = store_of(out, given, looking=True)
    found = [info for info in leases(setting) if given["every"] or info.open]
    found.sort(key=lambda info: (info.task, label_of(info)))
    if out.json:
        out.document([_document(info) for info in found])
    elif not found:
        more = "" if given["every"] else " (--all shows the finished ones)"
        out.line(f"No {'batches' if given['every'] else 'open batches'} in {setting.store.where}{more}.")
    else:
        for line in _table([_HEAD, *(_row(info) for info in found)]):
            out.line(line)
    unreadable = [info for info in found if info.problem is not None]
    for info in unreadable:
        out.error(
            StateUnreadable(info.problem or "", where=info.where),
            prefix=f"A person must look: {info.task} {info.key}: ",
        )
    return 5 if unreadable else 0


def _row(info: LeaseInfo) -> tuple[str, ...]:
    state, holder, done = state_of(info), info.state.holder, info.state.finished
    if holder is None:
        run, host, pid, since = info.key, "-", "-", "-"
        if info.older is not None:
            run, host, pid, since = (
                str(info.older.get(name, "?")) for name in ("run_id", "host", "pid", "started_at")
            )
        elif owed := next((debt.run for debt in info.state.debts if debt.run), None):
            run = owed
        elif done is not None:
            run, since = done.run, done.at
        elif info.state.history:
            run, since = info.state.history[-1].run, info.state.history[-1].at
        shown = run if run == info.key else messages.who(run)
        return state, shown, label_of(info), host.partition("|")[0], pid, since, "-"
    owner = Owner.from_json(holder.owner)
    seen = info.evidence
    if seen is not None and seen.process is not None:
        beaten = "process is there" if seen.process else "process is gone"
    else:
        beaten = "-" if seen is None or seen.age is None else f"{messages.seconds(max(seen.age, 0))} ago"
    host, pid = owner.host or "?", str(owner.pid)
    return state, messages.who(holder.run), label_of(info), host, pid, holder.since, beaten


def _table(rows: Sequence[tuple[str, ...]]) -> list[str]:
    widths = [max(len(row[column]) for row in rows) for column in range(len(_HEAD))]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    ]


def _document(info: LeaseInfo) -> dict[str, object]:
    state, holder, done = info.state, info.state.holder, info.state.finished
    owner = Owner.from_json(holder.owner) if holder is not None else None
    return {
        "task": info.task,
        "key": info.key,
        "variables": dict(state.variables),
        "state": state_of(info),
        "run": None if holder is None else holder.run,
        "phase": None if holder is None else holder.phase,
        "host": None if owner is None else owner.host,
        "pid": None if owner is None else owner.pid,
        "user": None if owner is None else owner.user,
        "since": None if holder is None else holder.since,
        "heartbeat_age": None if info.evidence is None else info.evidence.age,
        "takeover_after": None if holder is None else holder.ttl,
        "attempt": None if holder is None else holder.attempt,
        "owes_files": sum(len(debt.output.claims) for debt in state.debts),
        "finished_run": None if done is None else done.run,
        "finished_at": None if done is None else done.at,
        "older_run": None if info.older is None else info.older.get("run_id"),
        "problem": info.problem,
        "problem_where": info.where,
    }
