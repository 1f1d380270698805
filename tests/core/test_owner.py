"""Who a process is, and whether it is still there: real processes."""

from __future__ import annotations

import builtins
import dataclasses
import getpass
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from airflow_provider_ubunye.core import owner as owners
from airflow_provider_ubunye.core.errors import RunLeaseHeld
from airflow_provider_ubunye.core.owner import LIVE_RUNS, Owner, is_alive, start_of, this_process
from tests.core.kit import Shop, dead_owner, elsewhere


@pytest.fixture
def child() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        yield process
        process.kill()


def owner_of(pid: int) -> Owner:
    return dataclasses.replace(this_process(), pid=pid, started=start_of(pid) or -1.0)


def test_this_process_is_alive_and_here() -> None:
    me = this_process()
    assert me.pid == os.getpid()
    assert me.started > 0
    assert me.boot
    assert me.pid_space.startswith("pid:[")
    assert me.user == getpass.getuser()
    assert is_alive(me)
    assert me.same_place(this_process())


@pytest.mark.parametrize("pid", [1, os.getpid()], ids=["of init", "of this process"])
def test_a_pid_that_was_used_again_is_dead(pid: int) -> None:
    """Field case 1: pid 1, or this process' own, with another start time."""
    assert start_of(pid) is not None
    assert is_alive(owner_of(pid))
    assert not is_alive(dataclasses.replace(owner_of(pid), started=7.0))


@pytest.mark.parametrize("pid", [1, os.getpid()], ids=["of init", "of this process"])
def test_a_lease_with_a_reused_pid_is_taken_over_at_once(shop: Shop, pid: int) -> None:
    """Field case 1, through the whole start."""
    shop.die("rename", owner=dataclasses.replace(this_process(), pid=pid, started=7.0))
    done = shop.run()
    assert done is not None
    assert done.over is not None
    assert shop.rows() == ["1"]


def test_a_pid_of_another_host_is_never_looked_at(shop: Shop) -> None:
    """Field case 2: the number is alive here, and means nothing."""
    looked: list[Owner] = []
    shop.die("rename", owner=elsewhere())

    def look(owner: Owner) -> bool:
        looked.append(owner)
        return False

    held = shop.setting(is_alive=look)
    with pytest.raises(Exception, match="still running"):
        shop.run(setting=held)
    assert looked == []


HOLD = """
import sys
from pathlib import Path
from tests.core.kit import Shop

def hold(run):
    print("held", flush=True)
    sys.stdin.read()

Shop(Path(sys.argv[1])).run({"": "inside"}, meanwhile=hold, ttl=1.5)
"""


@pytest.mark.debian
def test_a_live_run_in_another_pid_namespace_is_never_taken_over(shop: Shop) -> None:
    """Field case 3: same host name, same folder; its pid means nothing here, and its heart beats."""
    root = str(Path(__file__).parents[2])
    with subprocess.Popen(
        ["unshare", "--pid", "--fork", "--mount-proc", sys.executable, "-c", HOLD, str(shop.root)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=root,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"held\n"
        for _ in range(3):
            # Each waits for longer than the lease would live without a heartbeat.
            with pytest.raises(RunLeaseHeld, match="last heartbeat"):
                shop.run({"": "outside"}, wait=1.0)
        process.communicate(b"")
    assert process.returncode == 0
    assert shop.rows() == ["inside"]


INSIDE_ANOTHER_PROC = """
import sys
from pathlib import Path
from airflow_provider_ubunye.core.errors import RunLeaseHeld
from airflow_provider_ubunye.core.owner import this_process
from tests.core.kit import Shop

shop = Shop(Path(sys.argv[1]))

def second(run):
    me = this_process()
    assert (me.boot, me.started) == ("", -1.0), me
    try:
        Shop(Path(sys.argv[1])).run({"": "second"})
    except RunLeaseHeld as error:
        print(error.what)

shop.run({"": "inside"}, meanwhile=second)
"""


@pytest.mark.debian
def test_where_proc_is_another_namespaces_a_live_run_is_not_judged_by_it(shop: Shop) -> None:
    """A container that kept its parent's ``/proc``: every pid in it is somebody else, or nobody."""
    root = str(Path(__file__).parents[2])
    call = ["unshare", "--pid", "--fork", sys.executable, "-c", INSIDE_ANOTHER_PROC, str(shop.root)]
    done = subprocess.run(call, cwd=root, capture_output=True, text=True, check=True)
    assert "is still running" in done.stdout
    assert "last heartbeat" in done.stdout
    assert shop.rows() == ["inside"]


def test_a_proc_that_lists_this_process_under_two_pids_is_a_parents(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The pid inside may by chance be the one outside."""
    status = tmp_path / "status"
    status.write_text(f"Name:\tpython\nNSpid:\t{os.getpid()}\t{os.getpid()}\n")
    real = builtins.open

    def stand_in(file: Any, *args: Any, **how: Any) -> Any:
        return real(status if file == "/proc/self/status" else file, *args, **how)

    with monkeypatch.context() as patch:
        patch.setattr(builtins, "open", stand_in)
        assert this_process().boot == ""
    assert this_process().boot
    monkeypatch.setattr(os, "readlink", lambda path: "7")
    assert this_process().boot == ""


def test_a_machine_that_does_not_tell_its_boot_is_no_place(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.open

    def refuse(file: Any, *args: Any, **how: Any) -> Any:
        if str(file).endswith("boot_id"):
            raise PermissionError
        return real(file, *args, **how)

    owners._boot.cache_clear()
    with monkeypatch.context() as patch:
        patch.setattr(builtins, "open", refuse)
        me = this_process()
    owners._boot.cache_clear()
    assert me.started > 0
    assert me.boot == ""
    assert not me.same_place(me)


def test_an_owner_whose_start_is_not_known_is_never_judged_by_its_pid(shop: Shop) -> None:
    shop.die("rename", owner=dataclasses.replace(this_process(), started=-1.0))
    with pytest.raises(RunLeaseHeld, match="last heartbeat"):
        shop.run()


def test_a_process_ends(child: subprocess.Popen[bytes]) -> None:
    there = owner_of(child.pid)
    assert is_alive(there)
    child.kill()
    child.wait()
    assert not is_alive(there)
    assert start_of(child.pid) is None


def test_a_zombie_is_dead(child: subprocess.Popen[bytes]) -> None:
    there = owner_of(child.pid)
    child.kill()
    # Waits for the end without reaping: the zombie stays.
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert Path(f"/proc/{child.pid}").exists()
    assert not is_alive(there)


def test_a_run_of_this_process_lives_while_it_is_carried_out() -> None:
    mine = dataclasses.replace(this_process(), run="a" * 32)
    assert not is_alive(mine)
    LIVE_RUNS.add("a" * 32)
    assert is_alive(mine)
    LIVE_RUNS.discard("a" * 32)


@pytest.mark.parametrize(
    "changes", [{"host": "b"}, {"boot": "b"}, {"pid_space": "pid:[1]"}, {"boot": ""}], ids=str
)
def test_another_host_boot_or_pid_namespace_is_another_place(changes: dict[str, str]) -> None:
    other = dataclasses.replace(this_process(), **changes)  # type: ignore[arg-type]
    assert not this_process().same_place(other)
    assert not other.same_place(this_process())
    assert not other.same_place(other) or other.boot


def test_an_owner_survives_json_and_a_damaged_one_is_no_process() -> None:
    me = dataclasses.replace(this_process(), run="b" * 32)
    assert Owner.from_json(me.to_json()) == me
    damaged: dict[str, Any] = {"host": 1, "pid": True, "started": "x"}
    assert Owner.from_json(damaged) == Owner("", "", "", -1, -1.0)
    assert not is_alive(Owner.from_json(damaged))
    huge = {"pid": 10**30, "started": 10**400}
    assert Owner.from_json(huge) == Owner("", "", "", -1, -1.0)
    assert Owner.from_json({"pid": 1.5, "started": float("nan")}) == Owner("", "", "", -1, -1.0)
    assert not is_alive(dead_owner())


def test_without_proc_psutil_reads_the_start(
    monkeypatch: pytest.MonkeyPatch, child: subprocess.Popen[bytes]
) -> None:
    """macOS: a reused pid must not look alive there either."""
    monkeypatch.setattr(owners, "LINUX", False)
    owners._boot.cache_clear()
    there = owner_of(child.pid)
    assert there.started == psutil.Process(child.pid).create_time()
    assert there.boot == str(int(psutil.boot_time()))
    assert is_alive(there)
    assert not is_alive(dataclasses.replace(there, started=there.started - 60))
    child.kill()
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert not is_alive(there)
    child.wait()
    assert not is_alive(there)
    owners._boot.cache_clear()


def test_what_can_not_be_read_is_empty(monkeypatch: pytest.MonkeyPatch) -> None:
    """A locked-down container: no boot id, no namespaces, no user. Such a place is no place; beats decide."""

    def refuse(*args: object, **how: object) -> str:
        raise PermissionError

    owners._boot.cache_clear()
    with monkeypatch.context() as patch:
        patch.setattr(builtins, "open", refuse)
        patch.setattr(os, "readlink", refuse)
        patch.setattr(getpass, "getuser", refuse)
        me = this_process()
    owners._boot.cache_clear()
    assert (me.boot, me.pid_space, me.user, me.started) == ("", "", "", -1.0)
    assert not me.same_place(me)


def test_a_python_without_pwd_has_no_user(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def no_getpass(name: str, *args: Any) -> Any:
        if name == "getpass":
            raise ImportError(name)
        return real(name, *args)

    monkeypatch.setattr(builtins, "__import__", no_getpass)
    assert this_process().user == ""


def test_a_system_without_uname_says_its_host_name(monkeypatch: pytest.MonkeyPatch) -> None:
    owners._host.cache_clear()
    monkeypatch.delattr(os, "uname")
    assert owners._host() == socket.gethostname()
    owners._host.cache_clear()
