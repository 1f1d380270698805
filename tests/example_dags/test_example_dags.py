"""Every example DAG, by ``dag.test()``: what it says it does, and that doing it again adds nothing."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.dataset as ds
import pytest

from tests.airflowhome import airflow, environment

HERE = Path(__file__).parent
EXAMPLES = HERE.parents[1] / "example_dags"

DAY, NEXT = "2026-11-01T00:00:00+00:00", "2026-11-02T00:00:00+00:00"
RERUN = {"ubunye": {"rerun": True}}

RUNS: list[tuple[str, str, dict[str, Any] | None]] = [
    ("ubunye_quickstart", DAY, None),
    ("ubunye_quickstart", NEXT, None),
    ("ubunye_hourly", "2026-11-01T09:00:00+00:00", None),
    ("ubunye_hourly", "2026-11-01T13:00:00+00:00", None),
    # The quickstart's days, under another DAG: refused, then replaced on purpose, by conf and by param.
    ("ubunye_backfill", DAY, None),
    ("ubunye_backfill", DAY, RERUN),
    ("ubunye_backfill", NEXT, {"ubunye_rerun": True}),
    ("ubunye_taskflow", DAY, None),
    ("ubunye_taskflow", DAY, None),
    ("ubunye_decorator", DAY, None),
    ("ubunye_decorator", DAY, None),
    ("ubunye_regions", DAY, None),
    ("ubunye_regions", DAY, None),
]


@dataclass
class Examples:
    folder: Path
    results: list[dict[str, Any]]

    def of(self, dag_id: str) -> list[dict[str, Any]]:
        return [r for (dag, _, _), r in zip(RUNS, self.results, strict=True) if dag == dag_id]

    def rows(self, output: str, *columns: str) -> Counter[tuple[Any, ...]]:
        table = ds.dataset(self.folder / "lake" / output, partitioning="hive").to_table(columns=list(columns))
        return Counter(tuple(row[c] for c in columns) for row in table.to_pylist())


@pytest.fixture(scope="module")
def examples(tmp_path_factory: pytest.TempPathFactory) -> Examples:
    home = tmp_path_factory.mktemp("airflow")
    folder = tmp_path_factory.mktemp("dags") / "example_dags"
    shutil.copytree(EXAMPLES, folder, ignore=shutil.ignore_patterns("__pycache__", ".ubunye", "lake"))
    env = environment(home, folder)
    airflow(env, "db", "migrate")
    done = subprocess.run(
        [sys.executable, str(HERE / "driver.py"), str(folder), json.dumps(RUNS)],
        env=env,
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-6000:]
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    return Examples(folder, [json.loads(line) for line in lines])


def test_every_example_is_run() -> None:
    assert {dag for dag, _, _ in RUNS} == {path.stem for path in EXAMPLES.glob("*.py")}


def test_quickstart(examples: Examples) -> None:
    for result in examples.of("ubunye_quickstart"):
        assert result["states"] == {"load_orders[-1]": "success"}
        returned = result["xcom"]["load_orders[-1]"]
        assert returned["rows"] == {"orders": 4}
        assert returned["files"] == {"orders": 1}
        assert len(returned["run"]) == 32


def test_hourly_gives_each_hour_its_batch(examples: Examples) -> None:
    assert [r["states"] for r in examples.of("ubunye_hourly")] == [{"load_orders[-1]": "success"}] * 2
    assert examples.rows("orders_by_hour", "hour") == {(9,): 1, (13,): 2}


def test_backfill_replaces_only_when_asked(examples: Examples) -> None:
    refused, *replaced = examples.of("ubunye_backfill")
    assert refused["states"] == {"load_orders[-1]": "failed"}
    assert [r["states"] for r in replaced] == [{"load_orders[-1]": "success"}] * 2
    assert examples.rows("orders", "dt") == {("2026-11-01",): 4, ("2026-11-02",): 4}
    runs = {path.stem.rpartition("-")[2] for path in (examples.folder / "lake" / "orders").rglob("*.parquet")}
    assert runs == {r["xcom"]["load_orders[-1]"]["run"] for r in replaced}


def test_taskflow(examples: Examples) -> None:
    first, again = examples.of("ubunye_taskflow")
    assert first["states"] == {"load_totals[-1]": "success"}
    assert first["xcom"]["load_totals[-1]"]["rows"] == {"totals": 2}
    # Another DAG run of the same day: refused, and no retry is spent on it although there are two.
    assert again["states"] == {"load_totals[-1]": "failed"}
    assert again["tries"] == {"load_totals[-1]": 1}
    assert sum(examples.rows("totals", "dt").values()) == 2


def test_decorator(examples: Examples) -> None:
    first, again = examples.of("ubunye_decorator")
    assert first["states"] == {"load_customers[-1]": "success"}
    assert first["xcom"]["load_customers[-1]"]["rows"] == {"customers": 3}
    assert again["states"] == {"load_customers[-1]": "failed"}
    assert sum(examples.rows("customers", "name").values()) == 3


def test_regions_are_batches_of_their_own(examples: Examples) -> None:
    first, again = examples.of("ubunye_regions")
    assert first["states"] == {
        "regions[-1]": "success",
        "load_region[0]": "success",
        "load_region[1]": "success",
    }
    assert [v["rows"] for k, v in sorted(first["xcom"].items()) if "load" in k] == [{"orders": 2}] * 2
    assert again["states"]["load_region[0]"] == again["states"]["load_region[1]"] == "failed"
    assert examples.rows("orders_by_region", "region") == {("eu",): 2, ("us",): 2}
