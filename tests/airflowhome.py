"""An Airflow home of its own, for tests."""

from __future__ import annotations

import functools
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

ALWAYS = {
    # Tests ask nobody who they are, so nobody else may come in.
    "AIRFLOW__API__HOST": "127.0.0.1",
    "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
    "AIRFLOW__CORE__DAGS_ARE_PAUSED_AT_CREATION": "False",
    "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_ALL_ADMINS": "True",
    "AIRFLOW__CORE__UNIT_TEST_MODE": "False",
    "AIRFLOW__USAGE_DATA_COLLECTION__ENABLED": "False",
}


def environment(home: Path, dags: Path, **more: str) -> dict[str, str]:
    """The environment of every process of this home, without what the caller's own says of Airflow."""
    inherited = {k: v for k, v in os.environ.items() if not k.startswith(("AIRFLOW", "UBUNYE", "COV_"))}
    return {
        **inherited,
        **ALWAYS,
        "AIRFLOW_HOME": str(home),
        "AIRFLOW__CORE__DAGS_FOLDER": str(dags),
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        **more,
    }


def airflow(env: Mapping[str, str], *arguments: str, timeout: float = 180) -> str:
    """Run an ``airflow`` command and return what it printed; it must exit 0."""
    done = subprocess.run(
        [sys.executable, "-m", "airflow", *arguments],
        env=dict(env),
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    return done.stdout + done.stderr


@functools.cache
def isolate() -> None:
    """Have Airflow, imported later in this process, find no configuration and no connections of the user's."""
    for name in [n for n in os.environ if n.startswith(("AIRFLOW", "UBUNYE"))]:
        del os.environ[name]
    os.environ.update(ALWAYS, AIRFLOW_HOME=tempfile.mkdtemp(prefix="airflow-"))
