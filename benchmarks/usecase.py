"""Use case folders to measure with, and how ``ubunye`` is started on them."""

from __future__ import annotations

import shutil
import sys
from dataclasses import replace
from pathlib import Path

from airflow_provider_ubunye.core.batch import Batch
from airflow_provider_ubunye.core.disk import Disk
from airflow_provider_ubunye.core.request import Request
from airflow_provider_ubunye.core.run import open_run
from airflow_provider_ubunye.core.where import setting_for

PART = b"PAR1" + bytes(100) + b"PAR1"
"""The smallest content that the check of a claim takes for a whole Parquet file."""

TASK = "shop/daily/load_orders"

_CONFIG = """\
MODEL: etl
VERSION: "0.1.0"
CONFIG:
  inputs:
    orders: {{format: {read}, path: {source}}}
  outputs:
    orders: {{format: {write}, path: "{target}", mode: append{options}}}
"""
_TRANSFORM = '''\
"""Keeps the orders above a price."""


def transform(sources):
    orders = sources["orders"]
    return {"orders": orders[orders["price"] > 0.5]}
'''


def make_task(
    folder: Path, source: Path, target: str, *, read: str = "csv", write: str = "parquet", options: str = ""
) -> Path:
    """A use case folder with one task that filters a frame.

    :param target: the output's path; may be a template.
    :returns: the use case folder.
    """
    task = folder.joinpath(*TASK.split("/"))
    task.mkdir(parents=True)
    text = _CONFIG.format(read=read, write=write, source=source, target=target, options=options)
    (task / "config.yaml").write_text(text)
    (task / "transformations.py").write_text(_TRANSFORM)
    return folder


def ubunye(*arguments: str) -> list[str]:
    """The command line that runs ``ubunye`` of this environment.

    :raises SystemExit: it is not installed.
    """
    script = Path(sys.executable).with_name("ubunye")
    if not script.exists():
        raise SystemExit(f"{script} is not there: install the project into this environment first")
    return [str(script), *arguments]


def run_command(usecase_dir: Path, day: str) -> list[str]:
    """``ubunye run`` of the task for one day."""
    usecase, package, task = TASK.split("/")
    return ubunye("run", "-d", str(usecase_dir), "-u", usecase, "-p", package, "-t", task, "-dt", day)


def clear(folder: Path) -> None:
    """Remove a folder that may not be there."""
    shutil.rmtree(folder, ignore_errors=True)


def append_parts(
    usecase_dir: Path, out: Path, variables: dict[str, str], files: int, disk: Disk | None = None
) -> None:
    """Append part files by a run of the core: no engine, no config, no frame.

    :param disk: the disk to land on, where it is not the local one.
    """
    setting = setting_for(usecase_dir)
    request = Request(
        Batch.of(TASK, variables), appends=True, outputs={"orders": ("append", str(out), "files")}
    )
    run = open_run(setting if disk is None else replace(setting, disk=disk), request)
    assert run is not None
    with run:
        staging = run.output("orders", "append", str(out))
        assert staging is not None
        for index in range(files):
            (staging.folder / staging.part_name(index, ".parquet")).write_bytes(PART)
