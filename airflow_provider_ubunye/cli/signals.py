"""SIGINT, SIGTERM and SIGHUP: all of them stop a run in order."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Iterator
from types import CodeType, FrameType

_STOPPING = b"[WARN] Already stopping: what was written is being taken back.\n"
_STOPS = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))


class Stops:
    """The signals that came.

    The first one interrupts the run, which takes itself back. Further ones are only answered: terminals and
    supervisors often send several, and a take-back that is broken off is left to the next run. Where the task's
    own code goes on in spite of the first, a third interrupts it once more.

    :ivar count: how many came.
    :ivar name: the first one's name.
    """

    def __init__(self) -> None:
        self.count = 0
        self.name = ""
        self._armed = False
        self._end: CodeType | None = None
        self._back: CodeType | None = None

    @contextlib.contextmanager
    def armed(self, *, end: CodeType | None = None, back: CodeType | None = None) -> Iterator[None]:
        """The part that a first signal interrupts. Outside of it the signal is counted, for the caller to ask.

        :param end: the code of the function that ends a run: a third signal does not interrupt that.
        :param back: the code of the function that takes a run back: none interrupts that.
        :raises KeyboardInterrupt: one came before.
        """
        self._armed, self._end, self._back = True, end, back
        try:
            if self.count:
                raise KeyboardInterrupt(self.name)
            yield
        finally:
            self._armed = False

    def __call__(self, number: int, frame: FrameType | None) -> None:
        self.count += 1
        self.name = self.name or signal.Signals(number).name
        if self._armed and self.count != 2 and not _in(self._back if self.count == 1 else self._end, frame):
            raise KeyboardInterrupt(self.name)
        if self._armed or self.count > 1:
            with contextlib.suppress(OSError):
                # Not through sys.stderr: the signal may have come in the middle of a write to it.
                os.write(2, _STOPPING)

    @property
    def by(self) -> str:
        """`` by SIGTERM``, empty where none came."""
        return f" by {self.name}" if self.name else ""


def _in(code: CodeType | None, frame: FrameType | None) -> bool:
    """Whether a signal that came at ``frame`` came in a call of the function with this code."""
    while frame is not None:
        if frame.f_code is code:
            return True
        frame = frame.f_back
    return False


@contextlib.contextmanager
def stopping(*, last: bool = False) -> Iterator[Stops]:
    """Count the signals while the block runs, and let them interrupt what is armed.

    :param last: the process ends after the block: from there on signals are ignored, so that it ends with the
        exit code that tells what became of the batch, not by a signal that came too late to stop anything.

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
            signal.signal(number, signal.SIG_IGN if last else handler)
