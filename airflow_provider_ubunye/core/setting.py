"""Where a run's state, files and records are: the values that every act on a batch is parametrised by."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from airflow_provider_ubunye.core.log import BatchLog
from airflow_provider_ubunye.core.owner import Owner, is_alive, this_process

if TYPE_CHECKING:
    # For types alone: looking at leases must not pay for what only a run needs.
    from airflow_provider_ubunye.core.disk import Disk
    from airflow_provider_ubunye.core.places import Places
    from airflow_provider_ubunye.core.records import Records
    from airflow_provider_ubunye.core.store.base import BatchStore


def _local_disk() -> Disk:
    from airflow_provider_ubunye.core.disk import LocalDisk

    return LocalDisk()


@dataclass(frozen=True)
class Setting:
    """Where state, files and records are, and how this process tells the living from the dead.

    :param staging_root: a folder of the state store on a disk, for staging; None when it is not on one.
    :param records: where run records are; None where there are none.
    :param recording: whether this run keeps one.
    :param protected: False when the lease is turned off.
    :param shell: the options that name the store in the shell, for hints; ``--state …`` by default.
    """

    store: BatchStore
    places: Places
    disk: Disk = field(default_factory=_local_disk)
    staging_root: str | None = None
    records: Records | None = None
    recording: bool = True
    owner: Owner = field(default_factory=this_process)
    is_alive: Callable[[Owner], bool] = is_alive
    heartbeat: bool = True
    protected: bool = True
    shell: str = ""

    def __post_init__(self) -> None:
        if not self.shell:
            object.__setattr__(self, "shell", f"--state {shlex.quote(self.store.where)}")

    @property
    def roots(self) -> list[str]:
        """The folders that hold state and run records: real paths, with forward slashes."""
        found = [getattr(self.store, "root", None), getattr(self.records, "root", None)]
        return [os.path.realpath(root).replace(os.sep, "/") for root in found if root is not None]

    def log(self, batch_key: str, task: str) -> BatchLog:
        """The log of one batch."""
        return BatchLog(self.store, f"leases/{task}/{batch_key}", self.shell)

    def typed(self, command: str) -> str:
        """A command about this store as a person types it."""
        return f"ubunye {command} {self.shell}"
