"""No kill point and no freeze point is bad: each scenario swept in a process of its own."""

from __future__ import annotations

import random
import subprocess
import sys

import pytest

from tests.crash.freeze import FROZEN
from tests.crash.scenarios import SCENARIOS

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

FREEZES = 20
"""Freeze points of each scenario; ``python -m tests.crash.freeze`` takes all."""


def sweep(module: str, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", f"tests.crash.{module}", *arguments],
        capture_output=True,
        text=True,
        check=False,
    )
    print(done.stdout)
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
    return done.stdout


@pytest.mark.parametrize("name", SCENARIOS)
def test_no_kill_point_is_bad(name: str) -> None:
    """The figures that were measured: over 1,700 points in all."""
    count = int(sweep("sweep", name).rpartition("\n")[0].splitlines()[-1].split()[0])
    assert count >= 30


@pytest.mark.parametrize("name", FROZEN)
def test_no_freeze_point_is_bad(name: str) -> None:
    seed = random.randrange(2**32)
    assert f"seed {seed}" in sweep("freeze", "--seed", str(seed), "--sample", str(FREEZES), name)


@pytest.mark.debian
def test_the_hooks_miss_no_system_call() -> None:
    names = ("append to a new folder", "append of many files", "finish of a dead rerun", "failing rerun")
    sweep("matrix", "--count", *names)
