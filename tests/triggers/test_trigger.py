"""The trigger, on a real state folder and real processes."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_ubunye.api import batch_run
from airflow_provider_ubunye.core.batch import Batch
from airflow_provider_ubunye.triggers.ubunye import UbunyeLeaseTrigger, waits_for

TASK, DT = "shop/daily/load", "2026-11-01"

HOLDER = f"""
import sys, time
from airflow_provider_ubunye.api import batch_run
with batch_run({TASK!r}, dt={DT!r}, state=sys.argv[1]):
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def holder(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        yield process
        process.kill()


def trigger(state: Path, **how: Any) -> UbunyeLeaseTrigger:
    """As the triggerer makes it: from what was serialised."""
    path, kwargs = waits_for(
        Batch.of(TASK, {"dt": DT, "mode": "dev"}),
        str(state),
        **{"poll_interval": 0.05, "least_wait": 0.0, **how},
    ).serialize()
    assert path == "airflow_provider_ubunye.triggers.ubunye.UbunyeLeaseTrigger"
    return UbunyeLeaseTrigger(**kwargs)


async def fired(waiting: UbunyeLeaseTrigger, within: float = 30) -> Any:
    async with asyncio.timeout(within):
        async for event in waiting.run():
            return event.payload
    raise AssertionError("ended without an event")


def test_a_free_batch(tmp_path: Path) -> None:
    with batch_run(TASK, dt=DT, state=tmp_path):
        pass
    assert asyncio.run(fired(trigger(tmp_path))) == {"status": "free"}


def test_looking_makes_nothing(tmp_path: Path) -> None:
    assert asyncio.run(fired(trigger(tmp_path / "none"))) == {"status": "free"}
    assert not (tmp_path / "none").exists()


def test_it_waits_for_a_living_run(tmp_path: Path, holder: subprocess.Popen[str]) -> None:
    async def scene() -> Any:
        waiting = asyncio.create_task(fired(trigger(tmp_path)))
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(1):
                await asyncio.shield(waiting)
        assert holder.stdin is not None
        holder.stdin.close()
        return await waiting

    assert asyncio.run(scene()) == {"status": "free"}


def test_a_dead_run_holds_nobody_up(tmp_path: Path, holder: subprocess.Popen[str]) -> None:
    holder.kill()
    holder.wait()
    assert asyncio.run(fired(trigger(tmp_path))) == {"status": "free"}


def test_its_time_is_up(tmp_path: Path, holder: subprocess.Popen[str]) -> None:
    told = asyncio.run(fired(trigger(tmp_path, end=time.time() + 0.3)))
    assert told["status"] == "timeout"
    assert f"{TASK} dt={DT} is still running" in told["message"]


def test_a_state_that_can_not_be_read_is_left_to_the_run(tmp_path: Path) -> None:
    key = Batch.of(TASK, {"dt": DT}).key
    log = tmp_path / "leases" / TASK / key
    log.mkdir(parents=True)
    (log / "00000001.json").write_text("{")
    assert asyncio.run(fired(trigger(tmp_path))) == {"status": "free"}


def test_it_does_not_fire_before_the_scheduler_has_heard_of_the_deferral(tmp_path: Path) -> None:
    assert trigger(tmp_path).least_wait == 0
    assert waits_for(Batch.of(TASK, {"dt": DT}), str(tmp_path)).least_wait == 15
    began = time.monotonic()
    asyncio.run(fired(trigger(tmp_path, least_wait=0.5)))
    assert time.monotonic() - began >= 0.5
