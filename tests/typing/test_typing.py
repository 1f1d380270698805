"""The public API's types, as a user's mypy sees them: from the installed package, by its ``py.typed``."""

from __future__ import annotations

import shutil
from importlib.util import find_spec
from pathlib import Path

import pytest
from mypy import api

USAGE = Path(__file__).with_name("usage.py")


@pytest.fixture
def strict(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    # Away from the source tree and its settings: what mypy finds is what is installed.
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("MYPYPATH", raising=False)
    return ["--strict", "--config-file=", f"--cache-dir={tmp_path / 'cache'}", "--no-error-summary"]


def test_the_package_is_typed() -> None:
    spec = find_spec("airflow_provider_ubunye")
    assert spec is not None
    assert spec.origin is not None
    assert Path(spec.origin).with_name("py.typed").exists()


def test_the_public_api(strict: list[str], tmp_path: Path) -> None:
    shutil.copy(USAGE, tmp_path / "usage.py")
    told, failed, _ = api.run([*strict, "usage.py"])
    assert told + failed == ""
