"""Where state and records are: the same answer from arguments and environment."""

from __future__ import annotations

import datetime
import os
from pathlib import Path

import pytest

from airflow_provider_ubunye.core import timespan
from airflow_provider_ubunye.core.errors import UsageError
from airflow_provider_ubunye.core.records import FileRecords, RunRecord
from airflow_provider_ubunye.core.store import FileStore, MemoryStore, StoreUnusable
from airflow_provider_ubunye.core.where import (
    LEASE,
    STATE,
    TAKEOVER_AFTER,
    need_lease,
    setting_for,
    state_uri,
    takeover_after,
)


def test_the_state_is_where_it_is_said_else_in_the_environment_else_in_the_use_case_folder() -> None:
    environ = {STATE: "/env"}
    assert state_uri("/u", "/given", environ) == "/given"
    assert state_uri("/u", Path("/given"), environ) == "/given"
    assert state_uri("/u", None, environ) == "/env"
    assert state_uri("/u", None, {STATE: ""}) == "/u/.ubunye"
    assert state_uri("u", None, {}) == os.path.abspath("u/.ubunye")
    with pytest.raises(UsageError, match="nothing says"):
        state_uri(None, None, {})


def test_a_setting_opens_its_store_and_stages_beside_it(tmp_path: Path) -> None:
    setting = setting_for(tmp_path, environ={})
    assert isinstance(setting.store, FileStore)
    assert setting.staging_root == f"{tmp_path}/.ubunye/staging"
    assert setting.places.usecase_dir == str(tmp_path)
    assert setting.protected
    (tmp_path / "file").write_text("x")
    with pytest.raises(StoreUnusable):
        setting_for(None, tmp_path / "file", environ={})


@pytest.mark.parametrize("word", ["off", "OFF", " off "])
def test_a_lease_turned_off_is_said(tmp_path: Path, caplog: pytest.LogCaptureFixture, word: str) -> None:
    setting = setting_for(tmp_path, environ={LEASE: word})
    assert isinstance(setting.store, MemoryStore)
    assert not setting.protected
    assert not setting.heartbeat
    assert LEASE in caplog.text
    assert not (tmp_path / ".ubunye").exists()


@pytest.mark.parametrize("word", ["", "on"])
def test_a_lease_is_on_by_default(tmp_path: Path, word: str) -> None:
    assert setting_for(tmp_path, environ={LEASE: word}).protected


def test_an_unclear_lease_switch_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=LEASE):
        setting_for(tmp_path, environ={LEASE: "perhaps"})


def test_what_needs_to_know_of_earlier_runs_needs_the_lease() -> None:
    need_lease("--rerun", {LEASE: "on"})
    with pytest.raises(UsageError, match=f"{LEASE} is off.*--rerun can't be carried out") as error:
        need_lease("--rerun", {LEASE: "off"})
    assert "leave --rerun out" in str(error.value.hint)


def test_records_are_where_they_are_said(tmp_path: Path) -> None:
    def root(**how: object) -> str | None:
        setting = setting_for(tmp_path, environ={}, **how)  # type: ignore[arg-type]
        return str(setting.records.root) if isinstance(setting.records, FileRecords) else None

    assert root(lineage=True) == f"{tmp_path}/.ubunye/lineage"
    assert root(lineage_dir="records") == f"{tmp_path}/records"
    assert root(lineage_dir="/srv/records") == "/srv/records"
    with pytest.raises(UsageError, match="use case folder"):
        setting_for(None, tmp_path / "s", lineage=True, environ={})
    with pytest.raises(UsageError, match="use case folder"):
        setting_for(None, tmp_path / "s", lineage_dir="relative", environ={})
    absolute = setting_for(None, tmp_path / "s", lineage_dir=tmp_path / "r", environ={})
    assert absolute.records is not None


def test_records_that_are_there_are_closed_by_whoever_takes_over(tmp_path: Path) -> None:
    assert not setting_for(tmp_path, environ={}).recording
    FileRecords(tmp_path / ".ubunye" / "lineage").save(
        RunRecord("a" * 32, "a/b/c", "running", datetime.datetime.now(datetime.UTC).isoformat())
    )
    setting = setting_for(tmp_path, environ={})
    assert setting.records is not None
    assert not setting.recording
    assert setting_for(tmp_path, lineage=True, environ={}).recording


def test_the_time_to_takeover() -> None:
    assert takeover_after(None, 900, {}) == 900
    assert takeover_after(None, 900, {TAKEOVER_AFTER: ""}) == 900
    assert takeover_after(5, 900, {TAKEOVER_AFTER: "60"}) == 5
    assert takeover_after(None, 900, {TAKEOVER_AFTER: "60"}) == 60
    assert takeover_after(None, 900, {TAKEOVER_AFTER: "10m"}) == 600
    for bad in (0, -1, float("inf"), float("nan")):
        with pytest.raises(UsageError):
            takeover_after(bad, 900, {})
    for text in ("soon", "-5", "0"):
        with pytest.raises(UsageError):
            takeover_after(None, 900, {TAKEOVER_AFTER: text})


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("90", 90),
        ("90s", 90),
        ("10m", 600),
        ("2h", 7200),
        ("1h30m", 5400),
        ("1h1m1s", 3661),
        (" 1.5M ", 90),
        ("0", 0),
    ],
)
def test_a_time_span(text: str, seconds: float) -> None:
    assert timespan.span("--wait", text) == seconds


@pytest.mark.parametrize("text", ["", "s", "soon", "10 m", "-5", "1m1h", "9000h", "1e3", "nan"])
def test_what_is_no_time_span(text: str) -> None:
    with pytest.raises(UsageError, match="--wait"):
        timespan.span("--wait", text)
