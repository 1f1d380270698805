"""The kill sweep once more, below Python: strace kills the run before each system call that changes a file.

``python -m tests.crash.matrix [NAME …]``. Slow, and for what the audit hooks might miss. With ``--count`` it
only compares: the calls that strace sees below the use case folder with those that the hooks see.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from tests.crash import processes
from tests.crash.processes import KILLED, Child, Result
from tests.crash.scenarios import SCENARIOS, Scenario
from tests.crash.sweep import calls_of, commits, copy_of, prepare, runs_after, warm_up, what_readers_see
from tests.crash.world import World

# System call to the name that calls.py gives it.
SYSTEM_CALLS = {
    "openat": "open",
    "write": "write",
    "fsync": "fsync",
    "syncfs": "syncfs",
    "rename": "rename",
    "link": "link",
    "unlink": "remove",
    "mkdir": "mkdir",
    "rmdir": "rmdir",
    "utimensat": "utime",
}
_OTHERS = "creat,ftruncate,truncate,symlink,chmod,fchmod,renameat2,linkat,unlinkat,mkdirat,pwrite64,fallocate"
_WRITES = re.compile(r"O_WRONLY|O_RDWR|O_CREAT|O_TRUNC")


def traced(world: World, scenario: Scenario, *options: str) -> Result:
    """Run the scenario's job under strace."""

    def act() -> str:
        processes.stop_self()
        return world.run(scenario.job)

    child = Child(act)
    assert child.stopped()
    tracer = subprocess.Popen(
        ["strace", "-f", "-qq", "-p", str(child.pid), *options], stderr=subprocess.DEVNULL
    )
    while f"TracerPid:\t{tracer.pid}" not in Path(f"/proc/{child.pid}/status").read_text():
        time.sleep(0.002)
    os.kill(child.pid, signal.SIGCONT)
    result = child.wait()
    tracer.wait()
    return result


def seen_by_strace(scenario: Scenario, before: World, folder: Path) -> Counter[str]:
    """The system calls of an undisturbed run that change something below its folder, by name."""
    world = copy_of(before, folder / "traced")
    listing = folder / "strace"
    names = ",".join(SYSTEM_CALLS) + "," + _OTHERS
    traced(world, scenario, "-y", "-e", f"trace={names}", "-o", str(listing))
    shutil.rmtree(world.root)
    seen: Counter[str] = Counter()
    for line in listing.read_text().splitlines():
        name = line.split(maxsplit=1)[1].partition("(")[0]
        if f"{world.root}/" not in line or (name == "openat" and not _WRITES.search(line)):
            continue
        seen[SYSTEM_CALLS.get(name, name)] += 1
    return seen


def seen_by_hooks(scenario: Scenario, before: World, folder: Path) -> Counter[str]:
    """The same as the hooks see it."""
    return Counter(call.kind for call in calls_of(scenario, before, folder))


def killed_by_strace(scenario: Scenario, before: World, folder: Path) -> tuple[int, list[str]]:
    """:returns: the number of points, and what is wrong at each bad one."""
    points, wrong = 0, []
    for name in SYSTEM_CALLS:
        for number in range(1, 10_000):
            world = copy_of(before, folder / "killed")
            committed = commits(world, scenario.job)
            inject = f"inject={name}:signal=KILL:when={number}"
            result = traced(world, scenario, "-o", os.devnull, "-e", f"trace={name}", "-e", inject)
            if result.outcome != KILLED:
                shutil.rmtree(world.root)
                break
            points += 1
            found = list(what_readers_see(scenario, world, commits(world, scenario.job) > committed))
            found += runs_after(scenario, world)
            wrong += [f"{scenario.name}, killed before {name} {number}: {line}" for line in found]
            shutil.rmtree(world.root)
    return points, wrong


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(SCENARIOS)}")
    parser.add_argument("--count", action="store_true")
    asked = parser.parse_args()
    warm_up()
    bad = 0
    for name in asked.names or SCENARIOS:
        scenario = SCENARIOS[name]
        with tempfile.TemporaryDirectory(prefix="ubunye-crash-") as made:
            folder = Path(made).resolve()
            before = prepare(scenario, folder)
            if asked.count:
                strace, hooks = (
                    seen_by_strace(scenario, before, folder),
                    seen_by_hooks(scenario, before, folder),
                )
                print(
                    f"{name}: strace {strace.total()}, hooks {hooks.total()}, missed {dict(strace - hooks)}"
                )
                bad += (strace - hooks).total()
                continue
            points, wrong = killed_by_strace(scenario, before, folder)
        bad += len(wrong)
        print(f"{name}: {points} points, {len(wrong)} bad", flush=True)
        for line in wrong:
            print(line)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
