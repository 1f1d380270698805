"""Interrupting the user's code when the lease is lost, and nothing but the user's code."""

from __future__ import annotations

import _thread
import contextlib
import signal
import threading
from collections.abc import Iterator
from types import CodeType, FrameType
from typing import Any


class Interrupt:
    """Sends the main thread a KeyboardInterrupt from the heartbeat's thread, while the user's block runs.

    The project's own steps ask the lease before each effect, so they are never cut short: an interrupt in
    the middle of taking back would leave more behind than it saves. Python delivers a signal at the first
    instruction of whatever runs next, which may be the ``__exit__`` that ends the block, before any ``try``
    in it. So the handler looks where it is, and there only makes a note.

    Made by the thread that runs the block; in any thread but the main one nothing is ever sent.

    :param end: the code of the function that ends the block.
    """

    def __init__(self, end: CodeType) -> None:
        self._end = end
        self._lock = threading.Lock()
        self._listening = False
        self._sent = False
        self._noted = False
        self._passes = False
        self._arrived: KeyboardInterrupt | None = None
        self._main = threading.current_thread() is threading.main_thread()
        self._previous: Any = None
        self._installed = False

    def listen(self) -> None:
        """The user's block begins."""
        if not self._main:
            return
        self._previous = signal.getsignal(signal.SIGINT)
        if callable(self._previous) or self._previous is signal.SIG_IGN:
            signal.signal(signal.SIGINT, self._handle)
            self._listening = self._installed = True

    def send(self) -> None:
        """Interrupt the user's block, if it still runs."""
        with self._lock:
            if self._listening:
                self._listening, self._sent = False, True
                _thread.interrupt_main()

    def arrived(self) -> KeyboardInterrupt | None:
        """The user's block has ended; from here on an interrupt is only noted, but in :meth:`passing`.

        :returns: the heartbeat's interrupt that came too late to be raised in the block.
        """
        with self._lock:
            self._listening = False
        # Setting a handler runs what is pending first, so nothing of the block arrives after this.
        if self._installed and signal.getsignal(signal.SIGINT) == self._handle:
            signal.signal(signal.SIGINT, self._handle)
        return self._arrived

    @contextlib.contextmanager
    def passing(self) -> Iterator[None]:
        """Let a person's interrupt through: what it cuts short here is taken back."""
        self._passes = True
        try:
            yield
        finally:
            self._passes = False

    def stop_listening(self) -> bool:
        """The run has ended. Returns whether a person's interrupt was noted meanwhile."""
        if self._installed and signal.getsignal(signal.SIGINT) == self._handle:
            signal.signal(signal.SIGINT, self._previous)
        return self._noted

    def _handle(self, number: int, frame: FrameType | None) -> None:
        ending = self._ends(frame)
        if not self._sent:
            if ending and not self._passes:
                # Taking back or settling, cut short, would leave more behind than it saves.
                self._noted = True
            elif callable(self._previous):
                self._previous(number, frame)
            return
        self._sent = False
        interrupt = KeyboardInterrupt()
        if ending:
            self._arrived = interrupt
            return
        raise interrupt

    def _ends(self, frame: FrameType | None) -> bool:
        while frame is not None:
            if frame.f_code is self._end:
                return True
            frame = frame.f_back
        return False
