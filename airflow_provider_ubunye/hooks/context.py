"""What Airflow says about the task that runs: its try, its dates, whether a rerun is asked for."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from airflow_provider_ubunye.attempt import Attempt
from airflow_provider_ubunye.core.errors import UsageError
from airflow_provider_ubunye.schedule import default_dt

if TYPE_CHECKING:
    from airflow.sdk import Context

RERUN_PARAM = "ubunye_rerun"
CONF_SECTION = "ubunye"

AUTO = "auto"
"""The ``dt`` of an operator that was given none: by the DAG's schedule."""


def current_context() -> Context | None:
    """The context of the task that runs here; None outside a task."""
    from airflow.sdk import get_current_context

    try:
        return get_current_context()
    except RuntimeError:
        return None


def attempt_of(context: Context) -> Attempt:
    """The try that the context is of."""
    ti: Any = context["ti"]
    dag_run: Any = context["dag_run"]
    index = getattr(ti, "map_index", -1)
    return Attempt(
        dag_id=ti.dag_id,
        run_id=ti.run_id,
        task_id=ti.task_id,
        map_index=-1 if index is None else index,
        try_number=ti.try_number,
        max_tries=ti.max_tries,
        clear_number=getattr(dag_run, "clear_number", 0) or 0,
        retries=ti.task.retries or 0,
        test=bool(os.environ.get("AIRFLOW_TEST_MODE")),
    )


def rerun_asked(context: Context) -> bool:
    """Whether this DAG run asks for a rerun: param ``ubunye_rerun``, or conf ``{"ubunye": {"rerun": true}}``.

    :raises UsageError: it says something that is neither true nor false.
    """
    section = (getattr(context["dag_run"], "conf", None) or {}).get(CONF_SECTION, {})
    if not isinstance(section, dict):
        raise UsageError(f"conf {CONF_SECTION!r} is {section!r}", hint='write {"ubunye": {"rerun": true}}')
    asked = {
        f"the DAG param {RERUN_PARAM}": context["params"].get(RERUN_PARAM, False),
        f"conf {CONF_SECTION}.rerun": section.get("rerun", False),
    }
    for name, value in asked.items():
        if not isinstance(value, bool | None):
            raise UsageError(f"{name} is {value!r}; it is true or false")
    return any(asked.values())


def dt_of(context: Context) -> str:
    """The ``dt`` of a task that was given none (:mod:`airflow_provider_ubunye.schedule`).

    :raises UsageError: the DAG run has neither a date nor a partition key.
    """
    values: Any = context
    timetable = getattr(values["dag"], "timetable", None)
    dt = default_dt(values.get("partition_key"), values.get("logical_date"), timetable)
    if dt is None:
        raise no_date()
    return dt


def no_date() -> UsageError:
    """The refusal of a DAG run that has no date."""
    return UsageError(
        "this DAG run has no logical date (it was triggered by an asset, or by hand without one), so nothing "
        "says which batch it is",
        hint="give the task a dt=, for example dt=\"{{ dag_run.run_after.strftime('%Y-%m-%d') }}\"",
    )
