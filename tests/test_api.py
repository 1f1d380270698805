"""What a call or a config is refused for, before anything is written."""

from __future__ import annotations

import decimal
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from airflow_provider_ubunye.api import BatchRun, batch_run, run_task
from airflow_provider_ubunye.core.errors import BatchFinished, ConfigError, UsageError
from airflow_provider_ubunye.taskrun import TaskRun

FRAME = pd.DataFrame({"order_id": [1, 2], "region": ["north", "south"]})
TASK = "shop/daily/load_orders"


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("s3://bucket/orders", r"^the output's path: object storage \(s3://\) isn't built yet"),
        (Path("s3://bucket/orders"), r"object storage \(s3://\)"),
        ("hdfs://name/orders", "hdfs:// isn't built yet"),
        ("~/orders", "'~' is not expanded"),
        ("", "the output's path is empty"),
    ],
)
def test_a_path_that_is_on_no_disk_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: Any, said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError, match=said), batch_run(TASK, dt="2026-11-01", state="state") as run:
        run.append(FRAME, path)
    assert [p.name for p in tmp_path.iterdir()] == ["state"]


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ({"format": "delta"}, "^the output's format: the format 'delta' isn't built yet"),
        ({"format": "parqet"}, "there is no format 'parqet'; did you mean 'parquet'?"),
        ({"mode": "apend"}, "there is no mode 'apend'"),
        ({"mode": "overwrite_partitions"}, "overwrite_partitions needs partition_by"),
        ({"partition_by": "region"}, "partition_by is a list of names, not str"),
    ],
)
def test_what_no_write_can_do(tmp_path: Path, how: dict[str, Any], said: str) -> None:
    with (
        pytest.raises(UsageError, match=said),
        batch_run(TASK, dt="2026-11-01", state=tmp_path / "state") as run,
    ):
        run.write(FRAME, tmp_path / "orders", **{"mode": "append", **how})
    assert not (tmp_path / "orders").exists()


def test_the_modes_by_name_write_as_write_does(tmp_path: Path) -> None:
    with batch_run(TASK, dt="2026-11-01", state=tmp_path / "state") as run:
        assert run.append(FRAME, tmp_path / "a", format="CSV", options={"sep": ";"}) == 2
        assert run.overwrite(FRAME, f"file://{tmp_path}/b", partition_by=["region"], name="other") == 2
        assert run.overwrite_partitions(FRAME, tmp_path / "c", partition_by=["region"]) == 2
    assert run.outcome.files == {"a": 1, "other": 2, "c": 2}
    assert next((tmp_path / "a").iterdir()).read_text() == "order_id;region\n1;north\n2;south\n"
    with pytest.raises(BatchFinished), batch_run(TASK, dt="2026-11-01", state=tmp_path / "state"):
        pass


def test_partitions_to_replace_are_needed(tmp_path: Path) -> None:
    with (
        pytest.raises(UsageError, match="overwrite_partitions needs partition_by"),
        batch_run(TASK, dt="2026-11-01", state=tmp_path / "state") as run,
    ):
        run.overwrite_partitions(FRAME, tmp_path / "orders")


@pytest.mark.parametrize("method", [BatchRun.append, BatchRun.overwrite, BatchRun.overwrite_partitions])
def test_a_method_named_after_a_mode_takes_none(method: Any) -> None:
    with pytest.raises(TypeError, match=rf"{method.__name__}\(\) got an unexpected keyword argument 'mode'"):
        method(None, FRAME, "orders", mode="append")


def task(tmp_path: Path, options: str) -> TaskRun:
    folder = tmp_path / TASK
    folder.mkdir(parents=True)
    (folder / "config.yaml").write_text(
        "CONFIG:\n"
        "  inputs:\n    orders: {format: csv, path: no/such.csv}\n"
        f"  outputs:\n    kept: {{format: csv, path: kept, options: {options}}}\n"
    )
    (folder / "transformations.py").write_text("def transform(sources): return {}\n")
    return TaskRun(TASK, usecase_dir=str(tmp_path), variables={"dt": "2026-11-01"})


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ("{hedaer: true}", "option 'hedaer' is not understood for writing csv; did you mean 'header'?"),
        ("{inferSchema: true}", "option 'inferSchema' is for reading csv, not for writing it"),
        ("{sep: '||'}", "option 'sep' for csv is '||', must be one ASCII character"),
        ("{dateFormat: QQ}", "must be a date pattern: 'Q' is not understood"),
        ("{hedaer: 'secret://env/NOPE'}", "option 'hedaer' is not understood"),
    ],
)
def test_options_are_checked_with_the_config(tmp_path: Path, options: str, said: str) -> None:
    """Not when the inputs have been read: exit code 2, and no lease was taken."""
    asked = task(tmp_path, options)
    with pytest.raises(ConfigError, match=r"^CONFIG\.outputs\.kept\.options: option") as error:
        asked.run()
    assert said in error.value.what
    assert str(error.value.where).endswith("config.yaml")
    assert not (tmp_path / ".ubunye").exists()


def test_a_secret_option_is_checked_by_name_only(tmp_path: Path) -> None:
    assert task(tmp_path, "{sep: 'secret://env/NOPE'}").config.outputs[0].options


def test_options_are_checked_without_what_is_heavy(tmp_path: Path) -> None:
    task(tmp_path, "{sep: ';'}")
    code = (
        "import sys; from airflow_provider_ubunye.taskrun import TaskRun;"
        f"TaskRun({TASK!r}, usecase_dir={str(tmp_path)!r}, looking=True).request;"
        "assert 'airflow_provider_ubunye.engines.pandas.options' in sys.modules;"
        "print([m for m in ('pandas', 'pyarrow', 'numpy', 'pydantic', 'airflow') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ({"task": 5}, "^the task is text, not int"),
        ({"wait": "soon"}, "^wait 'soon' is no time span"),
        ({"wait": float("nan")}, "^wait is a number of seconds from 0 to a year, not nan"),
        ({"wait": float("inf")}, "^wait is a number"),
        ({"wait": -1}, "^wait is a number"),
        ({"wait": True}, "^wait is a number of seconds, or a time span"),
        ({"wait": [5]}, "^wait is a number of seconds, or a time span"),
        ({"takeover_seconds": {}}, "^takeover_seconds is a number"),
        ({"takeover_seconds": 0}, "^the time to takeover must be"),
        ({"variables": ["region"]}, "^variables is a mapping, not list"),
        ({"variables": {1: "eu"}}, "^each name in variables is text, not int"),
        ({"variables": {"dt": "2026-11-02"}}, "^dt is given twice"),
        ({"dt": pd.NaT}, "^dt is NaT, which is a missing value"),
        ({"variables": {"x": float("nan")}}, "^x is nan"),
        ({"variables": {"x": decimal.Decimal("sNaN")}}, "^x is sNaN"),
        ({"variables": {"x": pd.NA}}, "^the value of x is a NAType"),
        ({"state": b"state"}, "^state is a path, not bytes"),
        ({"state": 5}, "^state is a path, not int"),
        ({"usecase_dir": 5}, "^usecase_dir is a path"),
        ({"lineage_dir": 5}, "^lineage_dir is a path"),
        ({"attempt": {"x": object()}}, "^attempt holds something"),
        ({"attempt": {"x": float("nan")}}, "^attempt holds something"),
        ({"attempt": "x" * 100}, r"^attempt is a mapping, not str \('x+\.\.\.\)$"),
    ],
)
@pytest.mark.parametrize("call", [batch_run, run_task], ids=["batch_run", "run_task"])
def test_an_argument_of_the_wrong_kind_is_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: Any, how: dict[str, Any], said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    task_folder(tmp_path)
    given = {"task": TASK, "dt": "2026-11-01", "state": "state", "usecase_dir": tmp_path, **how}
    task = given.pop("task")
    with pytest.raises(UsageError, match=said) as error:
        enter(call(task, **given))
    assert "\n" not in error.value.what
    assert not (tmp_path / "state").exists()


@pytest.mark.parametrize("batch", ["dt", b"dt", 5, [1]])
def test_the_variables_that_name_a_batch_are_a_list_of_texts(batch: Any) -> None:
    with pytest.raises(UsageError, match=r"batch is (a list of names|text)"):
        enter(batch_run(TASK, dt="2026-11-01", batch=batch))


def task_folder(root: Path) -> None:
    task = root / TASK
    task.mkdir(parents=True)
    (task / "config.yaml").write_text("CONFIG: {outputs: {orders: {format: csv, path: output}}}\n")
    (task / "transformations.py").write_text(
        "import pandas\n\ndef transform(sources):\n    return {'orders': pandas.DataFrame({'x': [1]})}\n"
    )


def enter(run: Any) -> None:
    with run:
        pass


def test_times_may_be_text(tmp_path: Path) -> None:
    task_folder(tmp_path)
    done = run_task(TASK, usecase_dir=tmp_path, dt="2026-11-01", wait="10m", takeover_seconds="15m")
    assert done is not None
    with batch_run(TASK, dt="2026-11-02", state=tmp_path / "s", wait="1s", takeover_seconds="1h30m") as run:
        run.append(FRAME, tmp_path / "orders")
        (entry,) = (tmp_path / "s" / "leases" / TASK).rglob("00000001.json")
        assert json.loads(entry.read_text())["ttl"] == 5400.0


@pytest.mark.parametrize(
    ("path", "how", "said"),
    [
        (5, {}, "^the output's path is a path, not int"),
        (b"orders", {}, "^the output's path is a path, not bytes"),
        ("orders", {"format": None}, "^the output's format is text, not NoneType"),
        ("orders", {"partition_by": None}, "^partition_by is a list of names, not NoneType"),
        ("orders", {"partition_by": [1]}, "^each of partition_by is text, not int"),
        ("orders", {"name": 5}, "^name is text, not int"),
        ("orders", {"options": ["header"]}, "^options is a mapping, not list"),
    ],
)
def test_an_argument_of_a_write_of_the_wrong_kind_is_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: Any, how: dict[str, Any], said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match=said), batch_run(TASK, dt="2026-11-01", state="state") as run:
        run.append(FRAME, path, **how)
    assert not (tmp_path / "orders").exists()


@pytest.mark.parametrize("how", [{"rerun": True}, {"resume": True}], ids=str)
def test_without_a_lease_no_earlier_run_is_replaced_or_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: dict[str, Any]
) -> None:
    """Nothing says what it wrote: its rows would be there twice, and the run a success."""
    task_folder(tmp_path)
    monkeypatch.setenv("UBUNYE_RUN_LEASE", "off")
    with pytest.raises(UsageError, match="UBUNYE_RUN_LEASE is off") as error:
        run_task(TASK, usecase_dir=tmp_path, dt="2026-11-01", **how)
    assert error.value.exit_code == 2
    if "rerun" in how:
        with pytest.raises(UsageError, match="UBUNYE_RUN_LEASE is off"):
            enter(batch_run(TASK, dt="2026-11-01", state=tmp_path / "s", rerun=True))
    assert run_task(TASK, usecase_dir=tmp_path, dt="2026-11-01") is not None
