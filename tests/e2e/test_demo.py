"""The demo as README's first command runs it: from the shell, then on a real Airflow."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_the_demo_runs_on_airflow_and_leaves_nothing(tmp_path: Path) -> None:
    # A person's own Airflow must not get into it.
    environ = {**os.environ, "TMPDIR": str(tmp_path), "AIRFLOW_HOME": "/nowhere", "AIRFLOW__API__PORT": "1"}
    done = subprocess.run(
        [sys.executable, "-m", "demo.flights"],
        cwd=ROOT,
        env=environ,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    for said in (
        "Airflow is up and knows the DAG",
        "2013-02-03 has 814 rows in 814 files: exactly the flights of the feed",
        "Airflow's retry succeeded, on try 2",
        "log: Took over from run",
        "cleared: refused at once, with retries left",
        "triggered again: refused at once, with retries left",
        "log: --rerun: replacing the batch",
        "4 days, 3,354 rows: every flight once",
        "all of them held",
    ):
        assert said in done.stdout, done.stdout
    assert "Traceback" not in done.stdout + done.stderr
    assert not list(tmp_path.iterdir())
    assert not [process for process in psutil.process_iter() if str(tmp_path) in environment_of(process)]


def environment_of(process: psutil.Process) -> str:
    try:
        return "\n".join(process.environ().values())
    except psutil.Error:
        return ""
