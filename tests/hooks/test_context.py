"""What the context of a task says."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from airflow_provider_ubunye.core.errors import UsageError
from airflow_provider_ubunye.hooks.context import attempt_of, current_context, dt_of, rerun_asked


def context(conf: Any = None, **params: Any) -> Any:
    ti = SimpleNamespace(
        dag_id="d",
        run_id="r",
        task_id="t",
        map_index=None,
        try_number=2,
        max_tries=2,
        task=SimpleNamespace(retries=1),
    )
    return {
        "ti": ti,
        "dag_run": SimpleNamespace(conf=conf, clear_number=None),
        "params": params,
        "dag": SimpleNamespace(timetable=None),
    }


def test_outside_a_task_there_is_none() -> None:
    assert current_context() is None


def test_the_try(monkeypatch: pytest.MonkeyPatch) -> None:
    told = attempt_of(context())
    assert (told.map_index, told.clear_number, told.retries, told.test) == (-1, 0, 1, False)
    monkeypatch.setenv("AIRFLOW_TEST_MODE", "True")
    assert attempt_of(context()).test


@pytest.mark.parametrize(
    ("conf", "params", "asked"),
    [
        (None, {}, False),
        ({"dt": "x"}, {}, False),
        ({"ubunye": {"rerun": True}}, {}, True),
        ({"ubunye": {"rerun": False}}, {}, False),
        (None, {"ubunye_rerun": True}, True),
        ({"ubunye": {"rerun": False}}, {"ubunye_rerun": True}, True),
    ],
)
def test_a_rerun_asked_for(conf: Any, params: dict[str, Any], asked: bool) -> None:
    assert rerun_asked(context(conf, **params)) is asked


@pytest.mark.parametrize(
    ("conf", "params"),
    [({"ubunye": True}, {}), ({"ubunye": {"rerun": "no"}}, {}), (None, {"ubunye_rerun": 1})],
)
def test_neither_true_nor_false(conf: Any, params: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="ubunye"):
        rerun_asked(context(conf, **params))


def test_no_date() -> None:
    with pytest.raises(UsageError, match="has no logical date"):
        dt_of(context())
    partitioned = context()
    partitioned["partition_key"] = "eu"
    assert dt_of(partitioned) == "eu"
