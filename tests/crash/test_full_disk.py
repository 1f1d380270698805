"""Field case 16: the disk is full, or broken, at every write: data, entry, note, record."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.crash import processes
from tests.crash.calls import Act, Call
from tests.crash.namespaces import tmpfs, with_mounts
from tests.crash.processes import SUCCESS, Result
from tests.crash.scenarios import SCENARIOS, Scenario
from tests.crash.sweep import (
    calls_of,
    commits,
    copy_of,
    disturbed,
    outcome,
    prepare,
    quiet,
    right_outcome,
    what_readers_see,
)
from tests.crash.world import World

pytestmark = pytest.mark.slow

REFUSALS = {
    "StoreUnusable",
    "StoreFailed",
    "StoreBroken",
    "LandingFailed",
    "OSError",
    "NotTakenBack",
    SUCCESS,
}


def after(scenario: Scenario, world: World, committed: int, result: Result) -> Iterator[str]:
    """What must hold once the disk works again."""
    done = commits(world, scenario.job) > committed
    if result.outcome not in REFUSALS:
        yield f"it ended in {result}"
    if (result.outcome == SUCCESS) != done:
        yield f"it ended in {result.outcome}, and the log says {'done' if done else 'not done'}: {result.said}"
    yield from what_readers_see(scenario, world, done)
    again = processes.run(lambda: world.run(scenario.again))
    finished = done or scenario.committed_before
    yield from outcome("run again", again, right_outcome(scenario.again, finished))
    yield from quiet(scenario.again, scenario.rows, scenario.files, world, "run again")


def failing(point: int, code: int, for_ever: bool) -> Act:
    """Fail a call, or it and all later ones."""

    def act(call: Call) -> None:
        if call.number == point or (for_ever and call.number > point):
            raise OSError(code, os.strerror(code), call.paths[0] if call.paths else None)

    return act


@pytest.mark.parametrize("for_ever", [False, True], ids=["once", "from then on"])
@pytest.mark.parametrize("name", ["two outputs", "rerun", "overwrite"])
def test_a_disk_that_fails_at_any_call(tmp_path: Path, name: str, for_ever: bool) -> None:
    scenario = SCENARIOS[name]
    before = prepare(scenario, tmp_path)
    wrong = []
    for call in calls_of(scenario, before, tmp_path):
        world = copy_of(before, tmp_path / "failed")
        committed = commits(world, scenario.job)
        act = failing(call.number, errno.EIO, for_ever)
        result = processes.run(lambda: disturbed(world, scenario.job, act))  # noqa: B023
        wrong += [f"{call}: {line}" for line in after(scenario, world, committed, result)]
        shutil.rmtree(world.root)
    assert wrong == []


@pytest.mark.debian
def test_a_disk_that_fills_at_any_block(tmp_path: Path) -> None:
    """A real one, with ever fewer free blocks, so that it fills at data, entries, records and the note."""
    scenario = SCENARIOS["append beside another batch"]
    before = prepare(scenario, tmp_path)

    def fill(free: int) -> str:
        world = copy_of(before, tmp_path / "disk" / "pipe")
        committed = commits(world, scenario.job)
        room = os.statvfs(world.root)
        ballast = tmp_path / "disk" / "ballast"
        ballast.write_bytes(b"x" * (room.f_bavail - free) * room.f_frsize)
        result = processes.run(lambda: world.run(scenario.job))
        ballast.unlink()
        wrong = list(after(scenario, world, committed, result))
        return "\n".join([result.outcome, *wrong])

    outcomes = set()
    for free in range(16):
        result = with_mounts(tmpfs(tmp_path / "disk"), act=lambda: fill(free))  # noqa: B023
        assert result.outcome == SUCCESS, result
        ended, *wrong = result.said.splitlines()
        assert wrong == [], free
        outcomes.add(ended)
    assert SUCCESS in outcomes
    assert len(outcomes) > 2, outcomes
