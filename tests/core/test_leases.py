"""Looking at the leases of a store, and releasing one by hand."""

from __future__ import annotations

import dataclasses
import errno
import logging
import os
from collections.abc import Callable
from typing import Any

import pytest

from airflow_provider_ubunye.core.errors import (
    BatchFinished,
    LeaseLost,
    NotTakenBack,
    RunLeaseHeld,
    StateUnreadable,
    UsageError,
)
from airflow_provider_ubunye.core.judge import Verdict
from airflow_provider_ubunye.core.leases import batch_of, find, leases, look, release
from airflow_provider_ubunye.core.run import Run
from airflow_provider_ubunye.core.store import StoreUnusable
from airflow_provider_ubunye.core.testing import intercepted
from tests.core.kit import OLD, TASK, Shop, elsewhere


def entry(shop: Shop, number: int) -> str:
    return f"create leases/{TASK}/{shop.batch().key}/{number:08d}"


def test_every_batch_is_listed_by_task_and_key(shop: Shop) -> None:
    assert list(leases(shop.setting())) == []
    shop.run()
    dead = shop.die("rename", batch=shop.batch("2026-11-02"))
    silent = shop.die("rename", batch=shop.batch("2026-11-03"), owner=elsewhere())
    (shop.state / "leases" / "stray.json").write_text("{}")
    found = {info.state.variables["dt"]: info for info in leases(shop.setting())}
    assert sorted(found) == ["2026-11-01", "2026-11-02", "2026-11-03"]
    finished, died, held = (found[day] for day in sorted(found))
    assert (finished.open, finished.verdict) == (False, None)
    assert (died.open, died.verdict, died.runs) == (True, Verdict.DEAD, [dead])
    assert (held.verdict, held.runs) == (Verdict.ALIVE, [silent])
    assert {info.task for info in found.values()} == {TASK}


def test_a_log_that_can_not_be_read_is_in_the_list_and_named(shop: Shop) -> None:
    shop.run()
    shop.log_files()[0].write_text("{")
    (info,) = leases(shop.setting())
    assert info.open
    assert info.problem is not None
    assert "JSON" in info.problem
    with pytest.raises(StateUnreadable, match="JSON"):
        release(shop.setting(), info)


def test_a_store_that_does_not_answer_is_refused_and_one_without_a_clock_can_not_tell(shop: Shop) -> None:
    shop.die("rename", owner=elsewhere())

    def refuse(*acts: str) -> Callable[[str, tuple[Any, ...], Callable[[], Any]], Any]:
        def act(name: str, args: tuple[Any, ...], real: Callable[[], Any]) -> Any:
            if name in acts:
                raise OSError(errno.EROFS, os.strerror(errno.EROFS))
            return real()

        return act

    store = shop.store()
    with pytest.raises(StoreUnusable):
        list(leases(shop.setting(store=intercepted(store, refuse("list")))))
    (info,) = leases(shop.setting(store=intercepted(store, refuse("age"))))
    assert (info.verdict, info.evidence) == (Verdict.UNKNOWN, None)
    (info,) = leases(shop.setting(store=intercepted(store, refuse("read"))))
    assert info.problem is not None


def test_a_batch_is_found_by_the_id_that_a_refusal_prints(shop: Shop) -> None:
    """Field case 37."""
    dead = shop.die("rename")
    for given in (dead, dead[:8], dead[:8].upper(), f" {dead[:6]} ", shop.batch().key, shop.batch().key[:5]):
        assert find(shop.setting(), given).key == shop.batch().key
    for given, says in (
        ("abc", "no run id"),
        ("", "no run id"),
        ("../x", "no run id"),
        ("0" * 8, "held by, or was finished last by, run 00000000"),
    ):
        with pytest.raises(UsageError, match=says):
            find(shop.setting(), given)


def test_an_id_that_means_two_batches_is_refused(shop: Shop) -> None:
    run = "abcd" * 8
    shop.die("rename", run=run)
    shop.die("rename", batch=shop.batch("2026-11-02"), run="abcd" + "0" * 28)
    with pytest.raises(UsageError, match="means 2 batches"):
        find(shop.setting(), "abcd")
    assert find(shop.setting(), "abcda").key == shop.batch().key


def test_releasing_a_dead_run_takes_its_claims_back(shop: Shop) -> None:
    """Field case 37."""
    dead = shop.die(entry(shop, 3), {"": "dead"})
    assert shop.rows() == ["dead"]
    said = release(shop.setting(), find(shop.setting(), dead[:8]))
    assert said == f"{shop.batch().label}: released from run {dead[:8]}, which is dead; 1 file taken back."
    assert (shop.rows(), shop.debris()) == ([], [])
    info = look(shop.setting(), TASK, shop.batch().key)
    assert not info.open
    assert "nobody holds this batch" in release(shop.setting(), info)
    assert shop.run() is not None


def test_releasing_a_run_that_had_committed_completes_it(shop: Shop) -> None:
    dead = shop.die(entry(shop, 4), {"": "1"})
    said = release(shop.setting(), find(shop.setting(), dead))
    assert said.endswith(f"run {dead[:8]} had committed; what it left is completed.")
    assert (shop.rows(), shop.debris()) == (["1"], [])
    with pytest.raises(BatchFinished):
        shop.run()


def test_a_live_run_is_released_by_force_alone_and_fenced(
    shop: Shop, caplog: pytest.LogCaptureFixture
) -> None:
    """Field case 37."""

    def free(run: Run) -> None:
        info = find(shop.setting(), run.id[:8])
        with pytest.raises(RunLeaseHeld, match="still running"):
            release(shop.setting(), info)
        said = release(shop.setting(), info, force=True)
        assert said.endswith(f"shut out run {run.id[:8]}, which had not committed; 0 files taken back.")

    caplog.set_level(logging.INFO)
    with pytest.raises(LeaseLost, match="lost its lease: it was released by hand"):
        shop.run({"": "fenced"}, meanwhile=free)
    assert "died before it committed" not in caplog.text
    assert (shop.rows(), shop.debris()) == ([], [])


def test_what_a_batch_owes_is_removed_by_a_release_once_it_can_be(shop: Shop) -> None:
    shop.die(entry(shop, 3), {"": "dead"})

    def refuse(name: str, args: tuple[Any, ...], act: Callable[[], Any]) -> Any:
        if name == "remove" and "/lake/orders/part" in str(args[0]):
            raise PermissionError(errno.EACCES, "in use", args[0])
        return act()

    setting = shop.setting()
    stuck = dataclasses.replace(setting, disk=intercepted(setting.disk, refuse))
    (info,) = leases(setting)
    with pytest.raises(NotTakenBack, match="in use"):
        release(stuck, info)
    (info,) = leases(setting)
    assert (info.open, info.state.holder) == (True, None)
    assert info.runs[0] == info.state.debts[0].run
    assert release(setting, info).endswith("1 owed file removed.")
    assert shop.rows() == []


def test_a_log_that_says_another_batchs_variables_is_refused(shop: Shop) -> None:
    shop.die("rename")
    (info,) = leases(shop.setting())
    assert batch_of(shop.setting(), info).key == shop.batch().key
    forged = dataclasses.replace(info, state=dataclasses.replace(info.state, variables={"dt": "2026-12-24"}))
    with pytest.raises(StateUnreadable, match="another batch"):
        batch_of(shop.setting(), forged)


@pytest.mark.parametrize("content", [b"", b"[]", b'{"run_id": "f4eda558-165e-4c93-a270-e89ccdc964cc"}'])
def test_an_older_ubunyes_lease_is_listed_and_left_to_the_batchs_next_run(shop: Shop, content: bytes) -> None:
    batch = shop.batch()
    lease = shop.state / "leases" / TASK / f"{batch.key}.json"
    lease.parent.mkdir(parents=True)
    lease.write_bytes(content)
    os.utime(lease, (OLD, OLD))
    (info,) = leases(shop.setting())
    assert (info.key, info.open, info.older is not None) == (batch.key, True, True)
    with pytest.raises(UsageError, match="older Ubunye's"):
        release(shop.setting(), info)
    if b"run_id" in content:
        assert find(shop.setting(), "f4eda558").key == batch.key

    def refuse(name: str, args: tuple[Any, ...], act: Callable[[], Any]) -> Any:
        if name == "read" and str(args[0]).endswith(f"{batch.key}.json"):
            raise PermissionError(errno.EACCES, "no right", args[0])
        return act()

    (info,) = leases(shop.setting(store=intercepted(shop.store(), refuse)))
    assert (info.open, info.older) == (True, {})


def test_what_only_looks_like_an_entry_is_no_batch_and_a_folder_in_its_place_is_named(shop: Shop) -> None:
    leases_folder = shop.state / "leases" / TASK
    (leases_folder / ("0" * 16)).mkdir(parents=True)
    (leases_folder / ("0" * 16) / "٠٠٠٠٠٠٠١.json").write_text("{}")
    (leases_folder / ("1" * 16) / "00000001.json").mkdir(parents=True)
    (leases_folder / ("1" * 16) / "00000001.json" / "x").write_text("")
    (leases_folder / f"{'2' * 16}.json").write_text("[" * 200_000)
    found = list(leases(shop.setting()))
    assert [(info.key, info.older) for info in found] == [("1" * 16, None), ("2" * 16, {})]
    assert found[0].problem is not None
    assert "a folder stands where" in found[0].problem
