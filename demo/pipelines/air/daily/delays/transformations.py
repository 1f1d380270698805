"""Flights and mean departure delay of each airline on one day."""

from __future__ import annotations

import datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pandas import DataFrame

    from airflow_provider_ubunye.tasks.task import TaskContext


def transform(sources: dict[str, DataFrame], context: TaskContext) -> dict[str, DataFrame]:
    """Summarise the day; every carrier must have a name."""
    flights, airlines = sources["flights"], sources["airlines"]
    date = datetime.date.fromisoformat(str(context.dt))
    day = flights[(flights["month"] == date.month) & (flights["day"] == date.day)]
    unknown = sorted(set(day["carrier"]) - set(airlines["carrier"]))
    if unknown:
        raise ValueError(f"airlines.csv has no name for {', '.join(unknown)}")
    named = day.merge(airlines, on="carrier")
    delays = named.groupby("name", as_index=False).agg(
        flights=("flight", "size"), mean_delay=("dep_delay", "mean")
    )
    return {"delays": delays.assign(date=context.dt)}
