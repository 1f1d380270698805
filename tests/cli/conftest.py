from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.kit import Shop


@pytest.fixture
def shop(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Shop:
    for name in ("UBUNYE_STATE", "UBUNYE_RUN_LEASE", "UBUNYE_TAKEOVER_AFTER"):
        monkeypatch.delenv(name, raising=False)
    made = Shop(tmp_path / "pipelines", capsys)
    made.task()
    return made
