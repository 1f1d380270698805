"""Ids, times and log lines that depend on the execution alone."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator
from typing import Protocol
from unittest import mock

from airflow_provider_ubunye.core import batch, log
from airflow_provider_ubunye.core.lease import Lease


class Maker(Protocol):
    """Makes the next id of the run that is going on."""

    def next_id(self) -> str: ...


class Ids:
    """Stands in for the module ``uuid``."""

    def __init__(self) -> None:
        self.maker: Maker | None = None

    def uuid4(self) -> Ids:
        return self

    @property
    def hex(self) -> str:
        assert self.maker is not None
        return self.maker.next_id()


IDS = Ids()


def _now() -> str:
    return "2026-11-02T03:00:00Z"


@contextlib.contextmanager
def determined() -> Iterator[None]:
    """Ids and times that depend on the execution alone, and no log lines: millions of runs would say them."""
    logger = logging.getLogger("airflow_provider_ubunye")
    disabled = logger.disabled
    logger.disabled = True
    try:
        with (
            mock.patch.object(log, "uuid", IDS),
            mock.patch.object(batch, "uuid", IDS),
            mock.patch.object(log, "utc_now", _now),
            mock.patch.object(Lease, "kept_alive", contextlib.nullcontext),
        ):
            yield
    finally:
        logger.disabled = disabled
