"""Engines and formats by name."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import EntryPoint, EntryPoints

import pytest

from airflow_provider_ubunye.core.errors import ConfigError, UsageError
from airflow_provider_ubunye.core.specs import InputSpec, OutputSpec
from airflow_provider_ubunye.engines import engine, formats


def test_the_engine_is_found_without_importing_what_is_heavy() -> None:
    code = (
        "import sys; from airflow_provider_ubunye.engines import engine; assert engine('pandas').name == 'pandas';"
        "print([m for m in ('pandas', 'pyarrow', 'numpy', 'fastavro', 'airflow') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_an_engine_that_is_not_there_is_said_in_one_line() -> None:
    with pytest.raises(UsageError, match=r"^the Spark engine .* arrives later"):
        engine("spark")
    with pytest.raises(UsageError, match=r"^there is no engine 'panda'; did you mean 'pandas'\?"):
        engine("panda")


class Numbers:
    """A format of a user's own package."""

    def read(self, spec: InputSpec) -> str:
        return f"read {spec.path}"

    def stage(self, frame: object, spec: OutputSpec, staging: object) -> int:
        return 7


class OnlyReads:
    def read(self, spec: InputSpec) -> str:
        return ""


@pytest.fixture
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    found = EntryPoints(
        EntryPoint(name, f"{__name__}:{target}", formats.GROUP)
        for name, target in (("numbers", "Numbers"), ("reads", "OnlyReads"), ("broken", "NoSuchThing"))
    )
    monkeypatch.setattr(formats, "entry_points", lambda group: found.select(group=group))


@pytest.mark.usefixtures("registered")
def test_a_registered_format_reads_and_writes() -> None:
    pandas = engine("pandas")
    assert pandas.read(InputSpec("i", "numbers", "/x")) == "read /x"
    assert pandas.stage(None, OutputSpec("o", "numbers", "/x"), None) == 7  # type: ignore[arg-type]


@pytest.mark.usefixtures("registered")
@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("parqet", r"there is no format 'parqet'; did you mean 'parquet'\?"),
        ("number", r"there is no format 'number'; did you mean 'numbers'\?"),
        ("reads", r"format 'reads' .* can't be written: it has no stage\(\)"),
        ("broken", r"format 'broken' could not be loaded from .*NoSuchThing: AttributeError"),
    ],
)
def test_a_format_that_can_not_be_used_is_said_in_one_line(name: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message) as error:
        engine("pandas").stage(None, OutputSpec("o", name, "/x"), None)  # type: ignore[arg-type]
    assert "\n" not in error.value.what
