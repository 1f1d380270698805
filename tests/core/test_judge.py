"""The judge: one row for each line of its table, and its edges."""

from __future__ import annotations

import pytest

from airflow_provider_ubunye.core.judge import Evidence, Verdict, judge

ALIVE, DEAD, UNKNOWN = Verdict.ALIVE, Verdict.DEAD, Verdict.UNKNOWN


@pytest.mark.parametrize(
    ("process", "age", "watched", "verdict"),
    [
        # same place, process there: alive, however silent
        (True, None, 0.0, ALIVE),
        (True, 10_000.0, 10_000.0, ALIVE),
        # same place, process gone: dead at once, however fresh its heartbeat
        (False, 0.0, 0.0, DEAD),
        (False, None, 0.0, DEAD),
        # elsewhere, heartbeat younger than ttl
        (None, 0.0, 0.0, ALIVE),
        (None, 899.9, 10_000.0, ALIVE),
        # elsewhere, older, not watched long enough
        (None, 900.0, 0.0, UNKNOWN),
        (None, 10_000.0, 89.9, UNKNOWN),
        # elsewhere, older, unchanged while watched
        (None, 900.0, 90.0, DEAD),
        # elsewhere, in the future: only our own watch counts
        (None, -1.0, 0.0, UNKNOWN),
        (None, -7200.0, 989.9, UNKNOWN),
        (None, -7200.0, 990.0, DEAD),
        # elsewhere, heartbeat gone: the same
        (None, None, 0.0, UNKNOWN),
        (None, None, 989.9, UNKNOWN),
        (None, None, 990.0, DEAD),
    ],
)
def test_verdict(process: bool | None, age: float | None, watched: float, verdict: Verdict) -> None:
    assert judge(Evidence(process, age, watched, ttl=900.0, watch=90.0)) is verdict
