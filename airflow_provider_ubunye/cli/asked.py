"""The task runs that a call asks for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from airflow_provider_ubunye.cli.options import variables
from airflow_provider_ubunye.core.errors import UsageError
from airflow_provider_ubunye.taskrun import TaskRun


def task_runs(given: Mapping[str, Any], **how: Any) -> list[TaskRun]:
    """One task run for each task that is named, in the order given.

    :param given: the options as click parsed them.
    :param how: further parameters of :class:`TaskRun`.
    :raises UsageError: no task, a task named twice or not there, or a wrong variable.
    """
    values = variables(given)
    usecase, package = given["usecase"], given["package"]
    return [
        TaskRun(
            f"{usecase}/{package}/{name}",
            usecase_dir=given["usecase_dir"],
            variables=values,
            state=given.get("state"),
            **how,
        )
        for name in task_names(given)
    ]


def task_names(given: Mapping[str, Any]) -> list[str]:
    """The names of the tasks: those of ``-t``, or with ``--all`` every one of the package.

    :raises UsageError: as :func:`task_runs`.
    """
    from pathlib import Path

    from airflow_provider_ubunye.tasks.folder import TaskFolder, list_tasks

    names: list[str] = list(given["tasks"])
    where = Path(given["usecase_dir"]), given["usecase"], given["package"]
    if given["every"]:
        if names:
            raise UsageError("--all and -t together make no sense: every task, or some?")
        return [folder.task for folder in list_tasks(*where)]
    if not names:
        known = ", ".join(folder.task for folder in list_tasks(*where)[:5])
        raise UsageError(f"no task is named; there is {known}", hint="give -t TASK, or --all")
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise UsageError(f"the task {twice[:80]!r} is named twice")
    for name in names:
        TaskFolder(*where, name).require()
    return names
