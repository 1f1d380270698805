"""The demo, as a person runs it; and that it fails when what it claims isn't so."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

from demo.stage import Demo, NotSo

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
def test_the_demo_runs_and_leaves_nothing(tmp_path: Path) -> None:
    # A person's own settings must not get into it.
    environ = {**os.environ, "TMPDIR": str(tmp_path), "UBUNYE_RUN_LEASE": "off", "UBUNYE_STATE": "/nowhere"}
    done = subprocess.run(
        [sys.executable, "-m", "demo.flights", "--without-airflow"],
        cwd=ROOT,
        env=environ,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    for said in (
        "336,776 flights on 365 days",
        "already finished this batch",
        "the run died of SIGKILL",
        "files had landed: part of a batch",
        "one ran, three were refused",
        "[SKIP]",
        "365 days, 336,772 rows",
        "Left out, as asked",
        "all of them held",
    ):
        assert said in done.stdout, done.stdout
    assert "Traceback" not in done.stdout
    assert not list(tmp_path.iterdir())


def write_day(demo: Demo, name: str, month: int, day: int, flight: int = 1) -> None:
    folder = demo.lake.path / "origin=JFK"
    folder.mkdir(parents=True, exist_ok=True)
    row = {
        "month": month,
        "day": day,
        "dep_time": 517.0,
        "dep_delay": 2.0,
        "arr_delay": 11.0,
        "carrier": "UA",
        "flight": flight,
        "tailnum": "N14228",
        "dest": "IAH",
    }
    pd.DataFrame([row]).to_parquet(folder / name, index=False)
    demo.feed.mkdir(exist_ok=True)
    pd.DataFrame([{**row, "origin": "JFK"}]).to_csv(demo.feed / f"2013-{month:02}-{day:02}.csv", index=False)


@pytest.fixture
def demo(tmp_path: Path) -> Demo:
    demo = Demo(tmp_path)
    write_day(demo, "a.parquet", 1, 1)
    write_day(demo, "b.parquet", 1, 2)
    demo.before = demo.lake.days()
    return demo


def test_what_is_so_is_counted(demo: Demo) -> None:
    demo.check_day("2013-01-01")
    assert demo.checks == 2


def test_a_row_too_many_ends_the_demo(demo: Demo) -> None:
    write_day(demo, "again.parquet", 1, 1)
    with pytest.raises(NotSo, match="2013-01-01 has 2 rows"):
        demo.check_day("2013-01-01")


def test_another_value_ends_the_demo(demo: Demo) -> None:
    feed = demo.feed / "2013-01-01.csv"
    feed.write_text(feed.read_text().replace("N14228", "N99999"))
    with pytest.raises(NotSo, match="exactly the flights of the feed"):
        demo.check_day("2013-01-01")


def test_another_day_s_file_written_again_ends_the_demo(demo: Demo) -> None:
    file = demo.lake.path / "origin=JFK" / "b.parquet"
    os.utime(file, (1, 1))
    with pytest.raises(NotSo, match="untouched"):
        demo.check_day("2013-01-01")
