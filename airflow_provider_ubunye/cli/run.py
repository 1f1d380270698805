"""``ubunye run``."""

from __future__ import annotations

from typing import Any

import click

from airflow_provider_ubunye.cli.lazy import Command, Once
from airflow_provider_ubunye.cli.options import (
    batch_options,
    output_options,
    place_options,
    seconds,
    task_options,
)
from airflow_provider_ubunye.cli.output import Out
from airflow_provider_ubunye.core.errors import UsageError


@click.command(
    "run",
    cls=Command,
    short_help="Run tasks for one batch; safe to run again.",
    epilog="Example: ubunye run -d pipelines -u shop -p daily -t load_orders -dt 2026-11-01",
)
@place_options(required=True)
@task_options
@batch_options
@click.option("--rerun", is_flag=True, help="Replace a finished batch: new files land, then the old ones go.")
@click.option("--resume", is_flag=True, help="Skip every task that already finished this batch.")
@click.option(
    "--wait",
    cls=Once,
    metavar="SPAN",
    help="Wait this long while another run holds the batch: 90s, 10m, 2h.",
)
@click.option(
    "--takeover-after",
    cls=Once,
    metavar="SPAN",
    help="A run elsewhere counts as dead after this long without a heartbeat. Else UBUNYE_TAKEOVER_AFTER, "
    "else 15m.",
)
@click.option("--lineage", is_flag=True, help="Keep a run record of each run.")
@click.option(
    "--lineage-dir",
    cls=Once,
    metavar="FOLDER",
    help="Where run records are kept; implies --lineage. Default .ubunye/lineage in the -d folder.",
)
@click.option("--backend", cls=Once, metavar="NAME", help="The engine: pandas, the default.")
@click.option("--deploy-mode", cls=Once, metavar="MODE", help="client, the only one.")
@output_options
@click.pass_obj
def command(out: Out, /, **given: Any) -> int:
    """Run one or several tasks for one batch, one after the other; the first failure ends it.

    A batch is a task with its -dt and every --var. Running a finished batch of a task that appends is refused:
    --rerun replaces it, --resume leaves it as it is. After a crash just run it again: what the dead run wrote
    is taken back first.
    """
    from airflow_provider_ubunye.cli.signals import stopping

    if given["deploy_mode"] not in (None, "client"):
        raise UsageError(f"there is no deploy mode {given['deploy_mode'][:40]!r}; there is client")
    with stopping(last=out.last) as stops, out.logged():
        from airflow_provider_ubunye.cli.asked import task_runs
        from airflow_provider_ubunye.cli.running import run_all

        asked = task_runs(
            given,
            rerun=given["rerun"],
            resume=given["resume"],
            wait=seconds(given, "wait") or 0.0,
            takeover_seconds=seconds(given, "takeover_after"),
            lineage=given["lineage"],
            lineage_dir=given["lineage_dir"],
            backend=given["backend"] or "pandas",
        )
        told = run_all(out, asked, stops)
    if out.json:
        documents = [task.document() for task in told]
        out.document(documents if len(documents) > 1 else documents[0])
    return next((task.exit_code for task in told if task.exit_code), 0)
