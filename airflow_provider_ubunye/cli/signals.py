"""SIGINT, SIGTERM and SIGHUP: all of them stop a run in order."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Iterator
from types import FrameType

_STOPPING = (
    b"[WARN] Already stopping: what was written is being taken back. A third signal breaks that off.\n"
)
_STOPS = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))


class Stops:
    """The signals that came.

    The first one interrupts the run, which takes itself back. The second is only answered: terminals and
    supervisors often send two, and a take-back that is broken off is left to the next run. A third breaks off.

    :ivar count: how many came.
    :ivar name: the first one's name.
    """

    def __init__(self) -> None:
        self.count = 0
        self.name = ""
        self._armed = False

    @contextlib.contextmanager
    def armed(self) -> Iterator[None]:
        """The part that a first signal interrupts. Outside of it the signal is counted, for the caller to ask.

        :raises KeyboardInterrupt: one came before.
        """
        self._armed = True
        try:
            if self.count:
                raise KeyboardInterrupt(self.name)
            yield
        finally:
            self._armed = False

    def __call__(self, number: int, frame: FrameType | None) -> None:  # noqa: ARG002 - a handler's signature
        self.count += 1
        self.name = self.name or signal.Signals(number).name
        if self.count == 2:
            with contextlib.suppress(OSError):
                # Not through sys.stderr: the signal may have come in the middle of a write to it.
                os.write(2, _STOPPING)
        elif self._armed or self.count > 2:
            raise KeyboardInterrupt(self.name)

    @property
    def by(self) -> str:
        """`` by SIGTERM``, empty where none came."""
        return f" by {self.name}" if self.name else ""


@contextlib.contextmanager
def stopping() -> Iterator[Stops]:
    """Count the signals while the block runs, and let them interrupt what is armed.

    A signal that the caller's shell has set to be ignored (``nohup``, a background job) stays ignored. In
    another thread than the main one nothing is changed.
    """
    stops = Stops()
    before = {}
    if threading.current_thread() is threading.main_thread():
        for number in _STOPS:
            if signal.getsignal(number) is not signal.SIG_IGN:
                before[number] = signal.signal(number, stops)
    try:
        yield stops
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
