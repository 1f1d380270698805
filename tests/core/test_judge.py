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


@pytest.mark.parametrize(
    ("age", "watched", "ttl", "left", "worth"),
    [
        # silent for its ttl: as long as it takes
        (900.0, 0.0, 900.0, -5.0, True),
        (899.9, 0.0, 900.0, 600.0, False),
        (None, 0.0, 900.0, 600.0, False),
        # in the future: where the run may wait so long anyway, or it does not take long
        (-1.0, 0.0, 900.0, 989.0, False),
        (-1.0, 0.0, 900.0, 990.0, True),
        (-1.0, 899.0, 900.0, -5.0, False),
        (-1.0, 900.0, 900.0, -5.0, True),
        (-7200.0, 0.0, 0.0, -5.0, True),
    ],
)
def test_what_is_worth_watching(
    age: float | None, watched: float, ttl: float, left: float, worth: bool
) -> None:
    assert Evidence(None, age, watched, ttl, watch=90.0).worth_watching(left) is worth
