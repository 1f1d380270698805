from __future__ import annotations

from pathlib import Path

import pytest

from airflow_provider_ubunye.core.errors import UsageError
from airflow_provider_ubunye.tasks.config import load_config
from airflow_provider_ubunye.tasks.folder import TaskFolder
from airflow_provider_ubunye.tasks.load import check_result, load_transform
from airflow_provider_ubunye.tasks.scaffold import write_task
from airflow_provider_ubunye.tasks.task import TaskContext


@pytest.fixture
def folder(tmp_path: Path) -> TaskFolder:
    return TaskFolder(tmp_path / "pipelines", "shop", "daily", "load_orders")


@pytest.mark.parametrize("variables", [{}, {"dt": "2026-11-01"}])
def test_what_is_written_runs_at_once(folder: TaskFolder, variables: dict[str, object]) -> None:
    import pandas as pd

    written = write_task(folder)
    assert [path.name for path in written] == ["config.yaml", "transformations.py", "orders.csv"]
    config = load_config(folder, variables)
    assert config.outputs[0].mode == "append"
    assert config.outputs[0].partition_by == ()
    assert Path(config.outputs[0].path) == folder.path / "output" / "dev" / "large_orders"
    prod = load_config(folder, {**variables, "mode": "PROD"})
    assert Path(prod.outputs[0].path) == folder.path / "output" / "prod" / "large_orders"
    sources = {spec.name: pd.read_csv(spec.path) for spec in config.inputs}
    context = TaskContext(folder.name, params=config.params)
    result = load_transform(folder)(sources, context)
    check_result(result, [spec.name for spec in config.outputs])
    assert list(result["large_orders"]["order_id"]) == [1, 3, 4]


@pytest.mark.parametrize("name", ["config.yaml", "transformations.py", "data/orders.csv"])
@pytest.mark.parametrize("link", [False, True])
def test_nothing_is_written_over(folder: TaskFolder, name: str, link: bool) -> None:
    path = folder.path / name
    path.parent.mkdir(parents=True)
    if link:
        path.symlink_to("/nowhere/at/all")
    else:
        path.write_text("mine")
    with pytest.raises(UsageError, match="already; nothing was written"):
        write_task(folder)
    assert [p for p in folder.path.rglob("*") if not p.is_dir() or p.is_symlink()] == [path]


def test_a_place_that_can_not_be_written(folder: TaskFolder) -> None:
    folder.usecase_dir.parent.mkdir(exist_ok=True)
    folder.usecase_dir.write_text("a file in the folder's place")
    with pytest.raises(UsageError, match="can't be written"):
        write_task(folder)
