"""``ubunye plan``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from airflow_provider_ubunye.cli.lazy import Command, Once
from airflow_provider_ubunye.cli.options import batch_options, output_options, place_options, task_options
from airflow_provider_ubunye.cli.output import Out
from airflow_provider_ubunye.core.messages import count, who

if TYPE_CHECKING:
    from airflow_provider_ubunye.cli.planning import OutputPlan, Plan

_MOST_FILES = 10
_WOULD = {
    "run": "would run",
    "replace": "would replace the batch",
    "skip": "would be skipped: [SKIP] it already finished this batch",
    "refuse": "would be refused",
}


@click.command("plan", cls=Command, short_help="Say what a run would do now, and write nothing.")
@place_options(required=True)
@task_options
@batch_options
@click.option("--rerun", is_flag=True, help="As if with run --rerun.")
@click.option("--resume", is_flag=True, help="As if with run --resume.")
@click.option("--lineage", is_flag=True, help="Look at run records too, as run --resume --lineage does.")
@click.option("--lineage-dir", cls=Once, metavar="FOLDER", help="Where run records are kept.")
@output_options
@click.pass_obj
def command(out: Out, /, **given: Any) -> int:
    """Say what a run would do at this moment: be refused, and by whom; take over; replace which files; append.

    Nothing is written and no code of the task is run. Exit code 0 when the run would go, else the one that it
    would end with.
    """
    from airflow_provider_ubunye.cli.app import as_error, error_document, status_of
    from airflow_provider_ubunye.cli.asked import task_runs
    from airflow_provider_ubunye.cli.planning import plan_of
    from airflow_provider_ubunye.cli.running import prefix_of

    codes = []
    documents = []
    how = {name: given[name] for name in ("rerun", "resume", "lineage", "lineage_dir")}
    with out.logged():
        asked = task_runs(given, looking=True, **how)
        for task in asked:
            try:
                plan = plan_of(task)
            except Exception as raised:  # noqa: BLE001 - whatever it is, it becomes one line
                error = as_error(raised)
                out.error(error, prefix=prefix_of(task, error))
                codes.append(error.exit_code)
                documents.append(
                    {"task": task.task, "status": status_of(error.exit_code), **error_document(error)}
                )
                continue
            for line in _lines(plan):
                out.line(line)
            code = 0 if plan.error is None else plan.error.exit_code
            codes.append(code)
            document = _document(plan, status_of(code))
            if plan.error is not None:
                document.update(error_document(plan.error))
            documents.append(document)
    if out.json:
        out.document(documents if len(documents) > 1 else documents[0])
    return next((code for code in codes if code), 0)


def _lines(plan: Plan) -> Iterator[str]:
    yield f"{plan.task.batch.label} (mode {plan.task.batch.variables['mode']}): {_WOULD[plan.would]}{_by(plan)}"
    yield f"  State: {plan.task.setting.store.where}"
    if other := plan.task.other_state():
        yield f"  [WARN] {other}"
    for line in plan.before:
        yield f"  first {line}"
    if plan.error is not None:
        for line in plan.error.lines():
            yield f"  {line.strip()}"
    for output in plan.outputs:
        yield from _output_lines(output)


def _by(plan: Plan) -> str:
    return f" (run {who(plan.finished)})" if plan.would == "skip" and plan.finished else ""


def _output_lines(output: OutputPlan) -> Iterator[str]:
    said = {
        "append": f"append to {output.path}",
        "create": f"write to {output.path}, which is empty",
        "skip": f"[SKIP] {output.path} holds data already; kept as it is",
        "gone": "earlier output",
    }.get(output.action, f"{output.action} {output.path}")
    verb = "overwrite" if output.action in ("overwrite", "overwrite_partitions") else "replace"
    counted = f", {count(len(output.replaces), 'file')} to {verb}" if output.replaces else ""
    yield f"  {output.name}: {said}{counted}"
    for note in output.notes:
        yield f"    {note}"
    for path in output.replaces[:_MOST_FILES]:
        yield f"    {verb}s {path}"
    if len(output.replaces) > _MOST_FILES:
        yield f"    … {len(output.replaces) - _MOST_FILES} more (--json shows them)"
    for path in output.missing[:_MOST_FILES]:
        yield f"    misses {path}"


def _document(plan: Plan, status: str) -> dict[str, Any]:
    from dataclasses import asdict

    batch = plan.task.batch
    return {
        "task": plan.task.task,
        "status": status,
        "reason": plan.would,
        "exit_code": 0,
        "would": plan.would,
        "variables": dict(batch.variables),
        "key": batch.key,
        "state": plan.task.setting.store.where,
        "over": plan.over,
        "takes_back": plan.takes_back,
        "before": plan.before,
        "outputs": [asdict(output) for output in plan.outputs],
        "error": None,
    }
