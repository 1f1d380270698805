"""Who a process is, so that another one can tell whether it is still there (contract, invariant 9)."""

from __future__ import annotations

import functools
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from airflow_provider_ubunye.core.localdisk import LINUX

_LARGEST = 2**63


@dataclass(frozen=True)
class Owner:
    """A process on a machine.

    :param boot: changes with every start of the machine; empty where it, or what the processes of this place
        are, can't be read: then no pid means anything, and the heartbeat alone decides.
    :param pid_space: the pid namespace, so that a container with the same host name is another place.
    :param started: the process' start: clock ticks since boot on Linux, else seconds since the epoch; negative
        when it can't be read.
    :param run: the run in that process that is meant; empty for whichever.
    """

    host: str
    boot: str
    pid_space: str
    pid: int
    started: float
    user: str = ""
    run: str = ""

    def same_place(self, other: Owner) -> bool:
        """Whether a pid of the other means the same process here: same host, boot and pid namespace.

        Never of an owner whose start is not known: it could not be told from a later one with its pid.
        """
        known = bool(self.boot) and self.started >= 0
        return known and (self.host, self.boot, self.pid_space) == (other.host, other.boot, other.pid_space)

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Owner:
        """Read an owner back. What is missing or of another type becomes something no process has."""

        def text(name: str) -> str:
            return value[name] if isinstance(value.get(name), str) else ""

        def number(name: str) -> float:
            found = value.get(name)
            if not isinstance(found, int | float) or isinstance(found, bool):
                return -1
            # Comparing is safe where converting is not: JSON has integers that no float can hold.
            return found if 0 <= found < _LARGEST else -1

        pid = number("pid")
        return cls(
            host=text("host"),
            boot=text("boot"),
            pid_space=text("pid_space"),
            pid=pid if isinstance(pid, int) else -1,
            started=float(number("started")),
            user=text("user"),
            run=text("run"),
        )


def this_process() -> Owner:
    """Who the calling process is."""
    pid = os.getpid()
    started = start_of(pid) if _sees_itself(pid) else None
    return Owner(
        host=_host(),
        boot="" if started is None else _boot(),
        pid_space=_pid_space(),
        pid=pid,
        started=-1.0 if started is None else started,
        user=_user(),
    )


def start_of(pid: int) -> float | None:
    """When a process started, in this platform's own unit; None when there is no such live process.

    A zombie is dead: it can do nothing more, its parent only has not looked yet.
    """
    if LINUX:
        # Ticks since boot: psutil's seconds move when somebody sets the clock.
        try:
            with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
                line = file.read()
        except OSError:
            return None
        fields = line.rpartition(")")[2].split()
        return None if fields[0] in "ZX" else float(fields[19])
    import psutil

    try:
        process = psutil.Process(pid)
        return None if process.status() == psutil.STATUS_ZOMBIE else float(process.create_time())
    except psutil.NoSuchProcess:
        return None


LIVE_RUNS: set[str] = set()
"""The runs that this process is carrying out now."""


def is_alive(owner: Owner) -> bool:
    """Whether the very process is there, not another one with its pid. Only for an owner of this place.

    A run of the calling process itself lives while it is carried out: a notebook or a worker goes on after a
    run in it broke off, and must not block the batch for as long as it goes on.
    """
    if owner.pid <= 0 or start_of(owner.pid) != owner.started:
        return False
    return owner.pid != os.getpid() or not owner.run or owner.run in LIVE_RUNS


def _sees_itself(pid: int) -> bool:
    """Whether the pids that this process can look up are those of its own pid namespace.

    A new namespace without a ``/proc`` of its own (``unshare --pid --fork``, some containers) sees its parent's:
    every pid in it is another process, or none.
    """
    if not LINUX:
        return True
    try:
        if os.readlink("/proc/self") != str(pid):
            return False
        with open("/proc/self/status", encoding="utf-8", errors="replace") as file:
            pids = [line.split()[1:] for line in file if line.startswith("NSpid:")]
    except OSError:
        return False
    # A parent's /proc lists the pid in each namespace. The two may be equal by chance.
    return all(len(found) == 1 for found in pids)


@functools.cache
def _host() -> str:
    # What socket.gethostname() says too, without the cost of that module.
    if hasattr(os, "uname"):
        return os.uname().nodename
    import socket

    return socket.gethostname()


@functools.cache
def _boot() -> str:
    if LINUX:
        try:
            with open("/proc/sys/kernel/random/boot_id", encoding="utf-8") as file:
                return file.read().strip()
        except OSError:
            return ""
    import psutil

    return str(int(psutil.boot_time()))


def _pid_space() -> str:
    try:
        return os.readlink("/proc/self/ns/pid")
    except OSError:
        return ""


def _user() -> str:
    try:
        import getpass

        return getpass.getuser()
    except (KeyError, OSError, ImportError):
        return ""
