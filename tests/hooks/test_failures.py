"""Which errors Airflow retries."""

from __future__ import annotations

import pytest
from airflow.sdk.exceptions import AirflowFailException

from airflow_provider_ubunye.core import errors
from airflow_provider_ubunye.core.store import StoreBroken, StoreUnusable
from airflow_provider_ubunye.hooks.failures import as_airflow

RETRYABLE = {
    "RunLeaseHeld",
    "RunFailed",
    "TransformFailed",
    "LandingFailed",
    "RunStopped",
    "LeaseLost",
    "RunInterrupted",
    "StoreUnusable",
    "StoreBroken",
    "UbunyeError",
}
"""The rest are what a person must change or look at first."""

ALL = [e for e in vars(errors).values() if isinstance(e, type) and issubclass(e, errors.UbunyeError)]


@pytest.mark.parametrize("kind", [*ALL, StoreUnusable, StoreBroken], ids=lambda kind: kind.__name__)
def test_every_error(kind: type[errors.UbunyeError]) -> None:
    raised = as_airflow(kind("what happened", hint="what to do"))
    assert isinstance(raised, AirflowFailException) is (kind.__name__ not in RETRYABLE)
    assert str(raised) == "what happened. what to do"


def test_a_users_own_error_keeps_the_users_frames() -> None:
    error = errors.TransformFailed("ValueError: no", frames=["  transformations.py, line 3, in transform"])
    assert str(as_airflow(error)) == "ValueError: no\n  transformations.py, line 3, in transform"
