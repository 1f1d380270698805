"""Processes that are killed, stopped and watched: forked, so that nothing is imported again."""

from __future__ import annotations

import json
import logging
import os
import signal
import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass

from airflow_provider_ubunye.core.errors import UbunyeError
from tests.crash.world import UserError

Act = Callable[[], str]

SUCCESS = "success"
KILLED = "killed"


@dataclass(frozen=True)
class Result:
    """How a process ended.

    :param outcome: ``success``, ``killed``, or the class of the error that it raised.
    :param said: the run's id, or the error's own words.
    """

    outcome: str
    said: str = ""
    log: str = ""


class Ended(Exception):
    """A process that carried something out for this one ended otherwise than in success."""

    def __init__(self, result: Result) -> None:
        super().__init__(str(result))
        self.result = result


class Child:
    """A forked process that carries out ``act`` and reports."""

    def __init__(self, act: Callable[[], str]) -> None:
        sys.stdout.flush()
        sys.stderr.flush()
        self._pipe, tell = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            _carry_out(act, tell)
        os.close(tell)

    def stopped(self) -> bool:
        """Wait until the process stops itself (True) or ends (False)."""
        _, status = os.waitpid(self.pid, os.WUNTRACED)
        if os.WIFSTOPPED(status):
            return True
        self._status = status
        self._ended = True
        return False

    _ended = False
    _status = 0

    def wait(self) -> Result:
        with os.fdopen(self._pipe, "rb") as pipe:
            told = pipe.read()
        if not self._ended:
            _, self._status = os.waitpid(self.pid, 0)
        if told:
            return Result(*json.loads(told))
        killed = os.WIFSIGNALED(self._status) and os.WTERMSIG(self._status) == signal.SIGKILL
        return Result(KILLED if killed else f"status {self._status}")


def run(act: Callable[[], str]) -> Result:
    """Carry out ``act`` in a process of its own and wait for it."""
    return Child(act).wait()


def kill_self() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def stop_self() -> None:
    os.kill(os.getpid(), signal.SIGSTOP)


class _Said(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(record.getMessage())


def _carry_out(act: Callable[[], str], tell: int) -> None:
    said = _Said()
    logger = logging.getLogger("airflow_provider_ubunye")
    logger.handlers[:] = [said]
    logger.setLevel(logging.INFO)
    logger.propagate = False
    real_write = os.write
    try:
        result = (SUCCESS, act())
    except (UbunyeError, UserError) as error:
        result = (type(error).__name__, "\n".join(error.lines()) if isinstance(error, UbunyeError) else "")
    except Ended as error:
        result = (error.result.outcome, error.result.said)
    except BaseException as error:  # noqa: BLE001 - whatever it is, the parent is told
        result = (type(error).__name__, traceback.format_exc())
    real_write(tell, json.dumps((*result, "\n".join(said.lines))).encode())
    os._exit(0)
