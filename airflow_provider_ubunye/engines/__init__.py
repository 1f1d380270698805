"""Engines read inputs into frames and write frames into a staging folder; they never see a lease."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_provider_ubunye.core.errors import UsageError
from airflow_provider_ubunye.engines.formats import did_you_mean

if TYPE_CHECKING:
    from airflow_provider_ubunye.engines.pandas import PandasEngine

ENGINES = ("pandas", "spark")


def engine(name: str) -> PandasEngine:
    """The engine called ``name``. Its libraries are imported when it first reads or writes.

    :raises UsageError: the engine is not known, or is not part of this version.
    """
    if name == "pandas":
        from airflow_provider_ubunye.engines.pandas import PandasEngine

        return PandasEngine()
    if name == "spark":
        raise UsageError("the Spark engine is not part of this version: it arrives later; use pandas")
    raise UsageError(f"there is no engine {name!r}{did_you_mean(name, ENGINES)}")
