"""One day of the feed, with the types that every day has."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pandas import DataFrame

# A day without a missing value would otherwise be read as whole numbers, and the next day as decimals.
TYPES: dict[str, Any] = {
    "month": "int64",
    "day": "int64",
    "dep_time": "float64",
    "dep_delay": "float64",
    "arr_delay": "float64",
    "carrier": "str",
    "flight": "int64",
    "tailnum": "str",
    "origin": "str",
    "dest": "str",
    "distance": "float64",
}


def transform(sources: dict[str, DataFrame]) -> dict[str, DataFrame]:
    """Keep the columns that the lake has."""
    feed = sources["feed"]
    return {"flights": feed[list(TYPES)].astype(TYPES)}
