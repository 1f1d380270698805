from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from airflow_provider_ubunye.tasks.folder import TaskFolder

CONFIG = """\
MODEL: etl
VERSION: "0.1.0"
CONFIG:
  inputs:
    orders: {format: csv, path: data/orders.csv}
  outputs:
    loaded: {format: parquet, path: output/loaded}
"""

MakeTask = Callable[..., TaskFolder]


@pytest.fixture
def make_task(tmp_path: Path) -> MakeTask:
    """A task folder on disk; further keyword arguments are files, ``__`` standing for a dot."""

    def make(
        task: str = "load_orders",
        *,
        config: str | bytes | None = CONFIG,
        code: str | bytes | None = None,
        **files: str,
    ) -> TaskFolder:
        folder = TaskFolder(tmp_path / "pipelines", "shop", "daily", task)
        folder.path.mkdir(parents=True, exist_ok=True)
        for path, content in ((folder.config_path, config), (folder.transformations_path, code)):
            if content is not None:
                path.write_bytes(content if isinstance(content, bytes) else content.encode())
        for name, text in files.items():
            path = folder.path / name.replace("__", ".")
            path.write_text(text)
        return folder

    return make
