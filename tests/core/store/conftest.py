"""One suite over every store: a fixture gives each kind, and another client of the same one."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from airflow_provider_ubunye.core.store import BatchStore, FileStore, MemoryStore

Client = Callable[[], BatchStore]

KINDS = ["file", "file without links: ENOTSUP", "file without links: EPERM", "memory"]


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """The kind of store; where links are not to be had, ``os.link`` says so as SMB and FUSE mounts do."""
    name = str(request.param)
    if "without links" in name:
        code = getattr(errno, name.rpartition(" ")[2])

        def no_link(source: str, target: str) -> None:
            raise OSError(code, os.strerror(code), source)

        monkeypatch.setattr(os, "link", no_link)
    return name


@pytest.fixture
def client(kind: str, tmp_path: Path) -> Client:
    """Gives further clients of one store."""
    memory = MemoryStore()
    return lambda: memory if kind == "memory" else FileStore(tmp_path / "state")


@pytest.fixture
def store(client: Client) -> BatchStore:
    return client()
