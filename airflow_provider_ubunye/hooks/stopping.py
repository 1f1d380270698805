"""Being told to stop: a signal becomes an exception, so that a run takes back what it wrote."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
from types import FrameType
from typing import Any


@contextlib.contextmanager
def interruptible(*numbers: signal.Signals) -> Iterator[None]:
    """While the block runs, the first of these signals raises KeyboardInterrupt in it.

    Airflow leaves SIGINT to the system, and with it the way in which the heartbeat's thread tells the main one
    that the lease is lost; on SIGTERM it calls ``on_kill`` and goes on. Only the first is raised: a second one
    must not break into the taking back. Outside the main thread Python can't do this, and nothing changes.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    told = False

    def tell(_number: int, _frame: FrameType | None) -> None:
        nonlocal told
        if not told:
            told = True
            raise KeyboardInterrupt

    before: dict[signal.Signals, Any] = {number: signal.signal(number, tell) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
