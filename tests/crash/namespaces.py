"""Processes with mounts or pids of their own, so that nothing leaks out of a test. Needs root."""

from __future__ import annotations

import ctypes
import os
import subprocess
from pathlib import Path

from tests.crash import processes
from tests.crash.processes import SUCCESS, Act, Ended, Result

_NEW_MOUNTS = 0x00020000
_NEW_PIDS = 0x20000000


def with_mounts(*mounts: list[str], act: Act) -> Result:
    """Carry out ``act`` in a process that alone sees some mounts.

    :param mounts: arguments of ``mount`` each.
    """

    def mounted() -> str:
        _unshare(_NEW_MOUNTS)
        _mount("--make-rprivate", "/")
        for mount in mounts:
            _mount(*mount)
        return act()

    return processes.run(mounted)


def in_new_pids(act: Act) -> str:
    """Carry out ``act`` as pid 1 of a pid namespace with its own /proc, as in a container.

    Call it in a process of its own.

    :raises Ended: it did not succeed.
    """
    _unshare(_NEW_MOUNTS)
    _mount("--make-rprivate", "/")
    # Last: the next process that is started is the namespace's first, and its end is the namespace's.
    _unshare(_NEW_PIDS)

    def contained() -> str:
        assert os.getpid() == 1
        # Nothing but a system call: a first process that starts others must also wait for their orphans.
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.mount(b"proc", b"/proc", b"proc", 0, None) != 0:
            raise OSError(ctypes.get_errno(), "mount /proc")
        return act()

    result = processes.run(contained)
    if result.outcome != SUCCESS:
        raise Ended(result)
    return result.said


def bind(source: Path, target: Path) -> list[str]:
    """The same folder at another path."""
    os.makedirs(target, exist_ok=True)
    return ["--bind", str(source), str(target)]


def tmpfs(target: Path, size: str = "1m") -> list[str]:
    """A file system in memory.

    :param size: as ``mount`` takes it.
    """
    os.makedirs(target, exist_ok=True)
    return ["-t", "tmpfs", "-o", f"size={size},mode=755", "tmpfs", str(target)]


def _unshare(flags: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(flags) != 0:
        raise OSError(ctypes.get_errno(), "unshare")


def _mount(*arguments: str) -> None:
    subprocess.run(["mount", *arguments], check=True)
