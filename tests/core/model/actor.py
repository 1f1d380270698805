"""What a run of a scenario does: it opens the real run, writes its files, and leaves."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from greenlet import GreenletExit

from airflow_provider_ubunye.core import leases
from airflow_provider_ubunye.core.request import RELEASE, Request, Setting, appends
from airflow_provider_ubunye.core.run import open_run
from airflow_provider_ubunye.core.testing import MemoryDisk
from tests.core.model.monitor import RELEASED, SKIPPED, SUCCESS
from tests.core.model.scenario import PIPE, Actor


def run_as(actor: Actor, setting: Setting, disk: MemoryDisk) -> str:
    """Run it to its end; returns what it reports where it raises nothing."""
    batch = actor.job.batch
    if actor.purpose == RELEASE:
        leases.release(setting, leases.look(setting, batch.task, batch.key))
        return RELEASED
    outputs = actor.job.outputs
    asked = Request(
        batch,
        run=actor.run,
        purpose=actor.purpose,
        outputs={o.name: (o.mode, o.path, "files") for o in outputs},
        appends=any(appends(o.mode) for o in outputs),
    )
    run = open_run(setting, asked)
    if run is None:
        return SKIPPED
    with run:
        for output in outputs:
            staging = run.output(output.name, output.mode, output.path)
            assert staging is not None
            folder = staging.folder.as_posix()
            for index, part in enumerate(output.parts):
                if part:
                    disk.make_folders(f"{folder}/{part}")
                path = "/".join(filter(None, (folder, part, staging.part_name(index, ".csv"))))
                disk.write(path, b"rows")
        if actor.fails:
            raise ValueError("the user's code fails")
    return SUCCESS


def outcome_of(run: Callable[[], str]) -> str:
    try:
        return run()
    except GreenletExit:
        raise
    except Exception as error:  # noqa: BLE001 - whatever a run reports is looked at by the monitor
        return type(error).__name__


def line(actor: str, name: str, args: tuple[Any, ...] = (), variant: str = "", seen: Any = None) -> str:
    shown = " ".join(a if isinstance(a, str) else "…" if isinstance(a, bytes) else str(a) for a in args)
    result = f" → {seen!r:.70}" if args else ""
    how = f" ({variant})" if variant else ""
    return f"{actor}: {name} {shown}{how}{result}".replace(f"{PIPE}/", "")
