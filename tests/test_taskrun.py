"""What must never leave a run, or stop one: secrets, damaged records, forked processes, late writes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import traceback
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from airflow_provider_ubunye.api import batch_run, run_task
from airflow_provider_ubunye.core.errors import LandingFailed, TransformFailed, UbunyeError, UsageError

TASK = "shop/daily/load_orders"
DAY = "2026-11-01"
SECRET = "hunter2hunter2"
FRAME = pd.DataFrame({"order_id": [1, 2]})
GOOD = (
    "import pandas as pd\ndef transform(sources):\n    return {'kept': pd.DataFrame({'order_id': [1, 2]})}\n"
)


def task(root: Path, code: str = GOOD, **output: Any) -> None:
    folder = root / TASK
    folder.mkdir(parents=True, exist_ok=True)
    config = {
        "CONFIG": {
            "outputs": {"kept": {"format": "parquet", "path": "kept", **output}},
            "transform": {"params": {"key": "secret://env/SHOP_KEY"}} if "context" in code else {},
        }
    }
    (folder / "config.yaml").write_text(json.dumps(config))
    (folder / "transformations.py").write_text(code)


def go(root: Path, **how: Any) -> Any:
    return run_task(TASK, usecase_dir=root, **{"dt": DAY, "lineage": True, **how})


def records(root: Path) -> Path:
    return root / ".ubunye" / "lineage" / TASK


def rows(root: Path) -> int:
    return sum(len(pd.read_parquet(path)) for path in (root / TASK / "kept").rglob("*.parquet"))


# ── secrets ─────────────────────────────────────────────────────────────────────────────────────

RETURN = "from pandas import DataFrame\ndef transform(sources, context):\n    return "
LEAKS = {
    "an output's name": f"{RETURN}{{context.params['key']: DataFrame({{'order_id': [1]}})}}\n",
    "a partition": f"{RETURN}{{'kept': DataFrame({{'order_id': [1], 'p': [context.params['key'] + chr(0)]}})}}\n",
    "a message": "def transform(sources, context):\n    raise ValueError('bad ' + context.params['key'])\n",
}


@pytest.mark.parametrize("leak", LEAKS)
def test_a_secret_is_in_no_record_and_no_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, leak: str
) -> None:
    monkeypatch.setenv("SHOP_KEY", SECRET)
    task(tmp_path, LEAKS[leak], **({"partition_by": ["p"]} if leak == "a partition" else {}))
    with pytest.raises((TransformFailed, LandingFailed)) as error:
        go(tmp_path)
    said = [str(error.value), *error.value.args, *error.value.lines()]
    assert SECRET not in "\n".join(map(str, said))
    assert "***" in str(error.value)
    assert SECRET not in "".join(traceback.format_exception_only(error.value))
    (record,) = records(tmp_path).glob("*.json")
    assert SECRET not in record.read_text()
    assert "***" in json.loads(record.read_text())["error"]


def test_a_record_of_a_batch_run_is_masked_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHOP_KEY", SECRET)
    task(tmp_path, LEAKS["a message"])
    with pytest.raises(TransformFailed):
        go(tmp_path)
    with (
        pytest.raises(ValueError, match=SECRET),
        batch_run("shop/daily/other", dt=DAY, usecase_dir=tmp_path, lineage=True),
    ):
        raise ValueError(f"no {SECRET}")
    (record,) = (tmp_path / ".ubunye" / "lineage" / "shop" / "daily" / "other").glob("*.json")
    assert json.loads(record.read_text())["error"] == "no ***"


# ── damaged records ─────────────────────────────────────────────────────────────────────────────


def test_resume_goes_past_records_that_can_not_be_read(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    task(tmp_path, mode="overwrite")
    assert go(tmp_path) is not None
    (records(tmp_path) / f"{'b' * 32}.json").write_text("{")
    (records(tmp_path) / "a b.json").write_text("{}")
    (records(tmp_path) / "folder.json").mkdir()
    assert go(tmp_path, resume=True) is None
    for name in ("b" * 32, "a b", "folder"):
        assert f"The run record {records(tmp_path) / name}.json is left out" in caplog.text
    assert go(tmp_path, resume=True, dt="2026-11-02") is not None


def test_resume_runs_where_there_is_no_folder_of_records(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    task(tmp_path, mode="overwrite")
    records(tmp_path).parent.mkdir(parents=True)
    records(tmp_path).write_text("no folder")
    assert go(tmp_path, resume=True) is not None
    assert f"The run records of {TASK} can't be listed" in caplog.text
    assert rows(tmp_path) == 2


# ── forked processes ────────────────────────────────────────────────────────────────────────────

CHILD = "    child = os.fork()\n    if child: code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])\n"
FORKS = {
    "returns": CHILD,
    "raises": f"{CHILD}    else: raise ValueError('of the child')\n",
    "exits": f"{CHILD}    else: raise SystemExit(0)\n",
}


@pytest.mark.parametrize("how", FORKS)
def test_a_process_that_the_transform_forked_never_goes_on(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], how: str
) -> None:
    code = f"import os, pandas as pd\ndef transform(sources):\n{FORKS[how]}"
    task(tmp_path, f"{code}    return {{'kept': pd.DataFrame({{'code': [code] if child else [0]}})}}\n")
    here = os.getpid()
    # Another process: what forks here has this one's threads and buffers.
    program = (
        "from airflow_provider_ubunye.api import run_task\n"
        f"print(run_task({TASK!r}, usecase_dir={str(tmp_path)!r}, dt={DAY!r}).rows)"
    )
    done = subprocess.run([sys.executable, "-c", program], check=True, text=True, capture_output=True)
    assert (os.getpid(), done.stdout) == (here, "{'kept': 1}\n")
    assert done.stderr.count("a process that the task's code forked came out of that code") == 1
    assert "Traceback" not in done.stderr
    (file,) = (tmp_path / TASK / "kept").glob("*.parquet")
    assert pd.read_parquet(file)["code"].tolist() == [4]
    assert capfd.readouterr().out == ""


def test_a_process_forked_in_the_block_can_not_write(tmp_path: Path) -> None:
    read, write = os.pipe()
    with batch_run(TASK, dt=DAY, state=tmp_path / "state") as run:
        run.append(FRAME, tmp_path / "orders")
        child = os.fork()
        if child == 0:
            try:
                run.append(FRAME, tmp_path / "more")
                os.write(write, b"written")
            except UsageError as error:
                os.write(write, str(error).encode())
            finally:
                os._exit(0)
        os.waitpid(child, 0)
    said = os.read(read, 1000).decode()
    os.close(read)
    os.close(write)
    assert f"belongs to process {os.getpid()}" in said
    assert len(pd.read_parquet(tmp_path / "orders")) == 2
    assert not (tmp_path / "more").exists()


# ── the block's end ─────────────────────────────────────────────────────────────────────────────


def test_nothing_is_written_after_the_block(tmp_path: Path) -> None:
    state = tmp_path / "state"
    with batch_run(TASK, dt=DAY, state=state) as done:
        done.append(FRAME, tmp_path / "orders")
    with pytest.raises(ValueError, match="boo"), batch_run(TASK, dt="2026-11-02", state=state) as failed:
        raise ValueError("boo")
    for run in (done, failed):
        with pytest.raises(UsageError, match=r"has ended: nothing can be written in it any more"):
            run.append(FRAME, tmp_path / "more")
    assert not (tmp_path / "more").exists()
    with pytest.raises(UbunyeError, match="already finished"), batch_run(TASK, dt=DAY, state=state) as again:
        again.append(FRAME, tmp_path / "orders")


# ── partitions ──────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("column", ["mode", "dtf"])
def test_a_column_named_mode_or_dtf_may_hold_anything(tmp_path: Path, column: str) -> None:
    frame = pd.DataFrame({"order_id": [1, 2], column: ["card", "cash"]})
    how: dict[str, Any] = {"dt": DAY, "dtf": "2026-11-02", "state": tmp_path / "state"}
    with batch_run(TASK, **how) as run:
        assert run.overwrite_partitions(frame, tmp_path / "orders", partition_by=[column]) == 2
    with (
        pytest.raises(LandingFailed, match=f"{column}='card'"),
        batch_run(TASK, **how, batch=["dt", column]) as run,
    ):
        run.overwrite_partitions(frame, tmp_path / "orders", partition_by=[column])
