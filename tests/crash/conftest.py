"""What the tests of crashes share: real processes on a real disk."""

from __future__ import annotations

import sys

import pytest


def pytest_ignore_collect() -> bool | None:
    """Leave out what rests on Linux' process and file-system calls."""
    return None if sys.platform == "linux" else True


@pytest.fixture(autouse=True, scope="session")
def _warm() -> None:
    """Import once what the forked processes need."""
    from tests.crash.sweep import warm_up

    warm_up()
