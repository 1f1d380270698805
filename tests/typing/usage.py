"""The public API as users write it. Never run: mypy says whether each type is still what it was.

A line that must stay an error carries the error's code; mypy fails where it is none any more.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, assert_type

import pandas as pd
from airflow.sdk import task
from airflow.sdk.bases.decorator import TaskDecorator

import airflow_provider_ubunye
from airflow_provider_ubunye import (
    Task,
    TaskContext,
    UbunyeHook,
    UbunyeTaskOperator,
    batch_run,
    run_pipeline,
    run_task,
)
from airflow_provider_ubunye.api import BatchRun, TaskResult
from airflow_provider_ubunye.operators.base import UbunyeBaseOperator

if TYPE_CHECKING:
    from airflow.sdk import Context

    from airflow_provider_ubunye.attempt import Ruling

FRAME = pd.DataFrame({"id": [1]})
DAY = datetime.date(2026, 11, 1)

assert_type(airflow_provider_ubunye.__version__, str)


def plain_python() -> None:
    with batch_run("shop/daily/load", dt=DAY, variables={"hour": 9}, state=Path("/srv/state"), wait=5) as run:
        assert_type(run, BatchRun)
        assert_type(run.id, str)
        assert_type(run.append(FRAME, "/lake/orders", partition_by=["region"], options={"a": 1}), int)
        assert_type(run.overwrite(FRAME, Path("/lake/totals"), format="csv", name="totals"), int)
        assert_type(run.overwrite_partitions(FRAME, "/lake/days", partition_by=("dt",)), int)
        assert_type(run.write(FRAME, "/lake/once", mode="errorifexists"), int)
        run.write(FRAME, "/lake/once")  # type: ignore[call-arg]
        run.append(FRAME, "/lake/orders", "csv")  # type: ignore[call-arg]
    assert_type(run.outcome.replaced, int)
    with batch_run("shop/daily/load", batch=["dt"], rerun=True, lineage=True, takeover_seconds=60.0):
        pass
    batch_run("shop/daily/load", "2026-11-01")  # type: ignore[call-arg]
    batch_run("shop/daily/load", hour=9)  # type: ignore[call-arg]
    batch_run(dt=DAY)  # type: ignore[call-arg]
    batch_run("shop/daily/load", state=3)  # type: ignore[arg-type]


def task_folders() -> None:
    result = run_task(
        "shop/daily/load", usecase_dir=Path("pipelines"), dt="2026-11-01", mode="PROD", resume=True
    )
    assert_type(result, TaskResult | None)
    if result is not None:
        assert_type(result.run, str)
        assert_type(result.rows, Mapping[str, int])
        assert_type(result.files, Mapping[str, int])
        assert_type(result.skipped, tuple[str, ...])
        assert_type(result.over, str | None)
        result.run = ""  # type: ignore[misc]
    run_task("shop/daily/load")  # type: ignore[call-arg]
    run_task("shop/daily/load", usecase_dir="pipelines", rerun="yes")  # type: ignore[arg-type]

    def report(name: str, result: TaskResult | None) -> None:
        print(name, result)

    done = run_pipeline(["shop/daily/load", "shop/daily/sum"], report=report, usecase_dir="pipelines", dt=DAY)
    assert_type(done, dict[str, TaskResult])
    run_pipeline(["shop/daily/load"], print)  # type: ignore[call-arg]


def hook() -> None:
    made = UbunyeHook(ubunye_conn_id="lake")
    with made.run("shop/daily/load", dt="2026-11-01", on_finished="skip", on_clear="rerun") as run:
        assert_type(run, BatchRun)
        if run.done_by is not None:
            assert_type(run.done_by.run, str)
    assert_type(made.run_task("shop/daily/load", dt="2026-11-01", resume=True), TaskResult | None)
    assert_type(made.test_connection(), tuple[bool, str])
    UbunyeHook("lake")  # type: ignore[call-arg]
    made.run("shop/daily/load", "2026-11-01")  # type: ignore[call-arg]
    made.run("shop/daily/load", on_finished=True)  # type: ignore[arg-type]
    made.run("shop/daily/load", backend="pandas")  # type: ignore[call-arg]


def operators() -> None:
    operator = UbunyeTaskOperator(
        task_id="load",
        task="shop/daily/load",
        dt="{{ ds }}",
        variables={"region": "eu"},
        backend="pandas",
        resume=True,
        held_timeout=datetime.timedelta(hours=1),
        retries=2,
    )
    assert_type(operator.task, str)
    assert_type(operator.backend, str | None)
    assert_type(operator.on_held, str)
    assert_type(operator.held_timeout, datetime.timedelta | float | None)
    UbunyeTaskOperator("load", task="shop/daily/load")  # type: ignore[call-arg]
    UbunyeTaskOperator(task_id="load", task="shop/daily/load", backend=3)  # type: ignore[arg-type]
    UbunyeTaskOperator(task_id="load", task="shop/daily/load", resume="no")  # type: ignore[arg-type]


class Mine(UbunyeBaseOperator):
    """What a user's own operator overrides."""

    def carry_out(self, context: Context, hook: UbunyeHook, ruling: Ruling, dt: Any) -> dict[str, Any] | None:
        with hook.run(self.task, dt=dt) as run:
            return {"run": run.id, "rows": {}, "files": {}}


def operators_of_users() -> None:
    Mine(task_id="mine", task="shop/daily/mine", mode="PROD", held_timeout=60, lineage=False, poll_interval=2)
    Mine(task_id="mine")  # type: ignore[call-arg]
    Mine(task_id="mine", task=3)  # type: ignore[arg-type]
    Mine(task_id="mine", task="shop/daily/mine", held_timeout="1h")  # type: ignore[arg-type]
    Mine(task_id="mine", task="shop/daily/mine", on_held=None)  # type: ignore[arg-type]


def decorators() -> None:
    assert_type(task.ubunye, TaskDecorator)

    @task.ubunye(task="shop/daily/load", dt="{{ ds }}", on_held="skip")
    def load(region: str, run: BatchRun) -> None:
        run.append(FRAME.assign(region=region), "/lake/orders")


class Load(Task):
    """A task folder's task, written as a class."""

    def transform(self, sources: dict[str, Any]) -> dict[str, Any]:
        assert_type(self.context, TaskContext)
        return sources


class Unfinished(Task):
    """Without a transform."""


def tasks(context: TaskContext) -> None:
    Load()
    Unfinished()  # type: ignore[abstract]
    assert_type(context.task, str)
    assert_type(context.dt, str | None)
    assert_type(context.dtf, str | None)
    assert_type(context.mode, str)
    assert_type(context.variables, Mapping[str, str])
    assert_type(context.params, Mapping[str, Any])
    assert_type(context.usecase_dir, Path)
    assert_type(context.task_dir, Path)
    context.dt = None  # type: ignore[misc]
