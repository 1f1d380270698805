"""The link from a task to the task log of the run that holds or finished its batch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from airflow.sdk import BaseOperatorLink

if TYPE_CHECKING:
    from airflow.sdk import BaseOperator
    from airflow.sdk.types import TaskInstanceKey


class UbunyeRunLink(BaseOperatorLink):
    """Leads from a task that was held, refused, skipped or found done to the try that has the batch.

    Airflow asks for it in the task's own process when the task ends or defers, and keeps the answer as XCom.
    There is none for a task that did the work itself, nor where a run outside Airflow has the batch. Does not
    promise a page: a run of another Airflow on the same state is looked for in this one.
    """

    @property
    def name(self) -> str:
        return "Run of this batch"

    def get_link(self, operator: BaseOperator, *, ti_key: TaskInstanceKey) -> str:  # noqa: ARG002 - by Airflow
        return log_url(getattr(operator, "other_attempt", None))


def log_url(attempt: Mapping[str, Any] | None) -> str:
    """The page of a recorded try's log; empty where there is none.

    :param attempt: a try as it is kept with its run (:mod:`airflow_provider_ubunye.attempt`).
    """
    if attempt is None or not attempt.get("try_number"):
        # Without a number, or with 0, it is of a run that `airflow tasks test` made up and removed.
        return ""
    from airflow.configuration import conf

    try:
        dag, run, task = (quote(attempt[name], safe="") for name in ("dag_id", "run_id", "task_id"))
        index, number = attempt.get("map_index", -1), int(attempt["try_number"])
    except (KeyError, TypeError, ValueError):
        return ""
    base = conf.get("api", "base_url", fallback="http://localhost:8080/").rstrip("/")
    mapped = f"/mapped/{index}" if isinstance(index, int) and index >= 0 else ""
    return f"{base}/dags/{dag}/runs/{run}/tasks/{task}{mapped}?try_number={number}"
