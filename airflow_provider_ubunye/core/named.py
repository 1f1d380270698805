"""An output that can't be taken back: named in log and record, never deleted."""

from __future__ import annotations

from collections.abc import Callable

from airflow_provider_ubunye.core.lease import Lease
from airflow_provider_ubunye.core.places import Places
from airflow_provider_ubunye.core.state import Written


class NamedLanding:
    """Writes one output through a writer that claims nothing.

    :param write: writes the rows; called once, after every file of the run has landed.
    """

    kind = "named"

    def __init__(self, places: Places, name: str, mode: str, path: str, write: Callable[[], None]) -> None:
        self.written = Written(name, self.kind, mode, places.place(path))
        self.began = False
        self._write = write

    def commit(self, lease: Lease) -> None:
        """Announce, write, and record that it is written."""
        lease.append("committing", {"output": self.written.name, "detail": {"named": True}})
        self.began = True
        self._write()
        lease.append("committed", {"output": self.written.name, "detail": {"named": True}})
