"""The finished note: what a person and an older Ubunye read."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from airflow_provider_ubunye.core import note as module
from airflow_provider_ubunye.core.decide import RERUN
from airflow_provider_ubunye.core.errors import BatchFinished
from airflow_provider_ubunye.core.note import write_note
from airflow_provider_ubunye.core.places import Places
from airflow_provider_ubunye.core.run import open_run
from airflow_provider_ubunye.core.state import Claim, Finished, Place, Written
from tests.core.kit import DAY, TASK, Shop, write


def test_the_note_is_at_the_references_path_with_its_fields(shop: Shop) -> None:
    done = shop.run({"region=a": "1"}, batch=shop.batch(hour=13, named_by=["dt"]))
    assert done is not None
    path = shop.state / "leases/shop/daily/load_orders/08e84f1b8a561918.finished.json"
    note = json.loads(path.read_text())
    assert note.pop("finished_at").endswith("Z")
    assert note == {
        "run_id": done.run,
        "task": TASK,
        "outputs": {
            "orders": {"claimed": [f"lake/orders/region=a/part-00000-{done.run}.csv"], "mode": "append"}
        },
        "variables": {"dt": DAY, "hour": "13", "mode": "DEV"},
        "named_by": ["dt"],
        "batch_log": 1,
    }


def test_an_output_elsewhere_is_named_from_the_use_case_folder(shop: Shop, tmp_path: Path) -> None:
    outputs = {"orders": ("append", str(tmp_path / "elsewhere"), "files")}
    run = open_run(shop.setting(), shop.request(outputs=outputs))
    assert run is not None
    with run:
        write(run.output("orders", "append", str(tmp_path / "elsewhere")), {"": "1"})
    note = json.loads(shop.note().read_text())
    assert note["outputs"]["orders"]["claimed"] == [f"../elsewhere/part-00000-{run.id}.csv"]


@pytest.mark.parametrize("usecase", [True, False])
def test_the_note_alone_protects_where_the_log_is_gone(shop: Shop, tmp_path: Path, usecase: bool) -> None:
    outputs = {"orders": ("append", str(tmp_path / "elsewhere"), "files")}
    setting = shop.setting(places=Places(shop.root) if usecase else Places())

    def go(purpose: str = "run") -> None:
        run = open_run(setting, shop.request(outputs=outputs, purpose=purpose))
        assert run is not None
        with run:
            write(run.output("orders", "append", str(tmp_path / "elsewhere")), {"": "1"})

    go()
    shutil.rmtree(shop.note().with_name(shop.batch().key))
    with pytest.raises(BatchFinished):
        go()
    go(RERUN)
    assert len(list((tmp_path / "elsewhere").glob("part-*"))) == 1


def test_what_can_not_be_placed_is_left_out_and_what_is_split_is_put_together(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    claims = (Claim("x.csv", "x.csv"),)
    outputs = tuple(
        Written("o", "files", "append", Place("root", path), claims=claims)
        for path in ("/lake/a", "/lake/b", "not clean")
    )
    lease = shop.open()._lease
    finished = Finished("a" * 32, "2026-11-01T00:00:00Z", outputs)
    write_note(lease, shop.batch(), finished, Places())
    claimed = json.loads(shop.note().read_text())["outputs"]["o"]["claimed"]
    assert claimed == ["/lake/a/x.csv", "/lake/b/x.csv"]

    def other_drive(path: str, start: str) -> str:
        raise ValueError("path is on mount 'D:', start on mount 'C:'")

    monkeypatch.setattr(os.path, "relpath", other_drive)
    write_note(lease, shop.batch(), finished, Places(shop.root))
    assert json.loads(shop.note().read_text())["outputs"]["o"]["claimed"] == claimed
    assert module.note_key(lease.log).endswith("08e84f1b8a561918.finished.json")


def test_an_unnamed_batch_leaves_no_note(shop: Shop) -> None:
    shop.run(batch=shop.batch(dt=None))
    assert not shop.note(shop.batch(dt=None)).exists()
