"""The short way to read a config, held against the models, which have the last word."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from airflow_provider_ubunye.core.errors import ConfigError
from airflow_provider_ubunye.tasks import shape
from airflow_provider_ubunye.tasks.model import validate
from tests.tasks.conftest import CONFIG, MakeTask

LEAST = {"CONFIG": {"outputs": {"o": {"format": "csv", "path": "o"}}}}
WHOLE = {
    "MODEL": "etl",
    "VERSION": "1",
    "CONFIG": {
        "inputs": {
            "i": {"format": "csv", "path": "i", "options": {"header": True}},
            "j": {"format": "", "path": ""},
        },
        "transform": {"params": {"a": [1]}},
        "outputs": {
            "o": {
                "format": "csv",
                "path": "o",
                "mode": "append",
                "partition_by": ["a", "b"],
                "options": {"x": 1},
            },
            "p": {"format": "csv", "path": "p", "mode": None, "partition_by": None, "options": None},
        },
        "batch": ["dt", "region"],
    },
}

ODD = st.sampled_from(
    [
        None,
        "",
        " ",
        "x",
        "etl",
        "overwrite_partitions",
        1,
        True,
        1.5,
        [],
        ["a"],
        ["a", "a"],
        [" "],
        [1],
        {},
        {"a": 1},
        {1: 2},
    ]
)
KEYS = (
    "MODEL",
    "VERSION",
    "CONFIG",
    "inputs",
    "outputs",
    "transform",
    "batch",
    "params",
    "format",
    "path",
    "mode",
)
NAMES = st.sampled_from([*KEYS, "options", "partition_by", "x", 1])


def mutated(value: Any, draw: st.DrawFn) -> Any:
    """The value with faults here and there: at a leaf, in a key, a key too many, a key missing."""
    if draw(st.integers(0, 11)) == 0:
        return draw(ODD)
    if not isinstance(value, dict):
        return value
    made = {key: mutated(item, draw) for key, item in value.items() if draw(st.integers(0, 19))}
    if draw(st.integers(0, 9)) == 0:
        made[draw(NAMES)] = draw(ODD)
    return made


@st.composite
def documents(draw: st.DrawFn) -> dict[str, Any]:
    found = mutated(draw(st.sampled_from([LEAST, WHOLE])), draw)
    return found if isinstance(found, dict) else {"CONFIG": found}


def plain(document: Any) -> dict[str, Any]:
    """A document of either kind as dicts."""
    if hasattr(document, "model_dump"):
        dumped: dict[str, Any] = document.model_dump()
        return dumped

    def of(value: Any) -> Any:
        if hasattr(value, "_asdict"):
            return {key: of(item) for key, item in value._asdict().items()}
        return {key: of(item) for key, item in value.items()} if isinstance(value, dict) else value

    converted: dict[str, Any] = of(document)
    return converted


@given(documents())
@settings(max_examples=1500, deadline=None)
def test_it_says_what_the_models_say_or_leaves_it_to_them(document: dict[str, Any]) -> None:
    found = shape.read(document)
    try:
        expected = validate(document, "config.yaml")
    except ConfigError:
        assert found is None
    else:
        assert found is not None
        assert plain(found) == plain(expected)


@pytest.mark.parametrize("document", [LEAST, WHOLE])
def test_what_is_right_is_read(document: dict[str, Any]) -> None:
    found = shape.read(document)
    assert found is not None
    assert plain(found) == plain(validate(document, "config.yaml"))


def test_what_was_read_is_a_copy() -> None:
    options: dict[str, Any] = {"x": 1}
    document = {"CONFIG": {"outputs": {"o": {"format": "csv", "path": "o", "options": options}}}}
    found = shape.read(document)
    assert found is not None
    found.CONFIG.outputs["o"].options["y"] = 2
    assert options == {"x": 1}


@pytest.mark.parametrize(
    ("config", "imported"), [(CONFIG, False), (CONFIG.replace("CONFIG", "CONFGI"), True)]
)
def test_pydantic_is_imported_for_a_fault_only(make_task: MakeTask, config: str, imported: bool) -> None:
    folder = make_task(config=config)
    script = (
        "import sys; from pathlib import Path\n"
        "from airflow_provider_ubunye.core.errors import ConfigError\n"
        "from airflow_provider_ubunye.tasks.config import load_config\n"
        "from airflow_provider_ubunye.tasks.folder import TaskFolder\n"
        "try: load_config(TaskFolder(Path(sys.argv[1]), 'shop', 'daily', 'load_orders'), {'dt': '2026-11-01'})\n"
        "except ConfigError: pass\n"
        "print('pydantic' in sys.modules)"
    )
    argv = [sys.executable, "-c", script, str(folder.usecase_dir)]
    ran = subprocess.run(argv, check=True, capture_output=True, text=True, cwd=Path(__file__).parents[2])
    assert ran.stdout.split() == [str(imported)]
