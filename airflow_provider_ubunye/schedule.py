"""The ``dt`` of a DAG run that was given none. Pure; no Airflow: timetables are looked at by their attributes.

========================================  =================================================
DAG run                                   dt
========================================  =================================================
with a partition key                      the key
no partition key, no logical date         none: the caller refuses
schedule daily or coarser                 the logical date, as ``{{ ds }}``
any other schedule, or none               the full UTC timestamp, as ``{{ ts }}``
========================================  =================================================

Daily or coarser means that no two runs of the schedule have one UTC date: a schedule in local time whose
runs do share one when the clocks change counts as finer. So two runs never share a batch by accident.
"""

from __future__ import annotations

import datetime
import zoneinfo
from typing import Any

_DAY = datetime.timedelta(days=1)
_LOOK_AHEAD = datetime.timedelta(days=400)


def default_dt(
    partition_key: str | None, logical_date: datetime.datetime | None, timetable: Any
) -> str | None:
    """The table above.

    :param timetable: the DAG's; one that is not known here counts as finer than daily.
    """
    if partition_key is not None:
        return partition_key
    if logical_date is None:
        return None
    utc = logical_date.astimezone(datetime.UTC)
    return utc.strftime("%Y-%m-%d") if is_daily_or_coarser(timetable, utc) else utc.isoformat()


def is_daily_or_coarser(timetable: Any, start: datetime.datetime) -> bool:
    """Whether no two runs of the schedule have one UTC date.

    :param start: where to look from; a year and a bit is looked at.
    """
    delta = _attribute(timetable, "delta")
    if delta is not None:
        return bool(start + delta - start >= _DAY)
    expression = _attribute(timetable, "expression")
    if not isinstance(expression, str):
        return False
    return not _shares_a_date(expression, _attribute(timetable, "timezone"), start)


def _attribute(timetable: Any, name: str) -> Any:
    # With an underscore: the timetables of Airflow 3.1.
    return getattr(timetable, name, getattr(timetable, f"_{name}", None))


def _shares_a_date(expression: str, timezone: Any, start: datetime.datetime) -> bool:
    from croniter import CroniterError, croniter

    zone = timezone if isinstance(timezone, datetime.tzinfo) else zoneinfo.ZoneInfo(str(timezone or "UTC"))
    # The cron expression means local time; firings are made naive, then read as local.
    local = start.astimezone(zone).replace(tzinfo=None)
    end = local + _LOOK_AHEAD
    before: datetime.date | None = None
    try:
        for fires in croniter(expression, local).all_next(datetime.datetime):
            if fires > end:
                return False
            date = fires.replace(tzinfo=zone).astimezone(datetime.UTC).date()
            if date == before:
                return True
            before = date
    except CroniterError:
        # No firing within croniter's own horizon: rarer than daily by far.
        return False
    return False
