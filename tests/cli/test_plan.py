"""``ubunye plan``: what a run would do, and not a byte written."""

from __future__ import annotations

from pathlib import Path

import pytest

from airflow_provider_ubunye.api import batch_run
from tests.cli.kit import DAY, Answer, Shop

PARTS = """\
CONFIG:
  inputs:
    orders: {format: csv, path: data/orders.csv}
  outputs:
    kept: {format: parquet, path: output/kept, mode: overwrite_partitions, partition_by: [dt]}
"""
PARTS_CODE = (
    "def transform(sources, context):\n    return {'kept': sources['orders'].assign(dt=context.dt)}\n"
)


def plan(shop: Shop, *more: str, tasks: tuple[str, ...] = ("load",)) -> Answer:
    """Plan, and see that nothing was written."""
    before = shop.everything()
    answer = shop.do("plan", *more, tasks=tasks)
    assert shop.everything() == before
    return answer


def test_a_new_batch_would_run(shop: Shop) -> None:
    answer = plan(shop, "-dt", DAY)
    assert answer.code == 0
    assert "would run" in answer.out
    assert "kept: append to" in answer.out
    assert f"  State: {shop.state}\n" in answer.out
    assert not shop.state.exists()


def test_a_batch_without_a_name(shop: Shop) -> None:
    answer = plan(shop)
    assert answer.code == 0
    assert "no batch" in answer.out


def test_a_finished_batch(shop: Shop) -> None:
    shop.do("run", "-dt", DAY)
    refused = plan(shop, "-dt", DAY)
    assert refused.code == 1
    assert "would be refused" in refused.out
    assert "already finished this batch" in refused.out

    told = plan(shop, "-dt", DAY, "--rerun", "--json").json
    assert told["would"] == "replace"
    (landed,) = shop.files()
    assert [Path(p).name for p in told["outputs"][0]["replaces"]] == [landed]

    skipped = plan(shop, "-dt", DAY, "--resume")
    assert skipped.code == 0
    assert "[SKIP]" in skipped.out

    (shop.root / "shop/daily/load/output/kept" / landed).unlink()
    gone = plan(shop, "-dt", DAY, "--rerun")
    assert "1 file of run" in gone.out
    assert f"check {shop.root}/shop/daily/load/output/kept" in gone.out
    assert f"misses {shop.root}" in gone.out


def test_a_held_batch_names_its_holder(shop: Shop) -> None:
    with batch_run("shop/daily/load", dt=DAY, usecase_dir=shop.root) as run:
        answer = plan(shop, "-dt", DAY)
        assert answer.code == 1
        assert f"still running: run {run.id[:8]}" in answer.out
        told = plan(shop, "-dt", DAY, "--json").json
        assert (told["would"], told["reason"], told["exit_code"]) == ("refuse", "held", 1)


def test_a_dead_run_would_be_taken_over(shop: Shop) -> None:
    with shop.running("-dt", DAY) as process:
        process.kill()
        process.communicate()
    shop.task()
    answer = plan(shop, "-dt", DAY)
    assert answer.code == 0
    assert "first take over from run" in answer.out
    told = plan(shop, "-dt", DAY, "--json").json
    run = shop.do("run", "-dt", DAY, "--json").json
    assert run["status"] == "ok"
    assert run["over"] == told["over"]


def test_what_an_overwrite_would_replace(shop: Shop) -> None:
    shop.task("sums", mode="overwrite")
    names = ("sums",)
    shop.do("run", "-dt", DAY, tasks=names)
    answer = plan(shop, "-dt", "2026-11-02", tasks=names)
    assert answer.code == 0
    assert "1 file to overwrite" in answer.out
    assert f"/{shop.files('sums')[0]}" in answer.out


def test_partitions_of_other_days_are_not_counted(shop: Shop) -> None:
    shop.task("days", config=PARTS, code=PARTS_CODE)
    names = ("days",)
    for day in (DAY, "2026-11-02"):
        assert shop.do("run", "-dt", day, tasks=names).code == 0
    told = plan(shop, "-dt", DAY, "--json", tasks=names).json
    assert [f"dt={DAY}" in path for path in told["outputs"][0]["replaces"]] == [True]


def test_outputs_with_data_in_the_way(shop: Shop) -> None:
    for name, mode in (("ignoring", "ignore"), ("careful", "errorifexists")):
        shop.task(name, mode=mode)
        assert "which is empty" in plan(shop, "-dt", DAY, tasks=(name,)).out
        shop.do("run", "-dt", DAY, tasks=(name,))
    answer = plan(shop, "-dt", "2026-11-02", tasks=("ignoring",))
    assert answer.code == 0
    assert "[SKIP]" in answer.out
    assert plan(shop, "-dt", "2026-11-02", tasks=("careful",)).code == 1


@pytest.mark.parametrize("there", ["file", "damaged"])
def test_a_state_that_can_not_be_used(shop: Shop, there: str) -> None:
    shop.do("run", "-dt", DAY)
    state = shop.root / "elsewhere"
    if there == "file":
        state.write_text("")
        answer = plan(shop, "-dt", DAY, "--state", str(state))
        assert answer.code == 1
    else:
        (entry,) = (shop.state / "leases").rglob("0*.json")
        entry.write_text("{")
        answer = plan(shop, "-dt", DAY)
        assert answer.code == 5
    assert len(answer.errors) == 1


def test_several_tasks(shop: Shop) -> None:
    shop.task("sums", mode="overwrite")
    shop.do("run", "-dt", DAY)
    told = plan(shop, "-dt", DAY, "--all", "--json", tasks=())
    assert told.code == 1
    assert [t["would"] for t in told.json] == ["refuse", "run"]
