"""The kill table, on a real scheduler: each ends exact."""

from __future__ import annotations

import os
import signal

import pytest

from tests.e2e.scheduler import Scheduler

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


def gone(pid: int) -> bool | None:
    return None if os.path.exists(f"/proc/{pid}") else True


def test_marked_failed_while_it_runs(scheduler: Scheduler) -> None:
    dt = "2026-04-01"
    scheduler.ask(dt, "hold")
    run = scheduler.trigger("plain", dt)
    pid, _ = scheduler.held(dt)
    scheduler.patch(f"/dags/plain/dagRuns/{run}/taskInstances/load", {"new_state": "failed"})
    scheduler.until("the process is gone", lambda: gone(pid))
    # It unwound: the lease is free and says how it ended, with nobody having taken over.
    assert '"outcome": "interrupted"' in scheduler.outcomes(dt)
    assert scheduler.staged() == []
    assert scheduler.rows(dt) == 0
    scheduler.clear("plain", run)
    assert scheduler.ended("plain", run, tries=2) == "success"
    assert "Took over" not in scheduler.log("plain", run)
    assert scheduler.rows(dt) == 4


def test_cleared_while_it_runs(scheduler: Scheduler) -> None:
    dt = "2026-04-02"
    scheduler.ask(dt, "hold")
    run = scheduler.trigger("plain", dt)
    scheduler.held(dt)
    scheduler.clear("plain", run)
    assert scheduler.ended("plain", run, tries=2) == "success"
    assert scheduler.rows(dt) == 4


def test_told_to_terminate(scheduler: Scheduler) -> None:
    """What a pod eviction sends."""
    dt = "2026-04-03"
    scheduler.ask(dt, "hold")
    run = scheduler.trigger("plain", dt)
    pid, _ = scheduler.held(dt)
    os.kill(pid, signal.SIGTERM)
    assert scheduler.ended("plain", run, tries=2) == "success"
    assert "was interrupted; what it wrote is taken back" in scheduler.log("plain", run, number=1)
    assert scheduler.staged() == []
    assert scheduler.rows(dt) == 4


def test_execution_timeout(scheduler: Scheduler) -> None:
    dt = "2026-04-04"
    scheduler.ask(dt, "hold")
    run = scheduler.trigger("timed", dt)
    assert scheduler.ended("timed", run, tries=2) == "success"
    assert "AirflowTaskTimeout" in scheduler.log("timed", run, number=1)
    assert "Took over" not in scheduler.log("timed", run)
    assert scheduler.rows(dt) == 4


def test_the_child_is_killed(scheduler: Scheduler) -> None:
    dt = "2026-04-05"
    scheduler.ask(dt, "hold")
    run = scheduler.trigger("plain", dt)
    pid, _ = scheduler.held(dt)
    os.kill(pid, signal.SIGKILL)
    assert scheduler.ended("plain", run, tries=2) == "success"
    assert scheduler.rows(dt) == 4


def test_the_supervisor_is_killed_and_the_orphan_goes_on(scheduler: Scheduler) -> None:
    dt = "2026-04-06"
    scheduler.ask(dt, "hold")
    run = scheduler.trigger("plain", dt)
    pid, supervisor = scheduler.held(dt)
    os.kill(supervisor, signal.SIGKILL)
    # The retry starts beside the orphan once the heartbeat is missed, and waits without a slot.
    scheduler.state("plain", run, "deferred")
    assert scheduler.task("plain", run)["try_number"] == 2
    scheduler.ask(dt, "go")
    assert scheduler.ended("plain", run, tries=2) == "success"
    assert "try 1 of this task committed it already" in scheduler.log("plain", run)
    assert scheduler.rows(dt) == 4
    scheduler.until("the orphan is gone", lambda: gone(pid))
    assert scheduler.staged() == []
