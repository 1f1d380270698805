"""Two Airflows that know nothing of each other share one state folder: of each batch one run works."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import pyarrow.dataset as ds
import pytest

from tests.airflowhome import airflow, environment

T = TypeVar("T")

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

HERE = Path(__file__).parent
NAMES = ("one", "two")

# The first three are races, whoever wins; in the last two the winner holds the batch until it is told to go on.
ROUNDS = [("fails", f"2026-05-0{day}") for day in (1, 2, 3, 4)] + [("waits", "2026-05-05")]
HELD = (3, 4)


@dataclass
class Homes:
    work: Path
    meeting: Path
    logs: dict[str, Path]
    processes: list[subprocess.Popen[bytes]]

    def results(self, number: int, count: int = 2) -> list[dict[str, Any]]:
        def look() -> list[dict[str, Any]] | None:
            found = sorted(self.meeting.glob(f"{number}.*.json"))
            return [json.loads(path.read_text()) for path in found] if len(found) >= count else None

        return self.until(look)

    def until(self, look: Callable[[], T | None]) -> T:
        end = time.monotonic() + 120
        while time.monotonic() < end:
            if (found := look()) is not None:
                return found
            dead = [p for p in self.processes if p.poll() not in (None, 0)]
            assert not dead, self.told()
            time.sleep(0.1)
        raise AssertionError(self.told())

    def told(self) -> str:
        return "\n".join(path.read_text(errors="replace")[-4000:] for path in self.logs.values())

    def rows(self, date: str) -> int:
        found = ds.dataset(self.work / "lake" / "orders", partitioning="hive", format="parquet")
        return int(found.count_rows(filter=ds.field("dt").cast("string") == date))


@pytest.fixture
def homes(tmp_path: Path) -> Iterator[Homes]:
    work, meeting, dags = tmp_path / "work", tmp_path / "meeting", tmp_path / "dags"
    shutil.copytree(HERE / "shared_dags", dags, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(HERE / "pipelines", work / "pipelines", ignore=shutil.ignore_patterns("__pycache__"))
    (work / "control").mkdir()
    meeting.mkdir()
    for number in HELD:
        (work / "control" / f"{ROUNDS[number][1]}.hold").touch()
    connection = {"conn_type": "ubunye", "extra": {"usecase_dir": str(work / "pipelines")}}
    logs, processes = {}, []
    for name in NAMES:
        home = tmp_path / name
        env = environment(home, dags, AIRFLOW_CONN_UBUNYE_DEFAULT=json.dumps(connection))
        if name == NAMES[0]:
            airflow(env, "db", "migrate")
            # An empty database of the same version, without another ten seconds. Not airflow.cfg: it names
            # the first home's database.
            (tmp_path / NAMES[1]).mkdir()
            shutil.copy(home / "airflow.db", tmp_path / NAMES[1])
        logs[name] = tmp_path / f"{name}.log"
        arguments = [name, str(len(NAMES)), str(meeting), str(dags / "shared.py"), json.dumps(ROUNDS)]
        with logs[name].open("wb") as log:
            processes.append(
                subprocess.Popen(
                    [sys.executable, str(HERE / "home.py"), *arguments],
                    env={**env, "PYTHONPATH": os.pathsep.join(sys.path)},
                    stdout=log,
                    stderr=subprocess.STDOUT,
                )
            )
    try:
        yield Homes(work, meeting, logs, processes)
    finally:
        for process in processes:
            process.kill()
            process.wait()


def test_two_homes_on_one_state(homes: Homes) -> None:
    for number, (_, date) in enumerate(ROUNDS):
        if number in HELD:
            continue
        states = sorted(r["state"] for r in homes.results(number))
        assert states == ["failed", "success"], homes.told()
        assert homes.rows(date) == 4

    # One fails while the other still works.
    _, date = ROUNDS[HELD[0]]
    (refused,) = homes.results(HELD[0], 1)
    assert refused["state"] == "failed"
    assert "is still running: run" in homes.logs[refused["name"]].read_text()
    (homes.work / "control" / f"{date}.go").touch()
    assert sorted(r["state"] for r in homes.results(HELD[0])) == ["failed", "success"]
    assert homes.rows(date) == 4

    # One waits for the other, and then finds the batch done.
    _, date = ROUNDS[HELD[1]]
    homes.until(lambda: True if "Waiting for it in the triggerer" in homes.told() else None)
    (homes.work / "control" / f"{date}.go").touch()
    assert sorted(r["state"] for r in homes.results(HELD[1])) == ["skipped", "success"]
    assert homes.rows(date) == 4
    assert [p.wait(60) for p in homes.processes] == [0, 0]
