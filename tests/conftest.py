"""What all tests share."""

from __future__ import annotations

import signal

import pytest

# Started in the background or under nohup, the tests ignore these, and so would every program they start and send
# them to.
for _name in ("SIGINT", "SIGHUP", "SIGTERM"):
    _number = getattr(signal, _name)
    if signal.getsignal(_number) is signal.SIG_IGN:
        signal.signal(_number, signal.default_int_handler if _name == "SIGINT" else signal.SIG_DFL)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run what is marked slow last: a plain mistake shows within seconds."""
    items.sort(key=lambda item: item.get_closest_marker("slow") is not None)
