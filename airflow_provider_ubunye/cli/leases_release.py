"""``ubunye leases release``."""

from __future__ import annotations

from typing import Any

import click

from airflow_provider_ubunye.cli.lazy import Command
from airflow_provider_ubunye.cli.leases import state_of, store_of
from airflow_provider_ubunye.cli.options import output_options, place_options
from airflow_provider_ubunye.cli.output import Out
from airflow_provider_ubunye.core.errors import RunLeaseHeld


@click.command("release", cls=Command, short_help="Free a batch that a dead run holds.")
@click.argument("given_id", metavar="ID")
@click.option("--force", is_flag=True, help="Even if the run may be alive: it can then land nothing more.")
@place_options(required=False)
@output_options
@click.pass_obj
def command(out: Out, /, **given: Any) -> int:
    """Free a batch by hand, and take back what the dead run wrote. A run that had committed is completed.

    Seldom needed: the next run of the batch does the same by itself. ID: a run's id, its first digits as a
    refusal prints them, or a batch key.
    """
    from airflow_provider_ubunye.cli.signals import stopping
    from airflow_provider_ubunye.core.leases import find, look, release

    with stopping(last=out.last) as stops, out.logged(), stops.armed():
        # Looked at before the store is tested: nothing is made where there is nothing to release.
        info = find(store_of(out, given, looking=True), given["given_id"])
        setting = store_of(out, given, looking=False)
        try:
            said = release(setting, info, force=given["force"])
        except RunLeaseHeld as held:
            typed = setting.typed(f"leases release {given['given_id']} --force")
            held.hint = f"wait for it or stop it; if it must not go on, shut it out with {typed}"
            raise
    out.line(f"[OK] {said}")
    if out.json:
        after = look(setting, info.task, info.key)
        document = {"status": "ok", "reason": "done", "exit_code": 0, "said": said, "error": None}
        out.document({**document, "task": info.task, "key": info.key, "state": state_of(after)})
    return 0
