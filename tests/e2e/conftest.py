"""One scheduler for all of these tests."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.scheduler import Scheduler

HERE = Path(__file__).parent


@pytest.fixture(scope="session")
def scheduler(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scheduler]:
    home = tmp_path_factory.mktemp("airflow")
    work = tmp_path_factory.mktemp("work")
    dags = work / "dags"
    shutil.copytree(HERE / "dags", dags, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(HERE / "pipelines", work / "pipelines", ignore=shutil.ignore_patterns("__pycache__"))
    (work / "control").mkdir()
    with Scheduler(home, dags, work).running() as running:
        yield running
