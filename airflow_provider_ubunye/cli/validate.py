"""``ubunye validate``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from airflow_provider_ubunye.cli.lazy import Command
from airflow_provider_ubunye.cli.options import batch_options, output_options, place_options, task_options
from airflow_provider_ubunye.cli.output import Out

if TYPE_CHECKING:
    from airflow_provider_ubunye.core.errors import UbunyeError
    from airflow_provider_ubunye.taskrun import TaskRun


@click.command("validate", cls=Command, short_help="Check the config and code of tasks.")
@place_options(required=True)
@task_options
@batch_options
@output_options
@click.pass_obj
def command(out: Out, /, **given: Any) -> int:
    """Check the config of tasks, and that their code loads. All of them, however many are wrong.

    Loading the code carries out what stands at the top of transformations.py. Inputs are not read and secrets
    not fetched. Variables are needed where the config uses them: what is missing is named.
    """
    from airflow_provider_ubunye.cli.app import error_document, status_of
    from airflow_provider_ubunye.cli.asked import task_runs
    from airflow_provider_ubunye.core.messages import count

    codes = []
    documents: list[dict[str, object]] = []
    with out.logged():
        asked = task_runs(given, looking=True)
        for task in asked:
            error = _fault(task)
            code = 0 if error is None else error.exit_code
            codes.append(code)
            document: dict[str, object] = {"task": task.task, "status": status_of(code), "exit_code": code}
            if error is None:
                outputs = ", ".join(f"{o.name} ({o.format}, {o.mode})" for o in task.config.outputs)
                out.line(f"[OK] {task.task}: {count(len(task.config.inputs), 'input')}, outputs {outputs}")
                document.update(reason="done", error=None)
            else:
                out.error(error, prefix=f"{task.task}: ")
                document.update(error_document(error))
            documents.append(document)
    if out.json:
        out.document(documents if len(documents) > 1 else documents[0])
    return next((code for code in codes if code), 0)


def _fault(task: TaskRun) -> UbunyeError | None:
    from airflow_provider_ubunye.cli.app import as_error
    from airflow_provider_ubunye.tasks.load import load_transform

    try:
        _ = task.request
        load_transform(task.folder)
    except Exception as raised:  # noqa: BLE001 - whatever it is, it becomes one line
        return as_error(raised)
    return None
