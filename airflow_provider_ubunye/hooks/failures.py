"""From the core's errors to what Airflow does about them: try again, or not."""

from __future__ import annotations

from airflow.sdk.exceptions import AirflowException, AirflowFailException

from airflow_provider_ubunye.attempt import Ruling
from airflow_provider_ubunye.core.errors import (
    BatchFinished,
    NeedsPerson,
    Refused,
    RunLeaseHeld,
    UbunyeError,
    UsageError,
)
from airflow_provider_ubunye.core.store import StoreBroken, StoreUnusable

_RETRYABLE = (StoreUnusable, StoreBroken)
"""A store may answer again; the log then says what became of the try before."""


def retry_can_help(error: UbunyeError) -> bool:
    """Whether the same try later may end otherwise with nothing changed by a person."""
    if isinstance(error, _RETRYABLE):
        return True
    if isinstance(error, RunLeaseHeld):
        return not isinstance(error, BatchFinished)
    return not isinstance(error, Refused | UsageError | NeedsPerson)


def as_airflow(error: UbunyeError, ruling: Ruling | None = None) -> AirflowException:
    """The exception that Airflow understands, saying the same in one line.

    :param ruling: says more about a finished batch: by which DAG run, and what to set.
    """
    if isinstance(error, BatchFinished) and ruling is not None and ruling.finished is not None:
        line = f"{error.what}; {ruling.already}. {ruling.hint}"
    else:
        line = one_line(error)
    return AirflowException(line) if retry_can_help(error) else AirflowFailException(line)


def one_line(error: UbunyeError) -> str:
    """The error with its hint in one line; a user's own error keeps the frames of the user's code."""
    frames = getattr(error, "frames", None)
    if frames:
        return "\n".join(error.lines())
    return f"{error.what}. {error.hint}" if error.hint else error.what
