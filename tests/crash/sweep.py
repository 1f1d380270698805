"""Kill a run before each of its mutating file-system calls, run it again, and look.

``python -m tests.crash.sweep [--point N] [NAME …]`` sweeps the named scenarios, or all.
"""

from __future__ import annotations

import argparse
import gc
import json
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from airflow_provider_ubunye.core.errors import UbunyeError
from airflow_provider_ubunye.core.request import RUN
from tests.crash import processes
from tests.crash.calls import Act, Call, watch
from tests.crash.processes import KILLED, SUCCESS, Result
from tests.crash.scenarios import SCENARIOS, Before, Scenario
from tests.crash.world import Job, Rows, World, prepare_data, rerun

RERUN_VERSION = 7


def warm_up() -> None:
    """Run once in this process, so that no fork imports or looks up anything again."""
    with tempfile.TemporaryDirectory(prefix="ubunye-crash-") as name:
        job = next(iter(SCENARIOS.values())).job
        World(Path(name).resolve()).run(job)
    # What a fork need not copy: the collector doesn't touch it any more.
    gc.collect()
    gc.freeze()


def prepare(scenario: Scenario, folder: Path) -> World:
    """Make what is there before, and the data that all runs will write."""
    for job in (*(step.job for step in scenario.before), scenario.job, rerun(scenario.again, RERUN_VERSION)):
        prepare_data(job)
    world = World(folder / "before")
    world.root.mkdir()
    for before in scenario.before:
        result = processes.run(lambda before=before: step(world, before))  # type: ignore[misc]
        assert result.outcome == (KILLED if before.dies else SUCCESS), result
    return world


def step(world: World, before: Before) -> str:
    """Carry out one run of what was there before."""
    if before.dies is not None:
        dies = before.dies
        watch(str(world.root), lambda call: processes.kill_self() if dies(call) else None)
    return world.run(before.job)


def calls_of(scenario: Scenario, before: World, folder: Path) -> list[Call]:
    """The calls of an undisturbed run."""
    world = copy_of(before, folder / "counted")
    listing = folder / "calls"

    def act() -> str:
        seen: list[tuple[int, str, tuple[str, ...]]] = []
        watch(str(world.root), lambda call: seen.append((call.number, call.kind, call.paths)))
        try:
            return world.run(scenario.job)
        finally:
            listing.write_text(json.dumps(seen))

    processes.run(act)
    shutil.rmtree(world.root)
    return [Call(n, kind, tuple(paths)) for n, kind, paths in json.loads(listing.read_text())]


def copy_of(world: World, root: Path) -> World:
    shutil.copytree(world.root, root, symlinks=True)
    return World(root)


def disturbed(world: World, job: Job, act: Act) -> str:
    """Run a job in this process with ``act`` before each call."""
    watch(str(world.root), act)
    return world.run(job)


def killed_at(scenario: Scenario, before: World, folder: Path, point: int) -> Iterator[str]:
    """Kill at one point and run again; everything that is wrong, in words."""
    world = copy_of(before, folder / "killed")
    committed = commits(world, scenario.job)
    result = processes.run(
        lambda: disturbed(
            world, scenario.job, lambda call: processes.kill_self() if call.number == point else None
        )
    )
    if result.outcome != KILLED:
        yield f"it was not killed but ended: {result}"
    yield from what_readers_see(scenario, world, done=commits(world, scenario.job) > committed)
    yield from runs_after(scenario, world)
    shutil.rmtree(world.root)


def commits(world: World, job: Job) -> int:
    return world.batch(job).commits


def what_readers_see(scenario: Scenario, world: World, done: bool) -> Iterator[str]:
    """Old data whole until the run is done, new data whole from then on, and never anything else."""
    for folder, rows in scenario.rows.items():
        try:
            seen = world.rows(folder)
        except (OSError, ValueError) as error:
            yield f"{folder} can't be read after the kill: {error}"
            continue
        whole = rows if done else scenario.old[folder]
        if missing := whole - seen:
            yield f"{folder} lacks {'new' if done else 'old'} rows after the kill: {dict(missing)}"
        if odd := seen - (rows | scenario.old[folder] | _earlier_rows(scenario, folder)):
            yield f"{folder} shows rows of nobody after the kill: {dict(odd)}"


def _earlier_rows(scenario: Scenario, folder: str) -> Rows:
    seen: Rows = Counter()
    for step in scenario.before:
        for out in step.job.outputs:
            if out.folder == folder:
                seen |= step.job.rows(out)
    return seen


def runs_after(scenario: Scenario, world: World) -> Iterator[str]:
    """The run again, a plain run, a correction, a plain run: each with its right outcome, rows and folder."""
    finished = world.batch(scenario.job).finished is not None
    again = scenario.again
    for act, job, right in (
        ("run again", again, right_outcome(again, finished)),
        ("a plain run", replace(again, purpose=RUN), right_outcome(replace(again, purpose=RUN), True)),
    ):
        yield from outcome(act, processes.run(lambda job=job: world.run(job)), right)  # type: ignore[misc]
        yield from quiet(job, scenario.rows, scenario.files, world, act)
    if not again.appends:
        return
    yield from outcome("--rerun", processes.run(lambda: world.run(rerun(again, RERUN_VERSION))), SUCCESS)
    corrected = {
        folder: Counter({(d, RERUN_VERSION if d == again.day else v, p): n for (d, v, p), n in rows.items()})
        for folder, rows in scenario.rows.items()
    }
    yield from quiet(again, corrected, scenario.files, world, "--rerun")


def right_outcome(job: Job, finished: bool) -> str:
    if job.outputs[0].mode == "errorifexists" and finished:
        return "OutputExists"
    return "BatchFinished" if job.purpose == RUN and job.appends and finished else SUCCESS


def outcome(act: str, result: Result, right: str) -> Iterator[str]:
    if result.outcome != right:
        yield f"{act}: {result.outcome}, not {right}: {result.said}"


def quiet(job: Job, rows: dict[str, Rows], files: dict[str, int], world: World, act: str) -> Iterator[str]:
    """Exact rows, nothing left behind."""
    for folder, right in rows.items():
        seen = world.rows(folder)
        if seen != right:
            yield f"{folder} after {act}: too much {dict(seen - right)}, missing {dict(right - seen)}"
    for line in world.left_behind(job, files):
        yield f"after {act}: {line}"


def sweep(scenario: Scenario, only: int | None = None) -> tuple[int, list[str]]:
    """:returns: the number of points, and what is wrong at each bad one."""
    wrong: list[str] = []
    with tempfile.TemporaryDirectory(prefix="ubunye-crash-") as name:
        folder = Path(name).resolve()
        before = prepare(scenario, folder)
        calls = calls_of(scenario, before, folder)
        for call in calls:
            if only is not None and call.number != only:
                continue
            try:
                found = list(killed_at(scenario, before, folder, call.number))
            except UbunyeError as error:
                found = [f"{type(error).__name__}: {error}"]
            if found:
                shutil.rmtree(folder / "killed", ignore_errors=True)
                at = str(call).replace(f"{folder}/killed/", "").replace(f"{folder}/counted/", "")
                wrong.append(f"{scenario.name}, killed before call {at}:\n  " + "\n  ".join(found))
    return len(calls), wrong


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(SCENARIOS)}")
    parser.add_argument("--point", type=int, help="this point alone")
    asked = parser.parse_args()
    warm_up()
    points, bad = 0, 0
    for name in asked.names or SCENARIOS:
        began = time.monotonic()
        count, wrong = sweep(SCENARIOS[name], asked.point)
        points, bad = points + count, bad + len(wrong)
        print(f"{name}: {count} points, {len(wrong)} bad, {time.monotonic() - began:.1f} s", flush=True)
        for line in wrong:
            print(line)
    print(f"{points} points, {bad} bad")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
