from __future__ import annotations

import pickle
import shutil
import sys
import threading
import types
from collections.abc import Iterator

import pytest

from airflow_provider_ubunye.core.errors import TransformFailed
from airflow_provider_ubunye.tasks.imports import Siblings
from airflow_provider_ubunye.tasks.load import load_transform
from airflow_provider_ubunye.tasks.task import TaskContext
from tests.tasks.conftest import MakeTask

CONTEXT = TaskContext("shop/daily/x")


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    path, names = list(sys.path), set(sys.modules)
    yield
    assert sys.path == path
    # The task's own module stays, under a name of its own; nothing else of a task does.
    left = {name for name in sys.modules.keys() - names if "sibling" in name or "lib_of" in name}
    assert left == set()


USES = "import sibling\ndef transform(s): return {'out': sibling.NAME}\n"


def test_two_tasks_with_files_of_one_name_never_mix(make_task: MakeTask) -> None:
    one = load_transform(make_task("one", code=USES, sibling__py="NAME = 'one'"))
    two = load_transform(make_task("two", code=USES, sibling__py="NAME = 'two'"))
    for _ in range(2):
        assert one({}, CONTEXT) == {"out": "one"}
        assert two({}, CONTEXT) == {"out": "two"}


def test_a_sibling_imported_during_the_call_stays_the_same_module(make_task: MakeTask) -> None:
    code = (
        "def transform(s):\n    import sibling as s\n    s.CALLS.append(1)\n    return {'n': len(s.CALLS)}\n"
    )
    one = load_transform(make_task("one", code=code, sibling__py="CALLS = []"))
    two = load_transform(make_task("two", code=code, sibling__py="CALLS = []"))
    found = [one({}, CONTEXT), two({}, CONTEXT), one({}, CONTEXT), two({}, CONTEXT)]
    assert [f["n"] for f in found] == [1, 1, 2, 2]


def test_packages_and_folders_without_init(make_task: MakeTask) -> None:
    code = (
        "from lib_of_task.deep import NAME\nimport lib_of_space.inner\n"
        "def transform(s):\n    import lib_of_task.late as late\n"
        "    return {'out': NAME + late.NAME + lib_of_space.inner.NAME}\n"
    )
    for name in ("one", "two"):
        folder = make_task(name, code=code)
        for package in ("lib_of_task", "lib_of_space"):
            (folder.path / package).mkdir()
        (folder.path / "lib_of_task/__init__.py").touch()
        (folder.path / "lib_of_task/deep.py").write_text(f"NAME = '{name}-'")
        (folder.path / "lib_of_task/late.py").write_text(f"NAME = '{name}.'")
        (folder.path / "lib_of_space/inner.py").write_text(f"NAME = '{name}'")
        assert load_transform(folder)({}, CONTEXT) == {"out": f"{name}-{name}.{name}"}


def test_a_loaded_module_steps_aside_and_comes_back(make_task: MakeTask) -> None:
    foreign = types.ModuleType("sibling")
    sys.modules["sibling"] = foreign
    try:
        transform = load_transform(make_task(code=USES, sibling__py="NAME = 'own'"))
        assert sys.modules["sibling"] is foreign
        assert transform({}, CONTEXT) == {"out": "own"}
        assert sys.modules["sibling"] is foreign
    finally:
        del sys.modules["sibling"]


def test_data_folders_and_files_named_like_libraries_replace_nothing(make_task: MakeTask) -> None:
    code = "import json, yaml\ndef transform(s): return {'out': [json.__name__, yaml.__version__]}\n"
    folder = make_task(code=code, json__py="raise RuntimeError('not this one')")
    (folder.path / "yaml").mkdir()
    import json

    import yaml

    assert load_transform(folder)({}, CONTEXT) == {"out": ["json", yaml.__version__]}
    assert sys.modules["json"] is json
    assert sys.modules["yaml"] is yaml


def test_a_task_started_by_another_ones_code(make_task: MakeTask) -> None:
    inner = load_transform(make_task("inner", code=USES, sibling__py="NAME = 'inner'"))
    alone = make_task("alone", code="def transform(s):\n    import sibling_of_outer\n")
    code = (
        "import sibling, sibling_of_outer\n"
        "def transform(sources):\n"
        "    first = sources['run']()\n"
        "    import sibling as again, sibling_of_outer as too\n"
        "    assert again is sibling and too is sibling_of_outer\n"
        "    return {'out': [first, sibling.NAME]}\n"
    )
    outer = load_transform(
        make_task("outer", code=code, sibling__py="NAME = 'outer'", sibling_of_outer__py="")
    )
    assert outer({"run": lambda: inner({}, CONTEXT)}, CONTEXT) == {"out": [{"out": "inner"}, "outer"]}
    # The inner one does not see what stands only beside the outer one.
    with pytest.raises(TransformFailed, match="No module named 'sibling_of_outer'"):
        outer({"run": lambda: load_transform(alone)({}, CONTEXT)}, CONTEXT)


def test_path_and_modules_are_restored_after_a_failure(make_task: MakeTask) -> None:
    code = "import sys, sibling\nsys.path.insert(0, '/nowhere')\nraise ValueError\n"
    with pytest.raises(TransformFailed):
        load_transform(make_task(code=code, sibling__py=""))


def test_a_changed_file_is_read_anew_even_within_the_second(make_task: MakeTask) -> None:
    for value in range(5):
        folder = make_task(code=f"def transform(s): return {{'out': {value}}}\n")
        assert load_transform(folder)({}, CONTEXT) == {"out": value}
    assert not (folder.path / "__pycache__").exists()


def test_classes_of_a_task_can_be_pickled(make_task: MakeTask) -> None:
    code = (
        "from dataclasses import dataclass\n@dataclass\nclass Row:\n    n: int\n"
        "def transform(s): return {'out': Row(3)}\n"
    )
    row = load_transform(make_task(code=code))({}, CONTEXT)["out"]
    assert pickle.loads(pickle.dumps(row)) == row


def test_threads_take_turns(make_task: MakeTask) -> None:
    code = (
        "def transform(sources):\n    import time\n    time.sleep(0.005)\n    import sibling\n"
        "    return {'out': sibling.NAME}\n"
    )
    tasks = {n: load_transform(make_task(n, code=code, sibling__py=f"NAME = '{n}'")) for n in "abcd"}
    found: list[tuple[str, str]] = []

    def work(name: str) -> None:
        found.extend((name, tasks[name]({}, CONTEXT)["out"]) for _ in range(5))

    threads = [threading.Thread(target=work, args=(name,)) for name in tasks]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 20
    assert all(name == out for name, out in found)


def test_odd_things_in_sys_modules_are_left_alone(make_task: MakeTask) -> None:
    class Awake(types.ModuleType):
        def __getattribute__(self, name: str) -> object:
            raise AssertionError("a lazy module was woken")

    code = "import sys\ndef transform(sources):\n    sys.modules.update(sources)\n    return {}\n"
    transform = load_transform(make_task(code=code))
    unlike = types.ModuleType("odd_unlike")
    unlike.__path__ = 3  # type: ignore[assignment]
    odd = {"odd_awake": Awake("odd_awake"), "odd_slots": object(), "odd_unlike": unlike}
    try:
        transform(odd, CONTEXT)
        assert {name: sys.modules[name] for name in odd} == odd
    finally:
        for name in odd:
            sys.modules.pop(name, None)


def test_a_folder_that_went_away(make_task: MakeTask) -> None:
    folder = make_task(code="def transform(s): return {'out': 1}\n")
    transform = load_transform(folder)
    shutil.rmtree(folder.path)
    assert transform({}, CONTEXT) == {"out": 1}


def test_nothing_is_held_between_calls(make_task: MakeTask) -> None:
    folder = make_task()
    siblings = Siblings(folder.path)
    with siblings.importable():
        assert sys.path[0] == str(folder.path)
    assert Siblings._active == []
