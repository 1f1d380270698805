"""What a reader sees in the demo's lake: the rows and files of every day."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.dataset as ds

if TYPE_CHECKING:
    import pandas as pd

COLUMNS = [
    "month",
    "day",
    "dep_time",
    "dep_delay",
    "arr_delay",
    "carrier",
    "flight",
    "tailnum",
    "origin",
    "dest",
]


@dataclass(frozen=True)
class Day:
    """One day in the lake: its rows, and its files with size and time."""

    rows: int = 0
    files: frozenset[tuple[str, int, int]] = frozenset()


@dataclass
class Lake:
    """The folder that all days share."""

    path: Path

    def days(self) -> dict[str, Day]:
        """Every day that a reader sees, by date."""
        if not any(self.path.glob("origin=*/*.parquet")):
            return {}
        table = self._dataset().to_table(columns=["month", "day", "__filename"])
        found = table.group_by(["month", "day", "__filename"]).aggregate([([], "count_all")]).to_pylist()
        days: dict[str, Day] = {}
        for row in found:
            date = f"2013-{row['month']:02}-{row['day']:02}"
            seen = os.stat(row["__filename"])
            file = (row["__filename"], seen.st_size, seen.st_mtime_ns)
            day = days.get(date, Day())
            days[date] = Day(day.rows + row["count_all"], day.files | {file})
        return days

    def rows_of(self, date: str) -> pd.DataFrame:
        """One day's flights, in an order of their own."""
        _, month, day = map(int, date.split("-"))
        wanted = (ds.field("month") == month) & (ds.field("day") == day)
        return ordered(self._dataset().to_table(columns=COLUMNS, filter=wanted).to_pandas())

    def _dataset(self) -> Any:
        return ds.dataset(self.path, format="parquet", partitioning="hive")


def ordered(flights: pd.DataFrame) -> pd.DataFrame:
    """The same flights in one order and with one set of types, for comparison."""
    numbers = dict.fromkeys(COLUMNS[:5], "float64")
    texts = dict.fromkeys(("carrier", "tailnum", "origin", "dest"), "str")
    typed = flights[COLUMNS].astype({**numbers, **texts, "flight": "int64"})
    return typed.sort_values(COLUMNS, ignore_index=True)
