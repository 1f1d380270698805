"""Batches that are safe to run again.

Importing this package costs milliseconds: a public name is loaded when it is first asked for.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from airflow_provider_ubunye.api import batch_run as batch_run
    from airflow_provider_ubunye.api import run_pipeline as run_pipeline
    from airflow_provider_ubunye.api import run_task as run_task
    from airflow_provider_ubunye.hooks.ubunye import UbunyeHook as UbunyeHook
    from airflow_provider_ubunye.operators.ubunye import UbunyeTaskOperator as UbunyeTaskOperator
    from airflow_provider_ubunye.tasks.task import Task as Task
    from airflow_provider_ubunye.tasks.task import TaskContext as TaskContext

__version__ = "0.1.0"

# Public name -> module that defines it. Adding a line here is all it takes to publish a name.
_PUBLIC: dict[str, str] = {
    "Task": "airflow_provider_ubunye.tasks.task",
    "TaskContext": "airflow_provider_ubunye.tasks.task",
    "UbunyeHook": "airflow_provider_ubunye.hooks.ubunye",
    "UbunyeTaskOperator": "airflow_provider_ubunye.operators.ubunye",
    "batch_run": "airflow_provider_ubunye.api",
    "run_pipeline": "airflow_provider_ubunye.api",
    "run_task": "airflow_provider_ubunye.api",
}

__all__ = ["__version__", *_PUBLIC]  # noqa: PLE0604 - the names of a dict are strings


def __getattr__(name: str) -> object:
    """Load the module that defines the public name ``name``; AttributeError for any other."""
    if name not in _PUBLIC:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(import_module(_PUBLIC[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_PUBLIC})
