"""The use case folder at another path, outputs on other file systems, folders with a group or ACL of their own."""

from __future__ import annotations

import os
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from tests.crash import processes
from tests.crash.namespaces import bind, in_new_pids, tmpfs, with_mounts
from tests.crash.processes import KILLED, SUCCESS
from tests.crash.scenarios import DAY, MID_LANDING, MID_REPLACING, ORDERS, OTHER, Before
from tests.crash.sweep import quiet, step
from tests.crash.world import Job, World, prepare_data, rerun

pytestmark = pytest.mark.debian

APPEND = Job(DAY, (ORDERS,))
OTHER_APPEND = Job(OTHER, (ORDERS,), version=1)
FILES = {"orders": 2}


@pytest.fixture
def world(tmp_path: Path) -> World:
    for job in (APPEND, rerun(APPEND, 1), rerun(APPEND, 2), OTHER_APPEND):
        prepare_data(job)
    world = World(tmp_path / "pipe")
    world.root.mkdir()
    return world


def wrong(world: World, job: Job, files: dict[str, int] = FILES) -> list[str]:
    return list(quiet(job, {"orders": job.rows(ORDERS)}, files, world, "the run"))


def test_a_dead_run_is_taken_back_through_another_mount(world: World, tmp_path: Path) -> None:
    died = processes.run(lambda: step(world, Before(APPEND, MID_LANDING)))
    assert died.outcome == KILLED
    there = World(tmp_path / "elsewhere" / "deeper")
    result = with_mounts(bind(world.root, there.root), act=lambda: there.run(APPEND))
    assert result.outcome == SUCCESS, result
    assert wrong(world, APPEND) == []


def test_a_rerun_replaces_through_another_mount(world: World, tmp_path: Path) -> None:
    assert processes.run(lambda: world.run(APPEND)).outcome == SUCCESS
    there = World(tmp_path / "elsewhere")
    mount = bind(world.root, there.root)
    result = with_mounts(mount, act=lambda: there.run(rerun(APPEND, 1)))
    assert result.outcome == SUCCESS, result
    assert wrong(world, rerun(APPEND, 1)) == []
    dies = Before(rerun(APPEND, 2), MID_REPLACING)
    result = with_mounts(mount, act=lambda: step(there, dies))
    assert result.outcome == KILLED
    refused = processes.run(lambda: world.run(APPEND))
    assert refused.outcome == "BatchFinished", refused
    assert wrong(world, rerun(APPEND, 2)) == []


@pytest.mark.parametrize("kind", ["another file system", "a bind mount"])
def test_an_output_that_a_rename_does_not_reach(world: World, tmp_path: Path, kind: str) -> None:
    lake = world.root / "lake" / "orders"
    other = tmp_path / "other"
    other.mkdir()
    mount = bind(other, lake) if kind == "a bind mount" else tmpfs(lake)

    def killed_and_run_again() -> str:
        died = processes.run(lambda: step(world, Before(APPEND, MID_LANDING)))
        assert died.outcome == KILLED, died
        staged = [path.name for path in lake.glob("_ubunye-*/*/*.parquet")]
        assert len(staged) == 1, "staged inside the output, one of two has landed"
        assert world.rows("orders").total() == 2
        for job, right in ((APPEND, SUCCESS), (APPEND, "BatchFinished"), (rerun(APPEND, 1), SUCCESS)):
            result = processes.run(lambda: world.run(job))  # noqa: B023
            assert result.outcome == right, result
        return "\n".join(wrong(world, rerun(APPEND, 1)))

    result = with_mounts(mount, act=killed_and_run_again)
    assert (result.outcome, result.said) == (SUCCESS, ""), result


def test_files_get_the_group_of_a_setgid_folder(world: World) -> None:
    lake = world.root / "lake" / "orders"
    lake.mkdir(parents=True)
    os.chown(lake, -1, 4711)
    lake.chmod(0o2775)
    assert processes.run(lambda: world.run(APPEND)).outcome == SUCCESS
    assert wrong(world, APPEND) == []
    assert {path.stat().st_gid for path in lake.iterdir()} == {4711}


def test_files_get_the_acl_of_their_folder(world: World) -> None:
    lake = world.root / "lake" / "orders"
    lake.mkdir(parents=True)
    subprocess.run(["setfacl", "-d", "-m", "u:4711:rw", str(lake)], check=True)
    assert processes.run(lambda: world.run(APPEND)).outcome == SUCCESS
    assert wrong(world, APPEND) == []
    for path in lake.iterdir():
        shown = subprocess.run(
            ["getfacl", "-np", str(path)], check=True, capture_output=True, text=True
        ).stdout
        assert "user:4711:rw" in shown


def test_two_containers_with_one_host_name_leave_a_live_run_alone(world: World, tmp_path: Path) -> None:
    """Field case 3: the pid of the first means nothing in the second, so only its heartbeat counts."""
    held, tell_held = os.pipe()
    hold, let_go = os.pipe()
    job = replace(APPEND, ttl=1.5)

    def first() -> str:
        return world.run(job, before_commit=lambda: (os.write(tell_held, b"h"), os.read(hold, 1)))

    child = processes.Child(lambda: in_new_pids(first))
    os.close(tell_held)
    assert os.read(held, 1) == b"h"
    # Longer than its ttl: its heartbeat alone keeps it.
    second = processes.run(lambda: in_new_pids(lambda: world.run(replace(APPEND, wait=4.0))))
    assert second.outcome == "RunLeaseHeld", second
    os.write(let_go, b"g")
    first_result = child.wait()
    assert first_result.outcome == SUCCESS, first_result
    assert wrong(world, APPEND) == []
    for end in (held, hold, let_go):
        os.close(end)
