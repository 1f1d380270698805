"""Waiting for a batch, one look at a time."""

from __future__ import annotations

from typing import Any

from airflow_provider_ubunye.core.waiting import Waiting
from tests.core.kit import Shop, dead_owner


def waiting(shop: Shop, **how: Any) -> Waiting:
    return Waiting(shop.setting(), shop.request(**how))


def test_a_free_batch_and_a_finished_one(shop: Shop) -> None:
    looks = waiting(shop)
    assert looks.held() is None
    shop.run()
    assert looks.held() is None


def test_a_living_run(shop: Shop) -> None:
    looks = waiting(shop)
    with shop.open() as run:
        held = looks.held()
        assert held is not None
        assert run.id[:8] in held.what
        # Looking took nothing: the run goes on.
    assert looks.held() is None


def test_a_dead_run(shop: Shop) -> None:
    shop.die("rename", owner=dead_owner())
    assert waiting(shop).held() is None


def test_a_run_under_another_spelling_of_the_batch(shop: Shop) -> None:
    with shop.open(batch=shop.batch(region="eu")):
        held = waiting(shop, batch=shop.batch(region="eu", named_by=["dt"])).held()
        assert held is not None
        assert "under another spelling" in held.what


def test_a_run_of_an_older_ubunye(shop: Shop) -> None:
    batch = shop.batch()
    lease = shop.state / "leases" / batch.task / f"{batch.key}.json"
    lease.parent.mkdir(parents=True)
    lease.touch()
    held = waiting(shop).held()
    assert held is not None
    assert "an older Ubunye's run" in held.what
