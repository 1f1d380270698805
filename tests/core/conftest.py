from __future__ import annotations

from pathlib import Path

import pytest

from tests.core.kit import Shop


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    return Shop(tmp_path / "pipelines")
