"""``ubunye leases``: the group. Listing must stay cheap, so each command has a module of its own."""

from __future__ import annotations

import errno
import os
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from airflow_provider_ubunye.cli.lazy import Group
from airflow_provider_ubunye.core.errors import UsageError

if TYPE_CHECKING:
    from airflow_provider_ubunye.cli.output import Out
    from airflow_provider_ubunye.core.setting import Setting

_HERE = "airflow_provider_ubunye.cli"

command = Group(
    "leases",
    late={
        "list": (f"{_HERE}.leases_list", "Who holds which batch, and who owes files."),
        "show": (f"{_HERE}.leases_show", "One batch's log, entry by entry."),
        "release": (f"{_HERE}.leases_release", "Free a batch that a dead run holds."),
    },
    help="Who holds which batch. An ID is a run's id or its first digits, as refusals print it, or a batch key.",
)


def store_of(out: Out, given: dict[str, Any], *, looking: bool) -> Setting:
    """The store that is meant. ``UBUNYE_RUN_LEASE=off`` is about runs: what is there is looked at all the same.

    :raises UsageError: nothing names a store. :raises StoreUnusable: it can't be used.
    """
    from airflow_provider_ubunye.core.store.base import unusable
    from airflow_provider_ubunye.core.where import LEASE, setting_for, shell_of, state_uri

    environ = {**os.environ, LEASE: ""}
    base, state = given["usecase_dir"], given["state"]
    if base is not None and not os.path.isdir(base):
        raise UsageError(
            f"the use case folder {os.path.abspath(base)!r} does not exist", hint="name it with -d <folder>"
        )
    shell = shell_of(base, state)
    if looking:
        # Where outputs and records are, is of no use to who only looks at leases.
        base, state = None, state_uri(base, state)
    setting = replace(setting_for(base, state, looking=looking, environ=environ), shell=shell)
    where = setting.store.where
    if not os.path.isdir(where):
        out.warn(f"there is no {where}: no run has kept its state there yet")
    elif not os.access(where, os.R_OK | os.X_OK):
        raise unusable(where, PermissionError(errno.EACCES, os.strerror(errno.EACCES)))
    return setting


def state_of(info: Any) -> str:
    """One word: alive, dead, unknown, older, owing, unreadable, finished or free."""
    if info.problem is not None:
        return "unreadable"
    if info.verdict is not None:
        return str(info.verdict.value)
    if info.older is not None:
        return "older"
    if info.state.debts:
        return "owing"
    return "finished" if info.state.finished is not None else "free"


def label_of(info: Any) -> str:
    """The batch for a person: its task and the variables that name it."""
    names = info.state.named_by
    shown = [
        f"{name}={value if len(value) <= 40 else value[:37] + '...'}"
        for name, value in sorted(info.state.variables.items())
        if (names is None or name in names or name == "mode") and (name, value) != ("mode", "DEV")
    ]
    # The log of a batch that only an older Ubunye ran is empty: its variables are not known.
    return " ".join([info.task, *(shown if info.state.runs else [info.key])])
