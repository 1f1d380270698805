"""The keeper ends all that it started, however the demo ends."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

ROOT = Path(__file__).parents[2]


def keeper(folder: Path, programs: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "demo.keeper", str(folder), *programs.split()],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        start_new_session=True,
    )


def until(what: Callable[[], bool]) -> None:
    end = time.monotonic() + 30
    while not what():
        assert time.monotonic() < end
        time.sleep(0.05)


def sleepers(seconds: int) -> list[psutil.Process]:
    found = []
    for process in psutil.process_iter(["cmdline"]):
        if process.info["cmdline"] == ["sleep", str(seconds)]:
            found.append(process)
    return found


@pytest.mark.parametrize("how", ["told", "killed"])
def test_not_one_process_outlives_the_demo(tmp_path: Path, how: str) -> None:
    # A number that no other test sleeps for: the processes are known by it.
    seconds = {"told": 860_101, "killed": 860_102}[how]
    # What it starts starts a process of its own, in a group of its own.
    child = tmp_path / "child.sh"
    child.write_text(f"set -m\nsleep {seconds} &\nsleep {seconds}\n")
    program = f"true -- sleep {seconds} -- bash {child}"
    if how == "told":
        # Leaving the block closes its standard input, then waits.
        with keeper(tmp_path, program):
            until(lambda: len(sleepers(seconds)) == 3)
    else:
        # The demo's place is taken by a process that starts the keeper as the demo does and is then killed.
        code = (
            "import subprocess, sys, time\n"
            "subprocess.Popen([sys.executable, '-m', 'demo.keeper', *sys.argv[1:]], stdin=subprocess.PIPE, "
            "start_new_session=True)\n"
            "time.sleep(600)\n"
        )
        demo = subprocess.Popen([sys.executable, "-c", code, str(tmp_path), *program.split()], cwd=ROOT)
        try:
            until(lambda: len(sleepers(seconds)) == 3)
        finally:
            demo.kill()
            demo.wait()
    until(lambda: not sleepers(seconds))


def test_when_one_program_ends_all_do(tmp_path: Path) -> None:
    with keeper(tmp_path, "echo ready -- sleep 860103 -- sleep 0.5") as process:
        process.wait(30)
    assert not sleepers(860_103)
    assert (tmp_path / "echo ready.txt").read_text() == "ready\n"


def test_nothing_is_started_after_a_first_that_fails(tmp_path: Path) -> None:
    with keeper(tmp_path, "false -- touch started") as process:
        process.wait(30)
    assert [path.name for path in tmp_path.iterdir()] == ["false.txt"]


def test_it_refuses_a_session_that_is_not_its_own(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "demo.keeper", str(tmp_path), "true"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "one of its own" in done.stderr
