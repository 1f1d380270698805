"""Many runs at once: of one batch, of two batches in one folder, of two hosts that wait for a dead run."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from tests.crash import processes
from tests.crash.processes import KILLED, SUCCESS, Child, Result
from tests.crash.scenarios import DAY, MID_LANDING, ORDERS, OTHER, Before
from tests.crash.sweep import quiet, step
from tests.crash.world import Job, World, prepare_data

pytestmark = pytest.mark.slow

ROUNDS = 100
APPEND = Job(DAY, (ORDERS,))
OTHER_APPEND = Job(OTHER, (ORDERS,), version=1)
OVERWRITE = Job(OTHER, (replace(ORDERS, mode="overwrite"),), version=1)


@pytest.fixture
def world(tmp_path: Path) -> World:
    for job in (APPEND, OTHER_APPEND, OVERWRITE):
        prepare_data(job)
    return World(tmp_path / "pipe")


def at_once(*acts: Callable[[], str]) -> list[Result]:
    """Carry out acts in a process each; all begin when the last is ready."""
    ready, tell_ready = os.pipe()
    go, tell_go = os.pipe()

    def begin(act: Callable[[], str]) -> str:
        os.close(tell_go)
        os.write(tell_ready, b"r")
        os.read(go, 1)
        return act()

    children = [Child(lambda act=act: begin(act)) for act in acts]  # type: ignore[misc]
    for _ in children:
        os.read(ready, 1)
    os.close(tell_go)
    results = [child.wait() for child in children]
    for end in (ready, tell_ready, go):
        os.close(end)
    return results


def test_of_fifty_starts_of_one_batch_one_runs(world: World) -> None:
    hold, let_go = os.pipe()

    def start() -> str:
        # The one that holds the lease keeps it until all others have been refused.
        return world.run(APPEND, before_commit=lambda: os.read(hold, 1))

    world.root.mkdir()
    ready, tell_ready = os.pipe()
    go, tell_go = os.pipe()

    def begin() -> str:
        os.close(tell_go)
        os.close(let_go)
        os.write(tell_ready, b"r")
        os.read(go, 1)
        try:
            return start()
        finally:
            os.write(tell_ready, b"e")

    children = [Child(begin) for _ in range(50)]
    heard = b""
    while len(heard) < 50:
        heard += os.read(ready, 50)
    os.close(tell_go)
    while heard.count(b"e") < 49:
        heard += os.read(ready, 50)
    os.close(let_go)
    results = [child.wait() for child in children]
    outcomes = Counter(result.outcome for result in results)
    assert outcomes == {SUCCESS: 1, "RunLeaseHeld": 49}, [r for r in results if r.outcome != SUCCESS][:3]
    won = next(result.said for result in results if result.outcome == SUCCESS)
    for result in results:
        if result.outcome != SUCCESS:
            first, *rest = result.said.splitlines()
            assert f"is still running: run {won[:8]}" in first
            assert "pid " in first
            assert all(line.startswith("  ") for line in rest)
    assert list(quiet(APPEND, {"orders": APPEND.rows(ORDERS)}, {"orders": 2}, world, "the crowd")) == []
    for end in (ready, tell_ready, go, hold):
        os.close(end)


@pytest.mark.timeout(600)
def test_two_batches_append_to_one_new_folder(tmp_path: Path, world: World) -> None:
    rows = {"orders": APPEND.rows(ORDERS) + OTHER_APPEND.rows(ORDERS)}
    for number in range(ROUNDS):
        there = World(tmp_path / f"round-{number}")
        there.root.mkdir()
        results = at_once(lambda: there.run(APPEND), lambda: there.run(OTHER_APPEND))  # noqa: B023
        assert [r.outcome for r in results] == [SUCCESS, SUCCESS], (number, results)
        assert list(quiet(APPEND, rows, {"orders": 4}, there, f"round {number}")) == []


@pytest.mark.timeout(600)
def test_an_overwrite_beside_an_append_leaves_each_whole(tmp_path: Path, world: World) -> None:
    """Each is whole, or fails and is taken back. The append is there, or was replaced whole."""
    seen: Counter[tuple[str, str, int]] = Counter()
    for number in range(ROUNDS):
        there = World(tmp_path / f"round-{number}")
        there.root.mkdir()
        results = at_once(lambda: there.run(APPEND), lambda: there.run(OVERWRITE))  # noqa: B023
        appended, overwrote = (r.outcome for r in results)
        rows = there.rows("orders")
        mine = rows & APPEND.rows(ORDERS)
        new = rows & OVERWRITE.rows(ORDERS)
        seen[appended, overwrote, len(mine)] += 1
        where = (number, results)
        assert rows == mine + new, where
        assert (appended, overwrote) == (SUCCESS, SUCCESS), where
        assert new == OVERWRITE.rows(ORDERS), where
        assert mine in (Counter(), APPEND.rows(ORDERS)), where
        files = {"orders": 2 + len(mine)}
        assert list(quiet(OVERWRITE, {"orders": rows}, files, there, f"round {number}")) == []
    print(dict(seen))


def test_of_two_hosts_that_wait_for_a_dead_run_one_wins(tmp_path: Path, world: World) -> None:
    dead = replace(APPEND, ttl=0.5)
    waiting = replace(APPEND, wait=20.0)
    for number in range(5):
        there = World(tmp_path / f"round-{number}")
        there.root.mkdir()
        died = processes.run(lambda: step(there, Before(dead, MID_LANDING)))  # noqa: B023
        assert died.outcome == KILLED
        results = at_once(*[lambda: there.run(waiting, there.setting(elsewhere=True))] * 2)  # noqa: B023
        assert sorted(r.outcome for r in results) == ["BatchFinished", SUCCESS], results
        assert list(quiet(APPEND, {"orders": APPEND.rows(ORDERS)}, {"orders": 2}, there, "waiting")) == []
