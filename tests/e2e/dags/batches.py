"""DAGs for the tests on a real scheduler: one task each, whose batch the DAG run's conf names."""

from __future__ import annotations

import datetime
import os
import signal
from pathlib import Path
from typing import Any

from airflow.sdk import DAG, Asset, task

from airflow_provider_ubunye import UbunyeHook, UbunyeTaskOperator

WORK = Path(os.environ["UBUNYE_TEST_WORK"])
START = datetime.datetime(2026, 11, 1, tzinfo=datetime.UTC)


def once(context: Any, word: str) -> bool:
    """Whether the test asked for this, and nobody has done it yet."""
    dt = (context["dag_run"].conf or {}).get("dt") or context["ds"]
    try:
        (WORK / "control" / f"{dt}.{word}").unlink()
    except FileNotFoundError:
        return False
    return True


def arm(context: Any) -> None:
    """Die when the second of the batch's files is about to land."""
    if not once(context, "die-landing"):
        return
    rename, landed = os.rename, []

    def dying(source: Any, target: Any, **how: Any) -> None:
        if str(target).endswith(".parquet"):
            landed.append(target)
        if len(landed) == 2:
            os.kill(os.getpid(), signal.SIGKILL)
        rename(source, target, **how)

    os.rename = dying  # type: ignore[assignment]


def die(context: Any, result: Any = None) -> None:
    """Die after the batch was committed, before Airflow is told."""
    if once(context, "die-after"):
        os.kill(os.getpid(), signal.SIGKILL)


COMMON: dict[str, Any] = {
    "task": "shop/daily/load_orders",
    "dt": "{{ dag_run.conf['dt'] }}",
    "retries": 2,
    "retry_delay": datetime.timedelta(seconds=1),
    "poll_interval": 1,
    "pre_execute": arm,
    "post_execute": die,
}

VARIANTS: dict[str, dict[str, Any]] = {
    "plain": {"outlets": [Asset("orders")]},
    "later": {"retry_delay": datetime.timedelta(seconds=15)},
    "finished_skip": {"on_finished": "skip"},
    "finished_rerun": {"on_finished": "rerun"},
    "clear_rerun": {"on_clear": "rerun"},
    "held_fail": {"on_held": "fail", "retries": 0},
    "held_skip": {"on_held": "skip"},
    "held_timeout": {"held_timeout": 3, "retries": 0},
    "timed": {"execution_timeout": datetime.timedelta(seconds=12)},
    "resume": {"resume": True},
    "spark": {"backend": "spark"},
    "literal": {"dt": "{{ '{{ ds }}' }}"},
    "templated": {"dt": "{{ ds }}"},
    "defaulted": {"dt": "auto"},
}
for dag_id, how in VARIANTS.items():
    with DAG(dag_id, schedule=None, start_date=START):
        UbunyeTaskOperator(task_id="load", **{**COMMON, **how})

        @task
        def other() -> None:
            """Another task, to be cleared."""

        other()

with DAG("daily", schedule="@daily", start_date=START, end_date=START, catchup=False):
    UbunyeTaskOperator(task_id="load", **{k: v for k, v in COMMON.items() if k != "dt"})

with DAG("mapped", schedule=None, start_date=START):
    UbunyeTaskOperator.partial(
        task_id="load", **{k: v for k, v in COMMON.items() if k not in ("pre_execute", "post_execute")}
    ).expand(variables=[{"side": "one"}] * 20)

with DAG("hook", schedule=None, start_date=START):

    @task(retries=2, retry_delay=datetime.timedelta(seconds=1), post_execute=die)
    def append(dag_run: Any = None) -> str:
        import pandas as pd

        dt = dag_run.conf["dt"]
        with UbunyeHook().run("shop/daily/by_hook", dt=dt) as run:
            frame = pd.DataFrame({"dt": dt, "region": ["eu", "us"], "id": range(2)})
            run.append(frame, WORK / "lake" / "orders", partition_by=["dt", "region"])
        return run.id

    append()

with DAG("decorated", schedule=None, start_date=START):

    @task.ubunye(
        task="shop/daily/decorated",
        dt="{{ dag_run.conf['dt'] }}",
        retries=2,
        retry_delay=datetime.timedelta(seconds=1),
        post_execute=die,
    )
    def fill(region: str, run: Any, dag_run: Any = None) -> None:
        import pandas as pd

        dt = dag_run.conf["dt"]
        frame = pd.DataFrame({"dt": dt, "region": [region, region], "id": range(2)})
        run.append(frame, WORK / "lake" / "orders", partition_by=["dt", "region"])

    # Airflow's own type does not know that the run is given later.
    call: Any = fill
    call("eu")
