"""``UbunyeTaskOperator.execute()`` against a ``PythonOperator``'s over the same work, both in this process.

The work is that of :mod:`benchmarks.long`: about 20 s of reading, filtering and writing. The function makes
what it wrote durable, as the run does. Airflow is imported, and both operators are made, before anything is timed.
"""

from __future__ import annotations

import gc
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

import pyarrow.parquet as pq

from airflow_provider_ubunye.core.localdisk import sync_file_system
from benchmarks.long import FILES, ROWS, orders_of
from benchmarks.measure import Cost, Figure, interleaved, ratio
from benchmarks.usecase import TASK, clear, make_task

LIMIT = 1.05


def measure(work: Path, rounds: int, rows: int = ROWS) -> list[Figure]:
    """A: ``UbunyeTaskOperator.execute``. B: ``PythonOperator.execute`` of a function.

    :param rows: the rows of each of the four files that are read.
    """
    source = work / "orders"
    source.mkdir()
    for number in range(FILES):
        pq.write_table(orders_of(number, rows), source / f"part-{number}.parquet")
    make_task(work / "uc", source, f"{work}/out-{{{{ dt }}}}", read="parquet")
    others = {k: v for k, v in os.environ.items() if not k.startswith(("AIRFLOW", "UBUNYE"))}
    # Both operators would warn, at every round, that no task runner calls them.
    home = {"AIRFLOW_HOME": str(work / "airflow"), "AIRFLOW__LOGGING__LOGGING_LEVEL": "ERROR"}
    with mock.patch.dict(os.environ, {**others, **home}, clear=True):
        return _measure(work, source, rounds)


def _measure(work: Path, source: Path, rounds: int) -> list[Figure]:
    from airflow.providers.standard.operators.python import PythonOperator

    from airflow_provider_ubunye.operators.ubunye import UbunyeTaskOperator

    seen: set[int] = set()

    def execute(operator: Any, target: Path) -> Cost:
        context: Any = {"outlet_events": {}}
        cost = _cost(lambda: operator.execute(context))
        kept = sum(pq.read_metadata(path).num_rows for path in target.rglob("*.parquet"))
        seen.add(kept)
        if len(seen) > 1 or not kept:
            raise SystemExit(f"{target} has {kept} rows; both sides were to keep the same: {sorted(seen)}")
        clear(target)
        sync_file_system(str(work))
        return cost

    def ours(number: int) -> Cost:
        operator = UbunyeTaskOperator(
            task_id="load", task=TASK, usecase_dir=str(work / "uc"), dt=f"day{number}", variables={}
        )
        return execute(operator, work / f"out-day{number}")

    def theirs(number: int) -> Cost:
        target = work / f"hand-{number}"
        operator = PythonOperator(
            task_id="load", python_callable=_by_hand, op_args=[str(source), str(target)]
        )
        return execute(operator, target)

    a, b = interleaved(rounds, ours, theirs)
    what = "an operator's execute() over a long task"
    names = ("UbunyeTaskOperator", "PythonOperator")
    return [
        ratio(f"{what}, wall", [c.wall for c in a], [c.wall for c in b], LIMIT, *names),
        ratio(f"{what}, CPU", [c.cpu for c in a], [c.cpu for c in b], LIMIT, *names),
    ]


def _by_hand(source: str, target: str) -> None:
    import pandas as pd

    orders = pd.read_parquet(source)
    orders = orders[orders["price"] > 0.5]
    os.makedirs(target)
    orders.to_parquet(f"{target}/orders.parquet", index=False)
    with open(f"{target}/orders.parquet", "rb") as file:
        os.fsync(file.fileno())


def _cost(act: Callable[[], object]) -> Cost:
    """What it costs in this process, every thread's CPU included; no round pays for the garbage of another."""
    gc.collect()
    wall, cpu = time.perf_counter(), time.process_time()
    act()
    return Cost(time.perf_counter() - wall, time.process_time() - cpu)
