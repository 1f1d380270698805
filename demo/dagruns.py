"""The demo's steps on a real Airflow scheduler: the same task folder, in a fresh lake."""

from __future__ import annotations

import os
import shutil
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd

from airflow_provider_ubunye.core.batch import Batch
from airflow_provider_ubunye.core.leases import look
from airflow_provider_ubunye.core.owner import Owner
from airflow_provider_ubunye.core.where import setting_for
from demo.scheduler import Airflow, Try, quoted
from demo.stage import Demo, paint, quote

HERE = Path(__file__).resolve().parent
TASK = "air/daily/load_flights"
DAG, LOAD = "flights", "load_flights"

BACKFILLED = ("2013-02-01", "2013-02-02", "2013-02-03")
KILLED = ("2013-02-04", "2013-02-05", "2013-02-06")
"""The next is tried where the signal came too late for the one before."""
AGAIN = BACKFILLED[0]


def on_airflow(demo: Demo) -> None:
    """All steps with Airflow."""
    feed = demo.feed
    demo.move_to(demo.work / "airflow")
    demo.feed.mkdir(parents=True)
    for date in BACKFILLED + KILLED:
        shutil.copy(feed / f"{date}.csv", demo.feed)
    for folder in ("dags", "pipelines"):
        shutil.copytree(HERE / folder, demo.work / folder, ignore=shutil.ignore_patterns("__*"))
    demo.step(
        "On a real Airflow",
        "Scheduler, API server, DAG processor and triggerer, on 127.0.0.1, in the demo's own folder. The "
        "same task folder as above, a fresh lake, a file for each row.",
    )
    print(paint("  dags/flights.py", "1"))
    for line in operator_lines():
        print(f"  {line}")
    began = time.monotonic()
    airflow = Airflow(demo.work / "airflow-home", demo.work / "dags", {**demo.environ, "ROWS_PER_FILE": "1"})
    with airflow.running(DAG):
        demo.check(f"Airflow is up and knows the DAG ({time.monotonic() - began:.0f} s)", True)
        backfill(demo, airflow)
        date = killed(demo, airflow)
        again(demo, airflow)
        rerun(demo, airflow)
        days = demo.lake.days()
        fed = sum(len(pd.read_csv(demo.feed / f"{day}.csv")) for day in days)
        demo.check(
            f"{len(days)} days, {sum(day.rows for day in days.values()):,} rows: every flight once",
            {*BACKFILLED, date} <= set(days) and sum(day.rows for day in days.values()) == fed,
        )


def operator_lines() -> Iterator[str]:
    """The operator, as the DAG file has it."""
    lines = (HERE / "dags" / "flights.py").read_text("utf-8").splitlines()
    first = next(number for number, line in enumerate(lines) if line.startswith("with DAG("))
    yield from (line for line in lines[first:] if "#" not in line)


def backfill(demo: Demo, airflow: Airflow) -> None:
    """Three DAG runs, side by side."""
    demo.step("A backfill of three days", "Each DAG run's batch is its day: dt is the logical date.")
    first, *_, last = BACKFILLED
    body = {"dag_id": DAG, "from_date": f"{first}T00:00:00Z", "to_date": f"{last}T00:00:00Z"}
    airflow.post("/backfills", {**body, "max_active_runs": 3})
    for date in BACKFILLED:
        done = ended(airflow, backfill_run(date), 1)
        demo.check("the task succeeded on its first try", (done.number, done.state) == (1, "success"))
    days = demo.lake.days()
    for date in BACKFILLED:
        demo.check_exact(date, days)


def killed(demo: Demo, airflow: Airflow) -> str:
    """The task's process dies as its files land; Airflow's own retry makes the day exact. Returns the day."""
    demo.step(
        "Killed while files land, and retried by Airflow",
        "SIGKILL to the task's process as its first file lands. Nobody asks for anything after that.",
    )
    for date in KILLED:
        before = files(demo)
        run = f"by_hand_{date}"
        pid = kill_at_first_file(demo, airflow, date, run)
        dead = files(demo) - before
        waiting = sum(1 for _ in (demo.work / "pipelines/.ubunye/staging").rglob("part-*"))
        if pid is not None and dead and waiting:
            break
        print("  the run was done before the signal came; once more, with the next day")
        airflow.try_of(DAG, run, LOAD, 1)
        demo.before = demo.lake.days()
    demo.check(f"process {pid} died of SIGKILL", pid is not None)
    demo.check(f"{len(dead)} of its {len(dead) + waiting} files had landed: part of a batch", bool(dead))
    done = ended(airflow, run, 2, "Took over from run")
    first = airflow.log(DAG, run, LOAD, 1)
    demo.check("Airflow saw it: " + first[-1].partition(".")[0], "terminated by signal" in first[-1])
    demo.check("Airflow's retry succeeded, on try 2", (done.number, done.state) == (2, "success"))
    demo.check("it took back the dead try's files", bool(done.line("died before it committed")))
    demo.check_day(date)
    staged = list((demo.work / "pipelines/.ubunye/staging").rglob("*"))
    markers = list(demo.lake.path.rglob("_ubunye*"))
    demo.check("nothing of the dead try is left behind", not dead & files(demo) and not staged + markers)
    return date


def kill_at_first_file(demo: Demo, airflow: Airflow, date: str, run: str) -> int | None:
    """Start a day and kill the task's process as a file lands. Returns its id; None if it was done before."""
    folders = list(demo.lake.path.glob("origin=*"))
    # A file that lands changes its folder's time.
    before = [os.stat(folder).st_mtime_ns for folder in folders]
    trigger(airflow, run, f"{date}T00:00:00Z")
    pid = airflow.until("the task holds its lease", lambda: holder(demo, date), pause=0.02)
    while holder_lives(pid):
        if [os.stat(folder).st_mtime_ns for folder in folders] != before:
            os.kill(pid, signal.SIGKILL)
            return pid
    return None


def holder(demo: Demo, date: str) -> int | None:
    """The process that holds a day's lease, as ``ubunye leases list`` shows it."""
    setting = setting_for(None, str(demo.work / "pipelines/.ubunye"), looking=True)
    found = look(setting, TASK, Batch.of(TASK, {"dt": date}).key).state.holder
    return None if found is None else Owner.from_json(found.owner).pid


def holder_lives(pid: int) -> bool:
    """Whether the process is there."""
    return os.path.exists(f"/proc/{pid}")


def again(demo: Demo, airflow: Airflow) -> None:
    """A finished day is refused, whoever asks: no retry is spent on it."""
    demo.step("The same day again", "Cleared, triggered by hand at noon, typed in the shell: one batch.")
    body = {"dry_run": False, "dag_run_id": backfill_run(AGAIN), "task_ids": [LOAD], "only_failed": False}
    airflow.post(f"/dags/{DAG}/clearTaskInstances", body)
    cleared = ended(airflow, backfill_run(AGAIN), 2, "already finished this batch")
    demo.check(
        "cleared: refused at once, with retries left",
        (cleared.number, cleared.state) == (2, "failed") and "on_clear='rerun'" in "".join(cleared.lines),
    )
    trigger(airflow, "at_noon", f"{AGAIN}T12:00:00Z")
    noon = ended(airflow, "at_noon", 1, "already finished this batch")
    demo.check(
        "triggered again: refused at once, with retries left",
        (noon.number, noon.state) == (1, "failed") and "on_finished='rerun'" in "".join(noon.lines),
    )
    said = demo.type(demo.load(AGAIN))
    demo.check("the shell is refused too", said.code == 1 and "already finished this batch" in said.text)
    demo.check("not one file of the lake changed", demo.lake.days() == demo.before)


def rerun(demo: Demo, airflow: Airflow) -> None:
    """Asked for in so many words, the day is replaced."""
    demo.step("A rerun, asked for", "The DAG run's conf says so; a backfill's may as well.")
    trigger(airflow, "corrected", f"{AGAIN}T18:00:00Z", conf={"ubunye": {"rerun": True}})
    done = ended(airflow, "corrected", 1, "--rerun: replacing", "Replaced the batch")
    demo.check("the task succeeded on its first try", (done.number, done.state) == (1, "success"))
    demo.check_day(AGAIN)
    old, new = demo.before[AGAIN], demo.lake.days()[AGAIN]
    demo.check(f"the {len(old.files)} files of the first load are gone", not old.files & new.files)


def trigger(airflow: Airflow, run: str, date: str, **more: Any) -> None:
    """Start a DAG run by hand."""
    airflow.post(f"/dags/{DAG}/dagRuns", {"dag_run_id": run, "logical_date": date, **more})


def ended(airflow: Airflow, run: str, number: int, *parts: str) -> Try:
    """Wait for a try's end; show its state, and the lines of its log that hold one of ``parts``."""
    done = airflow.try_of(DAG, run, LOAD, number)
    print(f"  {run}: {LOAD}, try {done.number}, {paint(done.state, '1')}")
    for part in parts:
        if line := done.line(part):
            quote(f"log: {line}")
    if done.state == "success":
        path = f"/dags/{DAG}/dagRuns/{quoted(run)}/taskInstances/{LOAD}/xcomEntries/return_value"
        quote(f"returned: {airflow.call('GET', f'{path}?deserialize=true', None)['value']}")
    return done


def backfill_run(date: str) -> str:
    """The id that Airflow gives a backfill's DAG run."""
    return f"backfill__{date}T00:00:00+00:00"


def files(demo: Demo) -> set[str]:
    """The data files that a reader finds now."""
    return {entry.name for folder in demo.lake.path.glob("origin=*") for entry in os.scandir(folder)}
