from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_ubunye.core.errors import UsageError
from airflow_provider_ubunye.tasks.folder import TaskFolder, list_tasks, near_names
from tests.tasks.conftest import MakeTask

HOSTILE = [
    "../../x",
    "..",
    ".",
    "",
    "/etc",
    "a/b",
    "a\\b",
    "a\0b",
    "a\nb",
    "a\x1bb",
    " a",
    "a\u2028b",
    "x" * 201,
]


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize("position", [0, 1, 2])
def test_hostile_names_are_refused_before_anything_is_opened(
    name: str, position: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def touched(*args: object, **kwargs: object) -> object:
        raise AssertionError("the file system was touched")

    monkeypatch.setattr(os, "stat", touched)
    monkeypatch.setattr(os, "scandir", touched)
    names = ["shop", "daily", "load_orders"]
    names[position] = name
    with pytest.raises(UsageError) as caught:
        TaskFolder(Path("/somewhere"), *names)
    assert len(caught.value.lines()) == 1
    assert "\n" not in caught.value.what
    if position < 2:
        with pytest.raises(UsageError):
            list_tasks(Path("/somewhere"), *names[:2])


@given(st.text(max_size=30))
def test_any_accepted_name_lies_in_the_usecase_dir(name: str) -> None:
    try:
        folder = TaskFolder(Path("/pipelines"), "shop", "daily", name)
    except UsageError:
        return
    assert os.path.abspath(folder.path) == str(folder.path)
    assert folder.path.parent == Path("/pipelines/shop/daily")


def test_paths_and_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    folder = TaskFolder(Path("pipelines"), "shop", "daily", "load_orders")
    assert folder.name == "shop/daily/load_orders"
    assert folder.usecase_dir == tmp_path / "pipelines"
    assert folder.config_path == tmp_path / "pipelines/shop/daily/load_orders/config.yaml"
    assert folder.transformations_path == folder.path / "transformations.py"


@pytest.mark.parametrize(
    ("names", "said"),
    [
        (("shpo", "daily", "load_orders"), "no use case 'shpo'; did you mean 'shop'?"),
        (("shop", "dayly", "load_orders"), "no package 'dayly'; did you mean 'daily'?"),
        (("shop", "daily", "Load_Order"), "no task 'Load_Order'; did you mean 'load_orders'?"),
        (("shop", "daily", "zzz"), "no task 'zzz'; there is 'load_orders'"),
    ],
)
def test_a_missing_folder_names_the_near_ones(
    make_task: MakeTask, names: tuple[str, str, str], said: str
) -> None:
    folder = make_task()
    (folder.path.parent / ".hidden").mkdir()
    (folder.path.parent / "__pycache__").mkdir()
    with pytest.raises(UsageError) as caught:
        TaskFolder(folder.usecase_dir, *names).require()
    assert said in caught.value.what
    assert folder.require() is folder


def test_a_missing_usecase_dir(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="does not exist"):
        TaskFolder(tmp_path / "nope", "a", "b", "c").require()
    with pytest.raises(UsageError, match="does not exist"):
        list_tasks(tmp_path / "no\0pe", "a", "b")
    with pytest.raises(UsageError, match="can't be opened"):
        TaskFolder(tmp_path / ("x" * 300), "a", "b", "c").require()


def test_an_empty_folder_has_no_near_names(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        TaskFolder(tmp_path, "a", "b", "c").require()
    assert caught.value.what == "there is no use case 'a'"


def test_all_tasks_of_a_package(make_task: MakeTask) -> None:
    folder = make_task("b")
    make_task("a")
    make_task("no_config", config=None)
    found = list_tasks(folder.usecase_dir, "shop", "daily")
    assert [task.task for task in found] == ["a", "b"]
    with pytest.raises(UsageError, match="no package 'weekly'"):
        list_tasks(folder.usecase_dir, "shop", "weekly")
    (folder.usecase_dir / "shop" / "empty").mkdir()
    with pytest.raises(UsageError, match="no task with a config"):
        list_tasks(folder.usecase_dir, "shop", "empty")


def test_all_names_a_folder_that_could_not_be_run(make_task: MakeTask) -> None:
    folder = make_task()
    bad = folder.path.parent / "bad\nname"
    bad.mkdir()
    (bad / "config.yaml").touch()
    with pytest.raises(UsageError, match="control character"):
        list_tasks(folder.usecase_dir, "shop", "daily")


def test_near_names_are_cut() -> None:
    assert near_names("zz", [f"a{i}" for i in range(7)]) == (
        "; there is 'a0', 'a1', 'a2', 'a3', 'a4' and 2 more"
    )
    assert near_names("zz", [f"a{i}" for i in range(6)]).endswith("'a4', 'a5'")


def test_a_folder_that_can_not_be_listed_has_no_near_names(
    make_task: MakeTask, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = make_task()

    def refused(path: object) -> object:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "scandir", refused)
    with pytest.raises(UsageError) as caught:
        TaskFolder(folder.usecase_dir, "shop", "daily", "load_order").require()
    assert caught.value.what == "there is no task 'load_order'"
