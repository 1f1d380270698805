"""What an Airflow connection of type ``ubunye`` says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from airflow_provider_ubunye.core.errors import UsageError


@dataclass(frozen=True)
class Settings:
    """What a connection says; None for what it leaves open.

    :param usecase_dir: the folder of all use cases.
    :param state: the state store; else ``UBUNYE_STATE``, else ``<usecase_dir>/.ubunye``.
    :param lineage_dir: the folder of run records.
    :param takeover_seconds: seconds without a heartbeat after which a run elsewhere may be taken over.
    :param backend: the engine of tasks that name none.
    """

    usecase_dir: str | None = None
    state: str | None = None
    lineage_dir: str | None = None
    takeover_seconds: float | None = None
    backend: str | None = None

    @classmethod
    def of(cls, conn_id: str, extra: Mapping[str, Any]) -> Settings:
        """Read a connection's extra. :raises UsageError: a field that is not known, or of another type."""
        known = [f.name for f in fields(cls)]
        for name in extra:
            if name not in known:
                raise UsageError(
                    f"the connection {conn_id!r} has a field {name!r}; it knows {', '.join(known)}"
                )
        given = {name: value for name, value in extra.items() if value not in (None, "")}
        seconds = given.pop("takeover_seconds", None)
        for name, value in given.items():
            if not isinstance(value, str):
                raise UsageError(f"{name} in the connection {conn_id!r} is {value!r}, not text")
        try:
            takeover = None if seconds is None else float(seconds)
        except (TypeError, ValueError):
            raise UsageError(
                f"takeover_seconds in the connection {conn_id!r} is {seconds!r}, not a number"
            ) from None
        return cls(**given, takeover_seconds=takeover)
