"""``ubunye run`` of a task that reads and writes for about 20 s, against a script that does the same.

The script makes what it wrote durable, as the run does: without that, what is compared is how much of the
output stays in memory when the process ends.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from airflow_provider_ubunye.core.localdisk import sync_file_system
from benchmarks.measure import Cost, Figure, interleaved, process, ratio
from benchmarks.usecase import clear, make_task, run_command

LIMIT = 1.05
FILES = 4
ROWS = 6_500_000

_SCRIPT = """\
import os
import sys

import pandas as pd

source, target = sys.argv[1:]
orders = pd.read_parquet(source)
orders = orders[orders["price"] > 0.5]
os.makedirs(target)
orders.to_parquet(f"{target}/orders.parquet", index=False)
if "DURABLE" in os.environ:
    with open(f"{target}/orders.parquet", "rb") as file:
        os.fsync(file.fileno())
"""


def measure(work: Path, rounds: int) -> list[Figure]:
    """A: ``ubunye run``. B: the script. 26 million orders in four Parquet files; half of them are kept."""
    source, script = work / "orders", work / "by_hand.py"
    source.mkdir()
    for number in range(FILES):
        pq.write_table(orders_of(number), source / f"part-{number}.parquet")
    script.write_text(_SCRIPT)
    make_task(work / "uc", source, f"{work}/out-{{{{ dt }}}}", read="parquet")

    def run(number: int) -> Cost:
        cost = process(run_command(work / "uc", f"day{number}"))
        return _cleared(work / f"out-day{number}", cost)

    def by_hand(number: int) -> Cost:
        target = work / f"hand-{number}"
        cost = process([sys.executable, str(script), str(source), str(target)], {"DURABLE": "1"})
        return _cleared(target, cost)

    a, b = interleaved(rounds, run, by_hand)
    what = "a task that reads and writes for long"
    return [
        ratio(f"{what}, wall", [c.wall for c in a], [c.wall for c in b], LIMIT, "ubunye run", "script"),
        ratio(f"{what}, CPU", [c.cpu for c in a], [c.cpu for c in b], LIMIT, "ubunye run", "script"),
    ]


def _cleared(folder: Path, cost: Cost) -> Cost:
    clear(folder)
    sync_file_system(str(folder.parent))
    return cost


def orders_of(number: int, rows: int = ROWS) -> pa.Table:
    """Made-up orders, the same for the same number."""
    random = np.random.default_rng(number)
    ids = np.arange(rows) + number * rows
    return pa.table(
        {
            "id": ids,
            "customer": random.integers(0, 500_000, rows),
            "price": random.random(rows),
            "quantity": random.integers(1, 20, rows),
            "region": np.array(["north", "south", "east", "west"])[random.integers(0, 4, rows)],
            "code": pa.array(ids).cast(pa.string()),
            "at": random.integers(1_700_000_000, 1_730_000_000, rows).astype("datetime64[s]"),
        }
    )
