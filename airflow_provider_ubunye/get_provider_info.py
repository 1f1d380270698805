"""What Airflow reads to know the provider: names only, so that every ``airflow`` command stays quick."""

from __future__ import annotations

from typing import Any

from airflow_provider_ubunye import __version__


def get_provider_info() -> dict[str, Any]:
    """Describe this provider, in the form of Airflow's provider info schema.

    ``package-name`` is the distribution's canonical name: Airflow's discovery of *all* providers
    fails on one that differs.
    """
    return {
        "package-name": "airflow-provider-ubunye",
        "name": "Ubunye",
        "description": "Batches that are safe to run again: leases, take-back and records of runs.",
        "versions": [__version__],
        "operators": [_modules("operators")],
        "hooks": [_modules("hooks")],
        "triggers": [_modules("triggers")],
        "task-decorators": [
            {"name": "ubunye", "class-name": "airflow_provider_ubunye.decorators.ubunye.ubunye_task"}
        ],
        "connection-types": [_CONNECTION],
        "config": _CONFIG,
        "extra-links": ["airflow_provider_ubunye.links.ubunye.UbunyeRunLink"],
    }


_CONFIG: dict[str, Any] = {
    "ubunye": {
        "description": "Tasks that run a batch under a lease.",
        "options": {
            "held_timeout": {
                "description": "Seconds that a task waits in all for a batch that another run holds, where it "
                "has no held_timeout of its own. Empty: for ever.",
                "type": "float",
                "version_added": "0.1.0",
                "example": "86400",
                "default": "",
            }
        },
    }
}


def _modules(kind: str) -> dict[str, Any]:
    return {"integration-name": "Ubunye", "python-modules": [f"airflow_provider_ubunye.{kind}.ubunye"]}


def _field(label: str, description: str, *, kind: str = "string") -> dict[str, Any]:
    return {"label": label, "description": description, "schema": {"type": [kind, "null"]}}


_CONNECTION: dict[str, Any] = {
    "connection-type": "ubunye",
    "hook-class-name": "airflow_provider_ubunye.hooks.ubunye.UbunyeHook",
    "hook-name": "Ubunye",
    "conn-fields": {
        "usecase_dir": _field("Use case folder", "The folder of all use cases, as the workers see it."),
        "state": _field(
            "State store",
            "A folder that all workers and the triggerer share. Empty: UBUNYE_STATE, else .ubunye in the use "
            "case folder, as in the shell.",
        ),
        "lineage_dir": _field(
            "Run records", "The folder of run records. Empty: .ubunye/lineage in the use case folder."
        ),
        "takeover_seconds": _field(
            "Time to takeover",
            "Seconds without a heartbeat after which a run on another machine may be taken over. Empty: 900.",
            kind="number",
        ),
        "backend": _field("Backend", "The engine of tasks that name none. Empty: pandas."),
    },
    "ui-field-behaviour": {
        "hidden-fields": ["host", "schema", "login", "password", "port", "extra"],
        "relabeling": {},
        "placeholders": {"usecase_dir": "/srv/pipelines", "state": "/srv/ubunye-state"},
    },
}
