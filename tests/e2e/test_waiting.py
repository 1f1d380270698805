"""One live run per batch, on a real scheduler: who is held waits, fails or is skipped."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from tests.e2e.scheduler import ENDED, Scheduler

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


def test_the_second_of_two_dag_runs_defers_and_goes_on(scheduler: Scheduler) -> None:
    dt = "2026-03-01"
    scheduler.ask(dt, "hold")
    first = scheduler.trigger("finished_skip", dt)
    scheduler.held(dt)
    second = scheduler.trigger("finished_skip", dt)
    scheduler.state("finished_skip", second, "deferred")
    assert scheduler.linked("finished_skip", second) == scheduler.page("finished_skip", first, 1)
    scheduler.ask(dt, "go")
    assert scheduler.ended("finished_skip", first) == "success"
    # Decided anew: the batch is finished by another DAG run by now.
    assert scheduler.ended("finished_skip", second) == "skipped"
    assert scheduler.rows(dt) == 4


def test_the_held_batch_becomes_free_when_its_run_fails(scheduler: Scheduler) -> None:
    dt = "2026-03-02"
    scheduler.ask(dt, "hold")
    first = scheduler.trigger("later", dt)
    scheduler.held(dt)
    second = scheduler.trigger("plain", dt)
    scheduler.state("plain", second, "deferred")
    scheduler.patch(f"/dags/later/dagRuns/{first}/taskInstances/load", {"new_state": "failed"})
    assert scheduler.ended("plain", second) == "success"
    assert scheduler.ended("later", first) == "failed"
    assert scheduler.rows(dt) == 4


@pytest.mark.parametrize(
    ("dag", "dt", "state", "says"),
    [
        ("held_fail", "2026-03-03", "failed", "is still running"),
        ("held_skip", "2026-03-04", "skipped", "is still running"),
        ("held_timeout", "2026-03-05", "failed", "held_timeout is over"),
    ],
)
def test_a_held_batch_by_on_held(scheduler: Scheduler, dag: str, dt: str, state: str, says: str) -> None:
    scheduler.ask(dt, "hold")
    first = scheduler.trigger("plain", dt)
    scheduler.held(dt)
    second = scheduler.trigger(dag, dt)
    assert scheduler.ended(dag, second) == state
    log = scheduler.log(dag, second)
    assert says in log
    assert f"dag_id=plain run_id={first} task_id=load try_number=1" in log
    assert scheduler.linked(dag, second) == scheduler.page("plain", first, 1)
    scheduler.ask(dt, "go")
    assert scheduler.ended("plain", first) == "success"
    assert scheduler.rows(dt) == 4


def test_twenty_mapped_tasks_on_one_batch(scheduler: Scheduler) -> None:
    dt = "2026-03-06"
    run = scheduler.trigger("mapped", dt)

    def ended() -> list[dict[str, Any]] | None:
        found = scheduler.get(f"/dags/mapped/dagRuns/{run}/taskInstances?limit=50")["task_instances"]
        assert all(ti["try_number"] <= 1 for ti in found)
        return found if len(found) == 20 and all(ti["state"] in ENDED for ti in found) else None

    found = scheduler.until("all have ended", ended, seconds=240)
    assert Counter(ti["state"] for ti in found) == {"success": 1, "failed": 19}
    for ti in found:
        if ti["state"] == "failed":
            path = f"/dags/mapped/dagRuns/{run}/taskInstances/load/logs/1?map_index={ti['map_index']}"
            assert "already finished this batch" in str(scheduler.get(path))
    assert scheduler.rows(dt) == 4
