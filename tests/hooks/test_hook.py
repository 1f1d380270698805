"""The hook outside a task: what a connection says, where state may be, and a run through it."""

from __future__ import annotations

import json
import os
import signal
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from airflow.sdk.exceptions import AirflowException, AirflowFailException, AirflowNotFoundException

from airflow_provider_ubunye import api
from airflow_provider_ubunye.core.batch import Batch
from airflow_provider_ubunye.core.errors import UsageError
from airflow_provider_ubunye.get_provider_info import get_provider_info
from airflow_provider_ubunye.hooks import ubunye
from airflow_provider_ubunye.hooks.settings import Settings
from airflow_provider_ubunye.hooks.stopping import interruptible
from airflow_provider_ubunye.hooks.ubunye import UbunyeHook

FRAME = pd.DataFrame({"id": [1, 2]})


@pytest.fixture
def connect(monkeypatch: pytest.MonkeyPatch) -> Any:
    def write(conn_id: str = "ubunye_default", **extra: object) -> None:
        value = json.dumps({"conn_type": "ubunye", "extra": extra})
        monkeypatch.setenv(f"AIRFLOW_CONN_{conn_id.upper()}", value)

    return write


def test_the_form_has_a_field_for_every_setting() -> None:
    (form,) = get_provider_info()["connection-types"]
    assert set(form["conn-fields"]) == set(Settings.__dataclass_fields__)


def test_a_connection(connect: Any) -> None:
    connect(usecase_dir="/srv/p", state="/srv/s", takeover_seconds="60", backend="", lineage_dir=None)
    assert UbunyeHook().settings == Settings("/srv/p", "/srv/s", None, 60.0, None)


def test_without_the_default_connection_the_shells_places_hold(tmp_path: Path) -> None:
    hook = UbunyeHook()
    assert hook.settings == Settings()
    where = hook.where(str(tmp_path))
    assert (where.state, where.lineage_dir) == (str(tmp_path / ".ubunye"), None)


def test_any_other_connection_must_exist() -> None:
    with pytest.raises(AirflowNotFoundException):
        _ = UbunyeHook(ubunye_conn_id="another").settings


@pytest.mark.parametrize(
    ("extra", "says"),
    [
        ({"usecasedir": "/srv/p"}, "has a field 'usecasedir'; it knows usecase_dir, state"),
        ({"state": 3}, "state in the connection 'ubunye_default' is 3, not text"),
        ({"takeover_seconds": "soon"}, "takeover_seconds in the connection .* is 'soon', not a number"),
    ],
)
def test_a_connection_that_is_not_understood(connect: Any, extra: dict[str, Any], says: str) -> None:
    connect(**extra)
    with pytest.raises(UsageError, match=says):
        _ = UbunyeHook().settings
    good, told = UbunyeHook().test_connection()
    assert not good
    assert "in the connection" in told or "has a field" in told


def test_the_test_button(connect: Any, tmp_path: Path) -> None:
    connect(state=str(tmp_path / "state"))
    good, told = UbunyeHook().test_connection()
    assert good, told
    assert str(tmp_path / "state") in told
    # A store that passed before is tested again: here it has become a file.
    connect(state=str(tmp_path / "file"))
    (tmp_path / "file").write_text("")
    good, told = UbunyeHook().test_connection()
    assert not good
    assert "can't be used" in told
    connect()
    assert UbunyeHook().test_connection()[0] is False


def test_a_checkout_of_a_dag_bundle_keeps_no_state(
    connect: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bundles = tmp_path / "bundles"
    checkout = bundles / "git" / "versions" / "abc" / "pipelines"
    checkout.mkdir(parents=True)
    monkeypatch.setenv("AIRFLOW__DAG_PROCESSOR__DAG_BUNDLE_STORAGE_PATH", str(bundles))
    assert ubunye.bundle_storage() == bundles
    with pytest.raises(UsageError, match="DAG bundle storage") as refused:
        UbunyeHook().where(str(checkout))
    assert refused.value.hint is not None
    assert "set state in the connection 'ubunye_default', or UBUNYE_STATE" in refused.value.hint
    # A link to it is no way around.
    (tmp_path / "link").symlink_to(checkout)
    with pytest.raises(UsageError, match="DAG bundle storage"):
        UbunyeHook().where(str(tmp_path / "link"))
    # With a state of its own it may be used; the records then go beside the state.
    connect(state=str(tmp_path / "state"))
    assert UbunyeHook().where(str(checkout)).lineage_dir == str(tmp_path / "state" / "lineage")


def test_a_read_only_folder_keeps_no_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.access", lambda path, mode: False)
    with pytest.raises(UsageError, match=f"can't be kept in {tmp_path}/.ubunye: {tmp_path} is read-only"):
        UbunyeHook().where(str(tmp_path))


def run(tmp_path: Path, **how: Any) -> str:
    with UbunyeHook().run(
        "shop/daily/load", usecase_dir=str(tmp_path / "p"), **{"dt": "2026-11-01", **how}
    ) as run:
        run.append(FRAME, tmp_path / "lake")
    return run.id


def rows(tmp_path: Path) -> int:
    return len(pd.read_parquet(tmp_path / "lake"))


def test_a_run(tmp_path: Path) -> None:
    (tmp_path / "p").mkdir()
    first = run(tmp_path)
    assert (tmp_path / "p/.ubunye/lineage/shop/daily/load" / f"{first}.json").exists()
    with pytest.raises(AirflowFailException, match=r"already finished this batch .* a run outside Airflow"):
        run(tmp_path)
    assert run(tmp_path, on_finished="skip") == first
    assert rows(tmp_path) == 2
    assert run(tmp_path, rerun=True) != first
    assert run(tmp_path, on_finished="rerun") != first
    assert rows(tmp_path) == 2


@pytest.mark.parametrize(
    ("how", "says"),
    [
        ({"dt": None}, "dt is None: this DAG run has no date"),
        ({"dt": "None"}, "no value"),
        ({"dt": "{{ ds }}"}, "unrendered template"),
        ({"dt": ""}, "dt is empty"),
        ({"dt": " 2026-11-01"}, "padded"),
        ({"on_finished": "maybe"}, "on_finished is 'maybe'"),
    ],
)
def test_what_never_becomes_a_batch(tmp_path: Path, how: dict[str, Any], says: str) -> None:
    (tmp_path / "p").mkdir()
    with pytest.raises(AirflowFailException, match=says):
        run(tmp_path, **how)
    assert not (tmp_path / "lake").exists()


def test_an_error_of_the_block_is_the_users(tmp_path: Path) -> None:
    def broken() -> None:
        with UbunyeHook().run("shop/daily/load", dt="2026-11-01", usecase_dir=str(tmp_path)) as run:
            run.append(FRAME, tmp_path / "lake")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        broken()
    assert not list(tmp_path.glob("lake/*.parquet"))


def test_told_to_stop(tmp_path: Path) -> None:
    """A function is not told by Airflow; on SIGTERM it would go on."""

    def stopped() -> None:
        with UbunyeHook().run("shop/daily/load", dt="2026-11-01", usecase_dir=str(tmp_path)) as run:
            run.append(FRAME, tmp_path / "lake")
            os.kill(os.getpid(), signal.SIGTERM)

    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(AirflowException, match="was interrupted; what it wrote is taken back"):
        stopped()
    assert signal.getsignal(signal.SIGTERM) is before
    assert not list(tmp_path.glob("lake/*.parquet"))


def test_only_the_first_signal_is_raised() -> None:
    def twice() -> None:
        try:
            os.kill(os.getpid(), signal.SIGTERM)
        finally:
            os.kill(os.getpid(), signal.SIGTERM)
            done.append("taken back")

    done: list[str] = []
    with pytest.raises(KeyboardInterrupt), interruptible(signal.SIGTERM):
        twice()
    assert done == ["taken back"]


def test_in_another_thread_nothing_changes() -> None:
    with ThreadPoolExecutor(1) as pool:
        before = signal.getsignal(signal.SIGTERM)

        def inside() -> object:
            with interruptible(signal.SIGTERM):
                return signal.getsignal(signal.SIGTERM)

        assert pool.submit(inside).result() is before


def test_a_held_batch_may_be_tried_again(tmp_path: Path) -> None:
    hook = UbunyeHook()
    with (
        hook.run("shop/daily/load", dt="2026-11-01", usecase_dir=str(tmp_path)),
        pytest.raises(AirflowException, match="is still running") as held,
        hook.run("shop/daily/load", dt="2026-11-01", usecase_dir=str(tmp_path)),
    ):
        raise AssertionError("two runs of one batch")
    assert not isinstance(held.value, AirflowFailException)


def test_a_task_folders_task(tmp_path: Path) -> None:
    from airflow_provider_ubunye.tasks.folder import TaskFolder
    from airflow_provider_ubunye.tasks.scaffold import write_task

    write_task(TaskFolder(tmp_path, "shop", "daily", "load"))
    result = UbunyeHook().run_task("shop/daily/load", dt="2026-11-01", usecase_dir=str(tmp_path))
    assert result is not None
    assert sum(result.rows.values()) > 0
    skipped = UbunyeHook().run_task(
        "shop/daily/load", dt="2026-11-01", usecase_dir=str(tmp_path), on_finished="skip"
    )
    assert skipped is None
    with pytest.raises(AirflowFailException, match="nothing says where"):
        UbunyeHook().run_task("shop/daily/load", dt="2026-11-01")
    with pytest.raises(AirflowFailException, match="Spark engine is not part of this version"):
        UbunyeHook().run_task("shop/daily/load", dt="2026-11-02", usecase_dir=str(tmp_path), backend="spark")


def test_rows_of_a_run_without_a_record(tmp_path: Path) -> None:
    hook = UbunyeHook()
    assert hook.rows_of("shop/daily/load", "0" * 32, str(tmp_path)) == {}
    record = tmp_path / ".ubunye/lineage/shop/daily/load" / f"{'0' * 32}.json"
    record.parent.mkdir(parents=True)
    record.write_text("{")
    assert hook.rows_of("shop/daily/load", "0" * 32, str(tmp_path)) == {}


def test_the_try_that_has_a_batch(tmp_path: Path) -> None:
    batch = Batch.of("shop/daily/load", {"dt": "2026-11-01"})
    state = str(tmp_path / ".ubunye")
    hook = UbunyeHook()
    assert hook.attempt_on(batch, str(tmp_path)) is None
    mine = {"dag_id": "d", "try_number": 1}
    with api.batch_run("shop/daily/load", dt="2026-11-01", state=state, attempt=mine):
        assert hook.attempt_on(batch, str(tmp_path)) == mine
    assert hook.attempt_on(batch, str(tmp_path)) == mine
    # A link is no reason to fail.
    assert hook.attempt_on(batch, None) is None
