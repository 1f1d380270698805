"""``ubunye init``."""

from __future__ import annotations

from pathlib import Path
from shlex import quote
from typing import Any

import click

from airflow_provider_ubunye.cli.lazy import Command, Once
from airflow_provider_ubunye.cli.options import output_options
from airflow_provider_ubunye.cli.output import Out


@click.command("init", cls=Command, short_help="Write a new task that runs at once.")
@click.option("-d", "--usecase-dir", cls=Once, required=True, metavar="FOLDER", help="Made where missing.")
@click.option("-u", "--usecase", cls=Once, required=True, metavar="USECASE", help="The use case.")
@click.option("-p", "--package", cls=Once, required=True, metavar="PACKAGE", help="The package.")
@click.option(
    "-t",
    "--task",
    "--task-list",
    "tasks",
    multiple=True,
    required=True,
    metavar="TASK",
    help="The task; several may be given.",
)
@output_options
@click.pass_obj
def command(out: Out, /, **given: Any) -> int:
    """Write a task: config.yaml, transformations.py and a few rows to read. Nothing is written over."""
    from airflow_provider_ubunye.core.messages import count
    from airflow_provider_ubunye.tasks.folder import TaskFolder
    from airflow_provider_ubunye.tasks.scaffold import write_task

    where, usecase, package = Path(given["usecase_dir"]), given["usecase"], given["package"]
    folders = [TaskFolder(where, usecase, package, name) for name in given["tasks"]]
    written = [path for folder in folders for path in write_task(folder)]
    for path in written:
        out.line(f"created {path}")
    flags = " ".join(f"-t {quote(name)}" for name in given["tasks"])
    batch = f"-d {quote(str(where))} -u {quote(usecase)} -p {quote(package)} {flags} -dt 2026-11-01"
    out.line(f"[OK] {count(len(folders), 'task')} written. Next:")
    out.line(f"  ubunye run {batch}")
    out.line("The same again is refused, for it would add the rows twice; with --rerun it replaces them.")
    if out.json:
        out.document({"status": "ok", "exit_code": 0, "created": [str(path) for path in written]})
    return 0
