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
    }
