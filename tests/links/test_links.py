"""Where the link leads; that the button shows it is in tests/e2e."""

from __future__ import annotations

from typing import Any

import pytest

from airflow_provider_ubunye import UbunyeTaskOperator
from airflow_provider_ubunye.decorators.ubunye import _UbunyeDecoratedOperator
from airflow_provider_ubunye.links.ubunye import UbunyeRunLink, log_url

ATTEMPT = {
    "dag_id": "orders",
    "run_id": "manual__2026-11-01T00:00:00+00:00",
    "task_id": "group.load",
    "map_index": -1,
    "try_number": 2,
    "max_tries": 2,
}
PAGE = "dags/orders/runs/manual__2026-11-01T00%3A00%3A00%2B00%3A00/tasks/group.load"


@pytest.fixture(autouse=True)
def base_url(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW__API__BASE_URL", "https://airflow.example/team/")


def test_a_try() -> None:
    assert log_url(ATTEMPT) == f"https://airflow.example/team/{PAGE}?try_number=2"


def test_a_mapped_try() -> None:
    mapped = log_url({**ATTEMPT, "map_index": 0})
    assert mapped == f"https://airflow.example/team/{PAGE}/mapped/0?try_number=2"


@pytest.mark.parametrize(
    "attempt",
    [
        None,
        {},
        {**ATTEMPT, "try_number": 0},
        {**ATTEMPT, "try_number": "two"},
        {**ATTEMPT, "run_id": None},
        {"try_number": 1},
    ],
)
def test_what_has_no_page(attempt: Any) -> None:
    assert log_url(attempt) == ""


def test_the_operators_have_it() -> None:
    key: Any = None
    for kind in (UbunyeTaskOperator, _UbunyeDecoratedOperator):
        (link,) = kind.operator_extra_links
        assert isinstance(link, UbunyeRunLink)
    operator = UbunyeTaskOperator(task_id="load", task="shop/daily/load")
    assert UbunyeRunLink().get_link(operator, ti_key=key) == ""
    operator.other_attempt = ATTEMPT
    assert UbunyeRunLink().get_link(operator, ti_key=key).endswith("?try_number=2")
