"""The retry table, on a real scheduler: what each event does to the rows, and on which try."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.e2e.scheduler import Scheduler

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


def test_first_try(scheduler: Scheduler) -> None:
    run = scheduler.trigger("plain", "2026-01-01")
    assert scheduler.ended("plain", run) == "success"
    returned = scheduler.returned("plain", run)
    assert returned["rows"] == {"orders": 4}
    assert returned["files"] == {"orders": 2}
    (extra,) = scheduler.told_assets("plain", run)
    assert extra == {"run": returned["run"], "rows": {"orders": 4}, "files": {"orders": 2}}
    assert scheduler.rows("2026-01-01") == 4
    record = scheduler.work / "pipelines/.ubunye/lineage/shop/daily/load_orders" / f"{returned['run']}.json"
    assert '"run_id": "manual__' in record.read_text()


def test_a_failed_task_is_retried(scheduler: Scheduler) -> None:
    scheduler.ask("2026-01-02", "fail")
    run = scheduler.trigger("plain", "2026-01-02")
    assert scheduler.ended("plain", run, tries=2) == "success"
    assert "the feed is not complete" in scheduler.log("plain", run, number=1)
    assert scheduler.rows("2026-01-02") == 4


def test_killed_in_the_middle_of_landing(scheduler: Scheduler) -> None:
    scheduler.ask("2026-01-03", "die-landing")
    run = scheduler.trigger("plain", "2026-01-03")
    assert scheduler.ended("plain", run, tries=2) == "success"
    assert "Took over from run" in scheduler.log("plain", run)
    assert scheduler.rows("2026-01-03") == 4
    assert scheduler.staged() == []


@pytest.mark.parametrize(
    ("dag", "task", "dt", "rows"),
    [
        ("plain", "load", "2026-01-04", 4),
        ("finished_rerun", "load", "2026-01-05", 4),
        ("hook", "append", "2026-01-06", 2),
        ("decorated", "fill", "2026-01-07", 2),
    ],
)
def test_died_after_the_commit_before_it_told(
    scheduler: Scheduler, dag: str, task: str, dt: str, rows: int
) -> None:
    scheduler.ask(dt, "die-after")
    run = scheduler.trigger(dag, dt)
    assert scheduler.ended(dag, run, task, tries=2) == "success"
    assert scheduler.rows(dt) == rows
    assert "try 1 of this task committed it already" in scheduler.log(dag, run, task)
    if dag != "hook":
        assert scheduler.linked(dag, run, task) == scheduler.page(dag, run, 1, task)
    if dag == "plain":
        # Told once, by the retry: the try that wrote the rows died before it could.
        (extra,) = scheduler.told_assets(dag, run)
        assert extra == scheduler.returned(dag, run)


def test_the_same_with_a_rerun_asked_for(scheduler: Scheduler) -> None:
    dt = "2026-01-08"
    assert scheduler.ended("plain", scheduler.trigger("plain", dt)) == "success"
    scheduler.ask(dt, "die-after")
    run = scheduler.trigger("plain", dt, ubunye={"rerun": True})
    assert scheduler.ended("plain", run, tries=2) == "success"
    assert "--rerun: replacing the batch" in scheduler.log("plain", run, number=1)
    assert "try 1 of this task committed it already" in scheduler.log("plain", run)
    assert scheduler.returned("plain", run)["rows"] == {"orders": 4}
    assert scheduler.rows(dt) == 4


def test_another_task_of_the_run_is_cleared_before_the_retry(scheduler: Scheduler) -> None:
    dt = "2026-01-09"
    scheduler.ask(dt, "die-after")
    run = scheduler.trigger("later", dt)
    scheduler.state("later", run, "up_for_retry")
    assert scheduler.ended("later", run, "other") == "success"
    scheduler.clear("later", run, "other")
    assert scheduler.ended("later", run, tries=2) == "success"
    assert "try 1 of this task committed it already" in scheduler.log("later", run)
    assert scheduler.rows(dt) == 4


def test_cleared_by_a_person(scheduler: Scheduler) -> None:
    dt = "2026-01-10"
    run = scheduler.trigger("plain", dt)
    assert scheduler.ended("plain", run) == "success"
    scheduler.clear("plain", run)
    # Refused, and none of the new retries is spent on it.
    assert scheduler.ended("plain", run, tries=2) == "failed"
    assert "on_clear='rerun'" in scheduler.log("plain", run)
    assert scheduler.rows(dt) == 4


def test_cleared_by_a_person_to_rerun(scheduler: Scheduler) -> None:
    dt = "2026-01-11"
    run = scheduler.trigger("clear_rerun", dt)
    assert scheduler.ended("clear_rerun", run) == "success"
    first = scheduler.returned("clear_rerun", run)["run"]
    scheduler.ask(dt, "die-after")
    scheduler.clear("clear_rerun", run)
    # Try 2 replaces and dies before it tells; try 3 is an automatic retry of that, not of the clear.
    assert scheduler.ended("clear_rerun", run, tries=3) == "success"
    assert "try 2 of this task committed it already" in scheduler.log("clear_rerun", run)
    assert scheduler.returned("clear_rerun", run)["run"] != first
    assert scheduler.rows(dt) == 4


@pytest.mark.parametrize(
    ("dag", "dt", "state", "replaced"),
    [
        ("plain", "2026-01-12", "failed", False),
        ("finished_skip", "2026-01-13", "skipped", False),
        ("finished_rerun", "2026-01-14", "success", True),
        ("resume", "2026-01-15", "success", False),
    ],
)
def test_another_dag_run_of_a_finished_batch(
    scheduler: Scheduler, dag: str, dt: str, state: str, replaced: bool
) -> None:
    first = scheduler.trigger(dag, dt)
    assert scheduler.ended(dag, first) == "success"
    again = scheduler.trigger(dag, dt)
    assert scheduler.ended(dag, again) == state
    assert scheduler.rows(dt) == 4
    assert scheduler.link(dag, first) is None
    if replaced:
        assert scheduler.link(dag, again) is None
    else:
        assert scheduler.linked(dag, again) == scheduler.page(dag, first, 1)
    log = scheduler.log(dag, again)
    if state == "failed":
        assert f"finished already by dag_id={dag} run_id={first}" in log
        assert "on_finished='rerun'" in log
    if dag == "resume":
        assert "[SKIP]" in log
    if state == "success":
        returned = [scheduler.returned(dag, run) for run in (first, again)]
        assert (returned[0]["run"] != returned[1]["run"]) is replaced
        assert [r["rows"] for r in returned] == [{"orders": 4}] * 2


def test_a_backfill_asks_for_a_rerun(scheduler: Scheduler) -> None:
    """The run exists, so its task is cleared: max_tries changes."""
    day = "2026-11-01T00:00:00Z"
    backfill = {"dag_id": "daily", "from_date": day, "to_date": day}
    made = scheduler.post("/backfills", backfill)["id"]
    (run,) = scheduler.until(
        "the run is there",
        lambda: [r["dag_run_id"] for r in scheduler.get("/dags/daily/dagRuns")["dag_runs"]] or None,
    )
    assert scheduler.ended("daily", run) == "success"
    first = scheduler.returned("daily", run)["run"]
    scheduler.until("the backfill has ended", lambda: scheduler.get(f"/backfills/{made}")["completed_at"])
    again = {"reprocess_behavior": "completed", "dag_run_conf": {"ubunye": {"rerun": True}}}
    scheduler.post("/backfills", {**backfill, **again})
    assert scheduler.ended("daily", run, tries=2) == "success"
    assert scheduler.returned("daily", run)["run"] != first
    assert scheduler.rows("2026-11-01") == 4


def tasks_test(scheduler: Scheduler, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "airflow", "tasks", "test", *arguments],
        env=scheduler.env,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    return done.stdout + done.stderr


def test_tasks_test_beside_the_scheduler(scheduler: Scheduler) -> None:
    # Paused, so that the scheduler leaves the made-up DAG run alone: it dies of one that it works on and that
    # tasks test then deletes (seen in 3.3.2: StaleDataError).
    scheduler.patch("/dags/templated", {"is_paused": True})
    # A run of that date that the scheduler does not know: try 0.
    told = tasks_test(scheduler, "templated", "load", "2026-02-01")
    assert scheduler.rows("2026-02-01") == 4, told
    # Once more: never a retry, whatever the try.
    told = tasks_test(scheduler, "templated", "load", "2026-02-01")
    assert "already finished this batch" in told
    assert scheduler.rows("2026-02-01") == 4
    # Without a date there is none to render, and nothing becomes a batch.
    told = tasks_test(scheduler, "templated", "load")
    assert "has no logical date" in told
    scheduler.patch("/dags/templated", {"is_paused": False})
    # Of a run that exists: its own try, and still a person's asking.
    run = scheduler.trigger("plain", "2026-02-02")
    assert scheduler.ended("plain", run) == "success"
    told = tasks_test(scheduler, "plain", "load", run)
    assert "on_clear='rerun'" in told
    assert scheduler.rows("2026-02-02") == 4


@pytest.mark.parametrize(
    ("dag", "says"),
    [
        ("literal", "is an unrendered template"),
        ("templated", "has no logical date"),
        ("defaulted", "has no logical date"),
        ("spark", "the Spark engine is not part of this version"),
    ],
)
def test_what_no_retry_can_help_fails_at_once(scheduler: Scheduler, dag: str, says: str) -> None:
    run = scheduler.trigger(dag, "2026-02-03")
    assert scheduler.ended(dag, run, tries=1) == "failed"
    assert says in scheduler.log(dag, run)
    assert scheduler.rows("2026-02-03") == 0


def test_a_run_started_by_hand_on_no_schedule_is_named_by_its_timestamp(scheduler: Scheduler) -> None:
    run = scheduler.trigger("defaulted", date="2026-11-04T05:06:07Z")
    assert scheduler.ended("defaulted", run) == "success"
    assert scheduler.rows("2026-11-04T05:06:07+00:00") == 4
