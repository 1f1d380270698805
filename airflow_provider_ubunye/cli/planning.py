"""What a run would do now: looked up, judged and listed, as the run itself would; nothing is written."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

from airflow_provider_ubunye.core import messages
from airflow_provider_ubunye.core.decide import Decision, appends
from airflow_provider_ubunye.core.errors import OutputExists, UbunyeError
from airflow_provider_ubunye.core.judge import Verdict
from airflow_provider_ubunye.core.lease import Watch
from airflow_provider_ubunye.core.listing import data_files, replaceable
from airflow_provider_ubunye.core.replacing import name_of
from airflow_provider_ubunye.core.specs import (
    ERROR_IF_EXISTS,
    IGNORE,
    OVERWRITE,
    OVERWRITE_PARTITIONS,
    OutputSpec,
)
from airflow_provider_ubunye.core.start import Start
from airflow_provider_ubunye.core.state import BatchState, Debt, Finished
from airflow_provider_ubunye.core.store.base import unusable
from airflow_provider_ubunye.taskrun import TaskRun, output_kind


@dataclass
class OutputPlan:
    """What a run would do with one output.

    :param action: ``append``, ``overwrite``, ``overwrite_partitions``, ``create`` or ``skip``.
    :param replaces: files that would be removed after the new ones have landed.
    :param missing: files of the earlier run that are no longer there.
    :param notes: what else is to be known, one sentence each.
    """

    name: str
    mode: str
    path: str
    action: str
    replaces: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


@dataclass
class Plan:
    """What a run of one task would come to.

    :param would: ``run``, ``replace``, ``skip`` or ``refuse``.
    :param over: the dead run it would take over from.
    :param takes_back: files of dead or replaced runs that would be removed first.
    :param before: what would happen before the task runs, one sentence each.
    :param finished: the run that finished the batch, if any.
    :param error: why it would be refused.
    """

    task: TaskRun
    would: str = "run"
    over: str | None = None
    takes_back: int = 0
    finished: str | None = None
    before: list[str] = field(default_factory=list)
    outputs: list[OutputPlan] = field(default_factory=list)
    error: UbunyeError | None = None


def plan_of(task: TaskRun) -> Plan:
    """The plan of a task run that only looks.

    :raises UbunyeError: it can't be told: a config or state that can't be read, or what the run would raise
        beside a refusal.
    """
    plan = Plan(task)
    start = task.start()
    where = task.setting.store.where
    try:
        if os.path.isdir(where) and not os.access(where, os.R_OK | os.W_OK | os.X_OK):
            raise unusable(where, PermissionError(errno.EACCES, os.strerror(errno.EACCES)))
        state, decision = start.look()
        _judge(plan, start, state)
        owed = _owed(plan, start, state)
        plan.finished = start.finished.run if start.finished is not None else None
        record = task.finished_by_record()
        if record is not None:
            decision, plan.finished = Decision.SKIP, record.run_id
        if decision is Decision.REFUSE:
            raise start.refusal()
        plan.would = decision.value
        if decision is not Decision.SKIP:
            replaced = start.replaced() if decision is Decision.REPLACE else []
            plan.outputs = list(_outputs(task, replaced, owed, start.finished))
    except UbunyeError as error:
        if error.exit_code != 1:
            raise
        plan.would, plan.error = "refuse", error
    return plan


def _judge(plan: Plan, start: Start, state: BatchState) -> None:
    """Whether whoever holds the batch is dead.

    :raises RunLeaseHeld: it is not, or can't be told dead yet.
    """
    setting = plan.task.setting
    held = start.older.held()
    if held is not None:
        raise held
    holder = state.holder
    if holder is None:
        return
    verdict, evidence = Watch(start.log, setting.owner, is_alive=setting.is_alive).look(holder)
    silent = verdict is Verdict.UNKNOWN and evidence.age is not None and evidence.age >= holder.ttl
    if verdict is not Verdict.DEAD and not silent:
        raise messages.held(plan.task.batch, holder, verdict, evidence, start.log.where)
    plan.over = holder.run
    line = messages.holder_line(holder, evidence)
    if silent:
        plan.before.append(
            f"watch {line} for {messages.seconds(evidence.watch)}, and take over if it shows no sign of life"
        )
    else:
        plan.before.append(f"take over from {line}, which is dead")
    if holder.phase == "done":
        plan.before.append(f"finish what run {messages.who(holder.run)} left: it had committed the batch")


def _owed(plan: Plan, start: Start, state: BatchState) -> set[tuple[str, str]]:
    """The files that would be removed before anything else, as (output folder, name)."""
    debts = [*state.debts, *start.older.debts()]
    holder = state.holder
    if holder is not None and holder.phase != "done":
        debts += [Debt("unfinished", holder.run, output) for output in holder.outputs]
    places = plan.task.setting.places
    for debt in debts:
        if debt.output.kind == "named":
            plan.before.append(
                f"name {debt.output.name}: it may hold rows of run {messages.who(debt.run or '?')}, which can't "
                "be taken back"
            )
    owed = {(places.path(d.output.place), c.final) for d in debts for c in d.output.claims}
    there = [path for path in owed if plan.task.setting.disk.look("/".join(path)) is not None]
    plan.takes_back = len(there)
    if there:
        plan.before.append(f"remove {messages.count(len(there), 'file')} that earlier runs left")
    return owed


def _outputs(
    task: TaskRun, replaced: list[Debt], owed: set[tuple[str, str]], done: Finished | None
) -> Iterator[OutputPlan]:
    setting = task.setting
    earlier: dict[str, tuple[list[str], list[str]]] = {}
    gone: dict[str, list[str]] = {}
    for debt in replaced:
        folder = setting.places.path(debt.output.place)
        for claim in debt.output.claims:
            path = f"{folder}/{claim.final}"
            there, missing = earlier.setdefault(debt.output.name, ([], []))
            (missing if setting.disk.look(path) is None else there).append(path)
        assert done is not None  # else there was nothing to replace
        lost = sum(setting.disk.look(f"{folder}/{claim.final}") is None for claim in debt.output.claims)
        if lost:
            gone.setdefault(debt.output.name, []).append(messages.gone(lost, name_of(debt, done), folder))
    for output in task.config.outputs:
        plan = _output(task, output, owed)
        there, missing = earlier.pop(output.name, ([], []))
        plan.replaces += there
        plan.missing += missing
        plan.notes += gone.pop(output.name, [])
        yield plan
    for name, (there, missing) in earlier.items():
        notes = ["is no output of the task any more", *gone.pop(name, [])]
        yield OutputPlan(name, "-", "-", "gone", there, missing, notes)


def _output(task: TaskRun, output: OutputSpec, owed: set[tuple[str, str]]) -> OutputPlan:
    if output_kind(output) == "named":
        note = "can't be taken back after a crash: it is named then"
        return OutputPlan(output.name, output.mode, output.path, output.mode, notes=[note])
    setting, mode = task.setting, output.mode
    path = setting.places.path(setting.places.place(output.path))
    plan = OutputPlan(output.name, mode, path, "append" if appends(mode) else mode)

    def standing(names: list[str]) -> list[str]:
        return [f"{path}/{name}" for name in names if (path, name) not in owed]

    if mode == OVERWRITE:
        claims, plan.notes = replaceable(setting.disk, path, task.request.run, [""])
        plan.replaces = standing([claim.final for claim in claims])
    elif mode == OVERWRITE_PARTITIONS:
        names = [name for name, _ in data_files(setting.disk, path)]
        plan.replaces = standing([name for name in names if _may_be_filled(name, task.batch.pinned)])
        plan.notes.append("only in the partitions that the new rows fill: which ones, the run will show")
    elif mode in (ERROR_IF_EXISTS, IGNORE):
        plan.action = "create"
        if standing([name for name, _ in data_files(setting.disk, path)]):
            if mode == ERROR_IF_EXISTS:
                raise OutputExists(f"the output {output.name} has mode {mode} and {path} holds data already")
            plan.action = "skip"
    elif not task.batch.named:
        plan.notes.append("no batch: without -dt or --var a second run adds its rows again")
    return plan


def _may_be_filled(name: str, pinned: Any) -> bool:
    """Whether a batch may fill the partition of a file: a row of another day than the batch's is refused."""
    for part in name.split("/")[:-1]:
        column, equals, value = part.partition("=")
        if equals and pinned.get(unquote(column), unquote(value)) != unquote(value):
            return False
    return True
