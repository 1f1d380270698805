"""The distribution as Airflow and a first import meet it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.metadata import distribution, entry_points
from importlib.util import find_spec
from pathlib import Path

import pytest

import airflow_provider_ubunye
from airflow_provider_ubunye.get_provider_info import get_provider_info
from tests.airflowhome import isolate

isolate()

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


def test_airflow_knows_what_the_provider_brings(tmp_path: Path) -> None:
    script = """
import json
from airflow.configuration import conf
from airflow.providers_manager import ProvidersManager
from airflow.sdk import task
manager = ProvidersManager()
hook = manager.hooks["ubunye"]
widgets = [name for name in manager.connection_form_widgets if name.startswith("extra__ubunye__")]
print(json.dumps({
    "hook": [hook.hook_class_name, hook.connection_id_attribute_name, hook.hook_name],
    "widgets": sorted(widgets),
    "hidden": manager.field_behaviours["ubunye"]["hidden_fields"],
    "decorator": task.ubunye.__module__,
    "held_timeout": conf.get("ubunye", "held_timeout"),
    "links": [name for name in manager.extra_links_class_names if "ubunye" in name],
}))
"""
    printed = run_python(script, AIRFLOW_HOME=str(tmp_path), AIRFLOW__CORE__LOAD_EXAMPLES="False")
    found = json.loads(printed.splitlines()[-1])
    assert found["hook"] == ["airflow_provider_ubunye.hooks.ubunye.UbunyeHook", "ubunye_conn_id", "Ubunye"]
    fields = ["backend", "lineage_dir", "state", "takeover_seconds", "usecase_dir"]
    assert found["widgets"] == [f"extra__ubunye__{field}" for field in fields]
    assert "password" in found["hidden"]
    assert found["decorator"] == "airflow_provider_ubunye.decorators.ubunye"
    assert found["held_timeout"] == ""
    # One that fails to import would be left out without a word.
    assert found["links"] == ["airflow_provider_ubunye.links.ubunye.UbunyeRunLink"]


def test_every_module_that_is_named_exists() -> None:
    info = get_provider_info()
    modules = [
        m
        for kind in ("hooks", "operators", "triggers")
        for part in info[kind]
        for m in part["python-modules"]
    ]
    for module in [*modules, *(d["class-name"].rpartition(".")[0] for d in info["task-decorators"])]:
        assert find_spec(module) is not None


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
heavy = {{"airflow", "croniter", "jinja2", "pandas", "pyarrow", "pydantic", "rich"}}
print(sorted(heavy & set(sys.modules)))
"""
    assert run_python(script).strip() == "[]"


def test_an_unknown_public_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'no_such_name'"):
        airflow_provider_ubunye.no_such_name  # noqa: B018 - asking for it is the test


def test_the_public_names() -> None:
    assert set(airflow_provider_ubunye.__all__) == {
        "Task",
        "TaskContext",
        "UbunyeHook",
        "UbunyeTaskOperator",
        "__version__",
        "batch_run",
        "run_pipeline",
        "run_task",
    }


def test_every_public_name_loads_and_is_listed() -> None:
    for name in airflow_provider_ubunye.__all__:
        assert getattr(airflow_provider_ubunye, name) is not None
        assert name in dir(airflow_provider_ubunye)
