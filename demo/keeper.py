"""Keeps the processes of the demo's Airflow: not one outlives the demo, however that ends.

usage: python -m demo.keeper FOLDER FIRST -- PROGRAM -- PROGRAM …

Runs FIRST to its end, then every PROGRAM at once, each a command line; what they print goes to files in FOLDER.
Started in a session of its own, it kills all of that session when its standard input ends, which the system sees
to even where the demo is killed, or when one of the programs ends.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import select
import signal
import subprocess
import sys
import time
from pathlib import Path


def start(folder: Path, program: list[str]) -> subprocess.Popen[bytes]:
    """Start a program that prints to a file named by its first two words."""
    name = " ".join(Path(word).name for word in program[:2])
    with (folder / f"{name}.txt").open("wb") as log:
        return subprocess.Popen(program, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT)


def told_to_end(seconds: float) -> bool:
    """Whether standard input ends within a time. Nothing is ever written to it."""
    return bool(select.select([sys.stdin], [], [], seconds)[0])


def end_session() -> None:
    """Kill every other process of this session, and what they start meanwhile."""
    import psutil

    me, session = os.getpid(), os.getsid(0)
    while True:
        found = 0
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error, ProcessLookupError):
                if process.pid != me and os.getsid(process.pid) == session:
                    # A dead one that only waits to be reaped is not counted: its parent may be dead as well.
                    found += process.status() != psutil.STATUS_ZOMBIE
                    process.send_signal(signal.SIGKILL)
        if not found:
            return
        time.sleep(0.05)


def main(folder: Path, programs: list[list[str]]) -> None:
    """Run what is to be run until it is time to end."""
    if os.getsid(0) != os.getpid():
        raise SystemExit("demo.keeper kills its whole session; it is to be started in one of its own")
    try:
        first = start(folder, programs[0])
        while first.poll() is None:
            if told_to_end(0.1):
                return
        if first.returncode:
            return
        rest = [start(folder, program) for program in programs[1:]]
        while all(process.poll() is None for process in rest) and not told_to_end(0.5):
            pass
    finally:
        end_session()


if __name__ == "__main__":
    groups = itertools.groupby(sys.argv[2:], lambda word: word == "--")
    main(Path(sys.argv[1]), [list(words) for separator, words in groups if not separator])
