"""What is said where the batch, or what is known of it, went elsewhere."""

from __future__ import annotations

import errno
import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_ubunye.core import messages
from airflow_provider_ubunye.core.errors import BatchFinished, LeaseLost, UbunyeError
from airflow_provider_ubunye.core.request import RELEASE
from airflow_provider_ubunye.core.state import BatchState, Ended, Finished
from airflow_provider_ubunye.core.where import LEASE, other_state, setting_for
from tests.core.kit import DAY, Shop

ME, OTHER = "a" * 32, "b" * 32


def test_notes_of_an_error_can_be_set_as_a_whole() -> None:
    error = UbunyeError("what", where="here", hint="this")
    error.add_note("one")
    error.__notes__ = ["two"]
    assert error.__notes__ == ["  Where: here", "  Hint: this", "two"]


@pytest.mark.parametrize(
    ("state", "said"),
    [
        (BatchState(), "the batch's log is gone"),
        (BatchState(number=3, history=(Ended(ME, "", "interrupted"),)), "the batch was taken over"),
        (BatchState(number=3, history=(Ended(OTHER, "", "released"),)), "it was released by hand"),
        (BatchState(number=3, history=(Ended(OTHER, "", "success"),)), "run bbbbbbbb took the batch over"),
    ],
)
def test_who_took_the_batch(state: BatchState, said: str) -> None:
    assert messages.lost_to(state, ME) == said


def test_a_batch_that_the_run_waited_for_finished_needs_nothing_more(shop: Shop) -> None:
    refusal = messages.finished(shop.batch(), Finished(OTHER, "at", ()), ["orders"], "here", waited=True)
    assert isinstance(refusal, BatchFinished)
    assert "run bbbbbbbb finished it while this one waited" in refusal.what


def test_a_lease_lost_while_the_store_is_away_says_what_it_can(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = shop.open()
    lease = run._lease

    def away(*args: Any) -> Any:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(lease.log, "read", away)
    assert lease._taken() == "the batch was taken over"
    monkeypatch.undo()
    run.end()


def test_an_older_note_that_names_no_output_finished_nothing(shop: Shop) -> None:
    shop.store()
    shop.note().parent.mkdir(parents=True, exist_ok=True)
    note = {
        "run_id": "12345678-1234-4234-8234-123456789abc",
        "finished_at": "2026-11-01T00:00:00Z",
        "outputs": {},
    }
    shop.note().write_text(json.dumps(note))
    shop.run({"": "1"})
    assert shop.rows() == ["1"]


def test_the_folders_own_state_that_knows_the_batch_is_pointed_out(shop: Shop, tmp_path: Path) -> None:
    apart = tmp_path / "apart"
    assert other_state(shop.root, setting_for(shop.root, apart), shop.batch()) is None
    shop.run({"": "1"})
    said = other_state(shop.root, setting_for(shop.root, apart), shop.batch(DAY))
    assert said is not None
    assert f"the state used is {apart}" in said
    assert other_state(shop.root, setting_for(shop.root), shop.batch()) is None
    assert other_state(shop.root, setting_for(shop.root, environ={LEASE: "off"}), shop.batch()) is None


def test_a_batch_released_by_hand_at_this_moment_says_so(shop: Shop) -> None:
    run = shop.open(purpose=RELEASE)
    state = run._lease.state
    assert messages.lost_to(state, ME) == "it was released by hand"
    run.end()


def test_a_note_of_a_batch_with_fewer_variables_is_another_batchs(shop: Shop) -> None:
    shop.run({"": "1"})
    shutil.rmtree(next((shop.state / "leases").rglob(shop.batch().key)))
    shop.run({"": "2"}, batch=shop.batch(region="eu"))
    assert shop.rows() == ["1", "2"]


def test_a_lost_lease_is_an_error_of_its_own() -> None:
    assert LeaseLost("lost").exit_code == 4
