"""Stop a run before each of its calls, let another take over and finish, and let the first go on.

The other run is judged to be elsewhere, so the heartbeat alone decides. ``python -m tests.crash.freeze
[--seed N] [--sample N] [NAME …]`` stops at every point of the named scenarios, or at a sample of them.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from airflow_provider_ubunye.core.records import INTERRUPTED
from airflow_provider_ubunye.core.request import RUN
from airflow_provider_ubunye.core.state import BatchState
from tests.crash import processes
from tests.crash.calls import Call
from tests.crash.processes import SUCCESS, Child, Result
from tests.crash.scenarios import SCENARIOS, Scenario
from tests.crash.sweep import calls_of, copy_of, disturbed, outcome, prepare, quiet, right_outcome, warm_up
from tests.crash.world import Job, World

TTL = 0.6
PATIENCE = 60.0
WORKERS = 6
_TRIES = 4

FROZEN = (
    "append beside another batch",
    "append by partition",
    "two outputs",
    "rerun",
    "overwrite",
    "overwrite of partitions",
    "errorifexists",
    "takeover in the landing",
    "finish of a dead run",
    "rerun over a dead rerun",
    "failing run",
)


def frozen_at(scenario: Scenario, before: World, root: Path, point: int) -> Iterator[str]:
    """Stop at one point; everything that is wrong, in words."""
    world = copy_of(before, root)
    at_start = world.batch(scenario.job)
    job = replace(scenario.job, ttl=TTL)
    for _ in range(_TRIES):
        sleeper = _sleeper(world, job, point)
        if sleeper.stopped():
            break
        # On a busy machine it may lose its lease before it gets there.
        sleeper.wait()
        shutil.rmtree(world.root)
        world = copy_of(before, root)
    else:
        yield "it never got there"
        return
    state = world.batch(job)
    taker = replace(scenario.again, wait=PATIENCE)
    other = processes.run(lambda: world.run(taker, world.setting(elsewhere=True)))
    os.kill(sleeper.pid, signal.SIGCONT)
    woken = sleeper.wait()
    yield from outcome("the other run", other, right_outcome(taker, state.finished is not None))
    yield from _woken(scenario, world, at_start, state, woken)
    plain = replace(scenario.again, purpose=RUN)
    yield from quiet(plain, scenario.rows, scenario.files, world, "waking")
    yield from outcome(
        "a plain run", processes.run(lambda: world.run(plain)), right_outcome(plain, finished=True)
    )
    yield from quiet(plain, scenario.rows, scenario.files, world, "a plain run")
    shutil.rmtree(world.root)


def _sleeper(world: World, job: Job, point: int) -> Child:
    return Child(
        lambda: disturbed(world, job, lambda call: processes.stop_self() if call.number == point else None)
    )


def _woken(
    scenario: Scenario, world: World, before: BatchState, stopped: BatchState, woken: Result
) -> Iterator[str]:
    """What the log said when the run was stopped decides how it ends."""
    job = scenario.job
    if stopped.runs == before.runs:
        right = {right_outcome(job, finished=True)} if not job.fails else {"UserError", "BatchFinished"}
    elif stopped.commits > before.commits:
        right = {SUCCESS}
    elif stopped.holder is None:
        right = {"UserError", "BatchFinished"}
    elif before.finished is None and stopped.finished is not None:
        right = {"BatchFinished"}
    else:
        right = {"LeaseLost", "UserError"} if job.fails else {"LeaseLost"}
        if stopped.holder.phase == "acquired":
            # It was not told yet that it holds the lease: it looks again.
            right.add(right_outcome(job, finished=True))
        run = stopped.holder.run
        for record in world.records():
            if record.run_id == run and "LeaseLost" in woken.outcome and record.status != INTERRUPTED:
                yield f"the woken run's record says {record.status}"
    if woken.outcome not in right:
        yield f"the woken run: {woken.outcome}, not {' or '.join(sorted(right))}: {woken.said}\n{woken.log}"


def share(scenario: Scenario, before: World, root: Path, calls: list[Call]) -> list[str]:
    """Sweep some points one after another."""
    wrong = []
    for call in calls:
        if found := list(frozen_at(scenario, before, root, call.number)):
            shutil.rmtree(root, ignore_errors=True)
            at = " -> ".join(os.path.relpath(p, root.parent / "counted") for p in call.paths)
            wrong.append(
                f"{scenario.name}, stopped before call {call.number} {call.kind} {at}:\n  "
                + "\n  ".join(found)
            )
    return wrong


def sweep(scenario: Scenario, sample: int | None, rng: random.Random) -> tuple[int, list[str]]:
    """:returns: the number of points, and what is wrong at each bad one."""
    # Those who died before are judged by the heartbeat too.
    dead = tuple(replace(step, job=replace(step.job, ttl=TTL)) for step in scenario.before)
    scenario = replace(scenario, before=dead)
    with tempfile.TemporaryDirectory(prefix="ubunye-crash-") as name:
        folder = Path(name).resolve()
        before = prepare(scenario, folder)
        calls = calls_of(scenario, before, folder)
        if sample is not None and sample < len(calls):
            calls = sorted(rng.sample(calls, sample), key=lambda call: call.number)
        workers = [
            Child(
                lambda i=i: json.dumps(  # type: ignore[misc]
                    share(scenario, before, folder / f"frozen-{i}", calls[i::WORKERS])
                )
            )
            for i in range(WORKERS)
        ]
        wrong: list[str] = []
        for worker in workers:
            result = worker.wait()
            wrong += json.loads(result.said) if result.outcome == SUCCESS else [str(result)]
        return len(calls), wrong


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(SCENARIOS)}")
    parser.add_argument("--seed", type=int, default=random.randrange(2**32))
    parser.add_argument("--sample", type=int, help="this many points of each scenario, by the seed")
    asked = parser.parse_args()
    if asked.sample is not None:
        print(f"seed {asked.seed}")
    rng = random.Random(asked.seed)
    warm_up()
    points, bad = 0, 0
    for name in asked.names or FROZEN:
        began = time.monotonic()
        count, wrong = sweep(SCENARIOS[name], asked.sample, rng)
        points, bad = points + count, bad + len(wrong)
        print(f"{name}: {count} points, {len(wrong)} bad, {time.monotonic() - began:.1f} s", flush=True)
        for line in wrong:
            print(line, flush=True)
    print(f"{points} points, {bad} bad")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
