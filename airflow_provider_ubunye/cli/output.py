"""What a command says, and where: results on stdout, refusals, warnings and errors on stderr.

With ``--json`` stdout holds exactly one JSON document, and every line for people goes to stderr.
"""

from __future__ import annotations

import contextlib
import os
import sys
from typing import TYPE_CHECKING, Any, TextIO

if TYPE_CHECKING:
    import logging
    from collections.abc import Iterator

    from airflow_provider_ubunye.core.errors import UbunyeError

LOGGER = "airflow_provider_ubunye"

PREFIX = {1: "Refused: ", 3: "Failed: ", 4: "Stopped: ", 5: "A person must look: "}


class Out:
    """The words of one call.

    :param json: whether stdout is for one JSON document.
    :param debug: whether an error's traceback is shown too.
    :param last: whether the process ends with this call.
    :ivar undelivered: what the system said when a result could not be written, for another reason than that
        its reader had gone.
    """

    def __init__(self, *, json: bool = False, debug: bool = False, last: bool = False) -> None:
        self.json = json
        self.debug = debug
        self.last = last
        self.told = False
        self.undelivered: str | None = None

    @property
    def live(self) -> bool:
        """Whether a person looks on: both streams are a terminal, and no program reads stdout."""
        return not self.json and all(s is not None and s.isatty() for s in (sys.stdout, sys.stderr))

    def line(self, text: str = "") -> None:
        """One line of a result."""
        self._write(sys.stderr if self.json else sys.stdout, visible(masked(text)))

    def warn(self, text: str) -> None:
        """One line about something that may be wrong."""
        self._write(sys.stderr, visible(masked(f"[WARN] {text}")))

    def error(self, error: UbunyeError, prefix: str | None = None) -> None:
        """An error as a person reads it: its sentence, then where and hint; with ``--debug`` the traceback.

        :param prefix: what stands before the sentence, instead of the exit code's own word.
        """
        first, *more = error.lines()
        start = PREFIX.get(error.exit_code, "") if prefix is None else prefix
        for line in (f"[ERROR] {start}{one_line(first)}", *more):
            self._write(sys.stderr, visible(masked(line)))
        if self.debug:
            from traceback import TracebackException

            shown = TracebackException.from_exception(error)
            # Where and hint stand above already.
            shown.__notes__ = None
            for line in "".join(shown.format()).splitlines():
                self._write(sys.stderr, visible(masked(line)))

    def document(self, value: Any) -> None:
        """The JSON document of the call."""
        import json

        # ASCII: whatever the terminal's or the pipe's encoding is, a program reads the same text.
        self._write(sys.stdout, json.dumps(value, indent=2, default=str))
        self.told = True

    @contextlib.contextmanager
    def logged(self) -> Iterator[None]:
        """Show the package's log lines as lines of this call while the block runs.

        With ``--json`` whatever the block prints goes to stderr, so the document comes after it.
        """
        import logging

        from airflow_provider_ubunye.tasks.secrets import RedactingFilter

        handler = self._handler(logging.Handler)
        handler.addFilter(RedactingFilter())
        logger = logging.getLogger(LOGGER)
        before = logger.level, logger.propagate
        logger.addHandler(handler)
        logger.setLevel(logging.DEBUG if self.debug else logging.INFO)
        # What the user's code sets up for its own logging must not say our lines a second time.
        logger.propagate = False
        try:
            with _only_stderr() if self.json else contextlib.nullcontext():
                yield
        finally:
            logger.removeHandler(handler)
            logger.level, logger.propagate = before

    def _handler(self, base: type[logging.Handler]) -> logging.Handler:
        out = self

        class Lines(base):  # type: ignore[misc, valid-type]
            def emit(self, record: logging.LogRecord) -> None:
                said = one_line(record.getMessage())
                out.warn(said) if record.levelno >= 30 else out.line(said)

        return Lines()

    def _write(self, stream: TextIO | None, text: str) -> None:
        if stream is None:
            return
        try:
            stream.write(text + "\n")
            stream.flush()
        except UnicodeEncodeError:
            self._write(stream, text.encode("ascii", "backslashreplace").decode("ascii"))
        except BrokenPipeError:
            # The reader has seen enough. The run goes on; what it did is told by its exit code.
            _silence(stream)
        except (OSError, ValueError) as error:
            if stream is sys.stdout:
                self.undelivered = str(error)
            _silence(stream)


@contextlib.contextmanager
def _only_stderr() -> Iterator[None]:
    """Keep the prints of the user's code, and of programs that it starts, away from stdout."""
    streams = sys.stdout, sys.stderr
    with contextlib.ExitStack() as undo:
        undo.enter_context(contextlib.redirect_stdout(sys.stderr))
        with contextlib.suppress(OSError, ValueError, AttributeError):
            if [stream.fileno() for stream in streams] == [1, 2]:
                streams[0].flush()
                kept = os.dup(1)
                undo.callback(os.close, kept)
                os.dup2(2, 1)
                undo.callback(os.dup2, kept, 1)
        yield


def one_line(text: str) -> str:
    """The text on one line: a foreign library's message may have many."""
    return " ".join(text.split()) if "\n" in text or "\r" in text else text


def visible(text: str) -> str:
    """The text with everything that would steer a terminal written out: names may come from a forged file."""
    if text.isprintable():
        return text
    text = text.expandtabs(4)
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


def masked(text: str) -> str:
    """The text without secrets. Where that module was never loaded, no secret was read."""
    secrets = sys.modules.get("airflow_provider_ubunye.tasks.secrets")
    return str(secrets.mask(text)) if secrets is not None else text


def _silence(stream: TextIO) -> None:
    with contextlib.suppress(OSError, ValueError, AttributeError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        try:
            os.dup2(nowhere, stream.fileno())
        finally:
            os.close(nowhere)


def leave_quietly() -> None:
    """Flush both streams, so that Python's own last flush can't fail with a traceback."""
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            try:
                stream.flush()
            except (OSError, ValueError):
                _silence(stream)
