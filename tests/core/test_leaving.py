"""A run that broke off frees its batch, in whatever state it left it."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from typing import Any

import pytest

from airflow_provider_ubunye.core import leaving
from airflow_provider_ubunye.core import run as run_module
from airflow_provider_ubunye.core.errors import BatchFinished
from airflow_provider_ubunye.core.leaving import leave
from airflow_provider_ubunye.core.log import BatchLog, Superseded
from airflow_provider_ubunye.core.state import BatchState
from airflow_provider_ubunye.core.testing import intercepted
from tests.core.kit import Shop


def broken(*args: Any) -> Any:
    raise OSError(errno.EIO, os.strerror(errno.EIO))


def log_of(shop: Shop) -> BatchLog:
    batch = shop.batch()
    return shop.setting().log(batch.key, batch.task)


def test_a_run_that_can_not_take_itself_back_leaves_its_files_owed(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(run: Any) -> None:
        raise ValueError("own")

    with monkeypatch.context() as patch:
        patch.setattr(run_module, "take_back", broken)
        with pytest.raises(ValueError, match="own"):
            shop.run({"": "1"}, meanwhile=fail)
    state = log_of(shop).read()
    assert state.holder is None
    assert len(state.debts) == 1
    assert len(state.unclosed) == 1
    shop.run({"": "2"})
    assert (shop.rows(), shop.debris()) == (["2"], [])


def test_a_run_that_can_not_settle_after_its_commit_leaves_that_to_the_next(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(run_module, "settle", broken)
        shop.run({"": "1"})
    state = log_of(shop).read()
    assert state.holder is None
    assert state.finished is not None
    assert state.unclosed == (state.finished.run,)
    assert not shop.note().exists()
    with pytest.raises(BatchFinished):
        shop.run({"": "2"})
    assert shop.note().exists()
    assert (shop.rows(), shop.debris()) == (["1"], [])


def test_leaving_looks_again_when_another_entry_came_first(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = shop.open()
    real: Callable[..., BatchState] = BatchLog.append
    lost: list[str] = []

    def append(self: BatchLog, state: BatchState, by: str, kind: str, body: Any = None) -> BatchState:
        if not lost:
            lost.append(kind)
            raise Superseded("another entry")
        return real(self, state, by, kind, body)

    monkeypatch.setattr(BatchLog, "append", append)
    run.end()
    assert lost == ["released"]
    assert log_of(shop).read().holder is None


def test_leaving_ends_where_others_always_come_first(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    run = shop.open()
    asked: list[int] = []

    def append(*args: Any) -> None:
        asked.append(1)
        raise Superseded("another entry")

    monkeypatch.setattr(leaving, "_leave", append)
    leave(log_of(shop), run.id)
    assert len(asked) == 3
    monkeypatch.undo()
    run.end()


def test_leaving_what_another_run_holds_changes_nothing(shop: Shop) -> None:
    run = shop.open()
    before = log_of(shop).read()
    leave(log_of(shop), "0" * 32)
    assert log_of(shop).read() == before
    run.end()


def test_a_store_that_does_not_answer_is_left_alone(shop: Shop) -> None:
    run = shop.open()
    log = log_of(shop)
    log.store = intercepted(log.store, broken)
    leave(log, run.id)
    assert log_of(shop).read().holder is not None
    run.end()


def test_a_run_stopped_while_it_prunes_has_nothing_else_to_do(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = BatchLog.prune
    asked: list[int] = []

    def prune(self: BatchLog, state: BatchState) -> None:
        asked.append(1)
        if len(asked) == 1:
            raise KeyboardInterrupt
        real(self, state)

    monkeypatch.setattr(BatchLog, "prune", prune)
    done = shop.run({"": "1"})
    assert done is not None
    assert done.stopped
    assert len(asked) == 2
    assert (shop.rows(), shop.debris()) == (["1"], [])
