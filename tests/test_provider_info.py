"""The distribution as Airflow and a first import meet it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.metadata import distribution, entry_points
from pathlib import Path

import pytest

import airflow_provider_ubunye
from airflow_provider_ubunye.get_provider_info import get_provider_info

DISTRIBUTION = "airflow-provider-ubunye"


def run_python(script: str, **environment: str) -> str:
    """Run ``script`` in an interpreter of its own and return what it printed."""
    done = subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_airflow_discovers_the_installed_provider(tmp_path: Path) -> None:
    script = """
import json
from airflow.providers_manager import ProvidersManager
provider = ProvidersManager().providers["airflow-provider-ubunye"]
print(json.dumps({"version": provider.version, "info": provider.data}))
"""
    printed = run_python(script, AIRFLOW_HOME=str(tmp_path), AIRFLOW__CORE__LOAD_EXAMPLES="False")
    found = json.loads(printed.splitlines()[-1])
    assert found["version"] == airflow_provider_ubunye.__version__
    # Airflow adds keys of its own; what we said must be there unchanged.
    assert found["info"] == {**found["info"], **get_provider_info()}


def test_airflow_lists_the_provider(tmp_path: Path) -> None:
    script = """
import sys
from airflow.__main__ import main
sys.argv = ["airflow", "providers", "get", "airflow-provider-ubunye", "--output", "json"]
main()
"""
    printed = run_python(script, AIRFLOW_HOME=str(tmp_path), AIRFLOW__CORE__LOAD_EXAMPLES="False")
    (row,) = json.loads(printed[printed.index("[") :])
    assert row == {"Provider": DISTRIBUTION, "Version": airflow_provider_ubunye.__version__}


def test_package_name_is_the_canonical_name_of_the_distribution() -> None:
    installed = distribution(DISTRIBUTION)
    assert get_provider_info()["package-name"] == installed.metadata["Name"] == DISTRIBUTION
    assert installed.version == airflow_provider_ubunye.__version__ == get_provider_info()["versions"][0]


def test_entry_point_leads_to_the_function() -> None:
    (entry,) = (
        entry
        for entry in entry_points(group="apache_airflow_provider")
        if entry.dist is not None and entry.dist.name == DISTRIBUTION
    )
    assert entry.load() is get_provider_info


@pytest.mark.parametrize("module", ["airflow_provider_ubunye", "airflow_provider_ubunye.get_provider_info"])
def test_importing_it_loads_nothing_heavy(module: str) -> None:
    script = f"""
import sys, {module}
heavy = {{"airflow", "jinja2", "pandas", "pyarrow", "pydantic", "rich"}}
print(sorted(heavy & set(sys.modules)))
"""
    assert run_python(script).strip() == "[]"


def test_an_unknown_public_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'no_such_name'"):
        airflow_provider_ubunye.no_such_name  # noqa: B018 - asking for it is the test


def test_every_public_name_loads_and_is_listed() -> None:
    for name in airflow_provider_ubunye.__all__:
        assert getattr(airflow_provider_ubunye, name) is not None
        assert name in dir(airflow_provider_ubunye)
