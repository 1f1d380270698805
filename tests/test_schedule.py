"""The dt of a DAG run that was given none."""

from __future__ import annotations

import datetime
from types import SimpleNamespace
from typing import Any

import pytest

from airflow_provider_ubunye.schedule import default_dt

AT = datetime.datetime(2026, 11, 1, 13, 30, tzinfo=datetime.UTC)
DATE, STAMP = "2026-11-01", "2026-11-01T13:30:00+00:00"


def cron(expression: str, timezone: Any = "UTC") -> SimpleNamespace:
    return SimpleNamespace(expression=expression, timezone=timezone)


def every(**span: float) -> SimpleNamespace:
    return SimpleNamespace(delta=datetime.timedelta(**span))


@pytest.mark.parametrize(
    ("timetable", "dt"),
    [
        (cron("0 0 * * *"), DATE),
        (cron("30 13 * * *"), DATE),
        (cron("0 0 * * 0"), DATE),
        (cron("0 0 1 * *"), DATE),
        (cron("0 0 29 2 *"), DATE),
        (cron("0 * * * *"), STAMP),
        (cron("0 0,12 * * *"), STAMP),
        (cron("0 0,12 1 1 *"), STAMP),
        (cron("*/5 * * * *"), STAMP),
        (cron("0 3 * * *", "America/New_York"), DATE),
        # 00:30 in London is 00:30 UTC in winter, 23:30 UTC of the day before in summer: twice one date.
        (cron("30 0 * * *", "Europe/London"), STAMP),
        (cron("30 0 * * *", datetime.timezone(datetime.timedelta(hours=2))), DATE),
        (SimpleNamespace(_expression="0 0 * * *", _timezone="UTC"), DATE),
        (every(days=1), DATE),
        (every(days=7), DATE),
        (every(hours=23), STAMP),
        (SimpleNamespace(_delta=datetime.timedelta(hours=1)), STAMP),
        (SimpleNamespace(), STAMP),
        (None, STAMP),
    ],
)
def test_by_schedule(timetable: Any, dt: str) -> None:
    assert default_dt(None, AT, timetable) == dt


def test_the_timestamp_is_utc() -> None:
    paris = datetime.timezone(datetime.timedelta(hours=1))
    assert default_dt(None, AT.astimezone(paris), None) == STAMP


def test_a_partition_key_goes_before_a_date() -> None:
    assert default_dt("region=eu", AT, cron("0 0 * * *")) == "region=eu"
    assert default_dt("region=eu", None, None) == "region=eu"


def test_no_date_is_no_dt() -> None:
    assert default_dt(None, None, cron("0 0 * * *")) is None
