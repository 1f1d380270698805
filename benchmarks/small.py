"""``ubunye run`` of the smallest task, against the script that a person would write by hand."""

from __future__ import annotations

import sys
from pathlib import Path

from benchmarks.measure import Cost, Figure, interleaved, process, ratio
from benchmarks.usecase import make_task, run_command

LIMIT = 1.35

_SCRIPT = """\
import sys

import pandas as pd

source, target = sys.argv[1:]
orders = pd.read_csv(source)
orders[orders["price"] > 0.5].to_parquet(target, index=False)
"""


def measure(work: Path, rounds: int) -> list[Figure]:
    """A: ``ubunye run``, a new day each time. B: the script. Both fresh processes that filter three rows."""
    source, script, out = work / "orders.csv", work / "by_hand.py", work / "by-hand"
    source.write_text("id,price\n1,0.1\n2,1.5\n3,2.5\n")
    script.write_text(_SCRIPT)
    out.mkdir()
    make_task(work / "uc", source, str(work / "out"))

    def by_hand(number: int) -> Cost:
        return process([sys.executable, str(script), str(source), str(out / f"{number}.parquet")])

    a, b = interleaved(rounds, lambda n: process(run_command(work / "uc", f"day{n}")), by_hand)
    what = "the smallest task"
    return [
        ratio(f"{what}, CPU", [c.cpu for c in a], [c.cpu for c in b], LIMIT, "ubunye run", "script"),
        ratio(f"{what}, wall", [c.wall for c in a], [c.wall for c in b], LIMIT, "ubunye run", "script"),
    ]
