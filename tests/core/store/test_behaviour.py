"""What every batch store promises: one suite, every kind."""

from __future__ import annotations

import json
import multiprocessing
import threading
from collections.abc import Callable
from multiprocessing.synchronize import Barrier
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_ubunye.core.errors import StateUnreadable
from airflow_provider_ubunye.core.log import BatchLog
from airflow_provider_ubunye.core.store import MARK, BatchStore, FileStore, StoreUnusable, self_test
from airflow_provider_ubunye.core.testing import intercepted

PREFIX = "leases/shop/daily/load_orders/08e84f1b8a561918"
BODY = json.dumps({"filler": "x" * 100_000}).encode()
WRITERS = 50


def key(number: int) -> str:
    return f"{PREFIX}/{number:08d}.json"


def test_a_key_is_created_once(store: BatchStore) -> None:
    assert store.create(key(1), b"one")
    assert not store.create(key(1), b"two")
    assert store.read(key(1)) == b"one"
    assert store.create(key(2), b"")
    assert store.read(key(2)) == b""


def test_what_is_not_there_is_absent(store: BatchStore) -> None:
    assert store.read(key(1)) is None
    assert store.list(PREFIX) == []
    assert store.age(key(1)) is None
    assert not store.beat(key(1))
    store.delete([key(1), "nothing/at/all.json"])
    store.create(key(1), b"one")
    below = f"{key(1)}/below"
    assert (store.read(below), store.age(below), store.beat(below)) == (None, None, False)


def test_a_list_has_what_is_below_and_what_stands_beside(store: BatchStore) -> None:
    for name in (
        key(2),
        key(1),
        f"{PREFIX}.json",
        f"{PREFIX}.finished.json",
        f"{PREFIX}a.json",
        "x/y/z.json",
    ):
        assert store.create(name, b"{}")
    assert store.list(PREFIX) == sorted([key(1), key(2), f"{PREFIX}.finished.json", f"{PREFIX}.json"])
    assert set(store.list("leases")) >= {key(1), key(2), f"{PREFIX}a.json"}
    assert store.list("x") == ["x/y/z.json"]


def test_beside_a_log_that_is_not_begun_everything_is_listed(store: BatchStore) -> None:
    beside = [f"{PREFIX}.dead-0a1b2c3d.json", f"{PREFIX}.done-x", f"{PREFIX}.json"]
    for name in beside:
        assert store.create(name, b"{}")
    assert store.list(PREFIX) == sorted(beside)


def test_a_deleted_key_is_gone_and_its_number_free(store: BatchStore) -> None:
    for number in (1, 2, 3):
        store.create(key(number), b"x")
    store.delete([key(1), key(3), key(1)])
    assert store.list(PREFIX) == [key(2)]
    assert store.create(key(1), b"again")
    assert store.read(key(1)) == b"again"


def test_put_replaces_the_whole_content(store: BatchStore) -> None:
    note = f"{PREFIX}.finished.json"
    store.put(note, b"first, and longer")
    store.put(note, b"second")
    assert store.read(note) == b"second"
    store.create(key(1), b"x")
    store.put(note, b"third")
    assert store.read(note) == b"third"
    assert store.list(PREFIX) == sorted([key(1), note])


def test_a_beat_makes_a_key_young(store: BatchStore) -> None:
    store.create(key(1), b"x")
    before = store.age(key(1))
    assert before is not None
    assert -5 < before < 60
    assert store.beat(key(1))
    after = store.age(key(1))
    assert after is not None
    assert after <= before + 5
    store.delete([key(1)])
    assert not store.beat(key(1))
    assert store.age(key(1)) is None


def test_fifty_threads_create_one_key_and_nobody_sees_half_of_it(client: Callable[[], BatchStore]) -> None:
    """Field case 9, with readers: whole content or nothing, from the first moment."""
    barrier = threading.Barrier(WRITERS + 4)
    wins: list[int] = []
    torn: list[bytes] = []
    done = threading.Event()

    def write(number: int) -> None:
        own = client()
        barrier.wait()
        if own.create(key(1), BODY + b"%d" % number):
            wins.append(number)

    def read() -> None:
        own = client()
        barrier.wait()
        while not done.is_set():
            data = own.read(key(1))
            if data is not None and not data.startswith(BODY):
                torn.append(data)
            assert own.list(PREFIX) in ([], [key(1)])

    writers = [threading.Thread(target=write, args=(n,)) for n in range(WRITERS)]
    readers = [threading.Thread(target=read) for _ in range(4)]
    for thread in writers + readers:
        thread.start()
    for thread in writers:
        thread.join()
    done.set()
    for thread in readers:
        thread.join()
    assert len(wins) == 1
    assert torn == []
    assert client().read(key(1)) == BODY + b"%d" % wins[0]


def _create(root: str, barrier: Barrier, rounds: int, results: Any) -> None:
    store = FileStore(root)
    for number in range(1, rounds + 1):
        barrier.wait()
        results.put((number, store.create(key(number), BODY)))


def test_fifty_processes_create_one_key(kind: str, tmp_path: Path, client: Callable[[], BatchStore]) -> None:
    """Field case 9. A memory store has one process only: it is asked by threads above."""
    if kind == "memory":
        assert client() is client()
        return
    fork = multiprocessing.get_context("fork")
    rounds = 3
    barrier, results = fork.Barrier(WRITERS), fork.SimpleQueue()
    processes = [
        fork.Process(target=_create, args=(str(tmp_path / "state"), barrier, rounds, results))
        for _ in range(WRITERS)
    ]
    for process in processes:
        process.start()
    found = [results.get() for _ in range(WRITERS * rounds)]
    for process in processes:
        process.join()
        assert process.exitcode == 0
    for number in range(1, rounds + 1):
        assert [won for n, won in found if n == number].count(True) == 1
    assert client().list(PREFIX) == [key(n) for n in range(1, rounds + 1)]
    assert list((tmp_path / "state").rglob(".tmp-*")) == []


def test_what_a_killed_create_left_is_swept_with_the_next_prune(
    store: BatchStore, kind: str, tmp_path: Path
) -> None:
    store.create(key(1), b"x")
    if kind != "memory":
        folder = (tmp_path / "state").joinpath(*PREFIX.split("/"))
        (folder / ".tmp-dead").write_bytes(b"half")
        (folder / ".tmp-dead.d").mkdir()
        (folder / ".tmp-dead.d" / "entry").write_bytes(b"half")
        assert store.list(PREFIX) == [key(1)]
    store.create(key(2), b"y")
    store.delete([key(1)])
    assert store.list(PREFIX) == [key(2)]
    assert list(tmp_path.rglob(".tmp-*")) == []


# ── the self-test ───────────────────────────────────────────────────────────────────────────────


def test_a_store_that_keeps_its_promise_is_marked_and_asked_once(store: BatchStore) -> None:
    self_test(store)
    assert store.read(MARK) is not None
    calls: list[str] = []

    def count(name: str, args: tuple[Any, ...], act: Callable[[], Any]) -> Any:
        calls.append(name)
        return act()

    self_test(intercepted(store, count))
    assert calls == ["read"]


def test_a_store_that_ignores_preconditions_is_refused(store: BatchStore) -> None:
    """Field case 11: both creates win, the second content stands."""

    def ignore(name: str, args: tuple[Any, ...], act: Callable[[], Any]) -> Any:
        if name == "create":
            store.put(*args)
            return True
        return act()

    with pytest.raises(StoreUnusable, match="two creates of one key both won") as error:
        self_test(intercepted(store, ignore))
    assert "\n" not in error.value.what
    assert error.value.exit_code == 1
    assert store.read(MARK) is None


@pytest.mark.parametrize("fault", ["loses", "swaps"])
def test_a_store_that_loses_or_swaps_what_was_created_is_refused(store: BatchStore, fault: str) -> None:
    def lie(name: str, args: tuple[Any, ...], act: Callable[[], Any]) -> Any:
        if name == "read" and args[0] != MARK:
            return None if fault == "loses" else b"second"
        return act()

    with pytest.raises(StoreUnusable, match="does not keep its promise"):
        self_test(intercepted(store, lie))


def test_a_store_that_does_not_answer_is_refused(store: BatchStore) -> None:
    def refuse(name: str, args: tuple[Any, ...], act: Callable[[], Any]) -> Any:
        raise OSError(5, "Input/output error")

    with pytest.raises(StoreUnusable, match="Input/output error"):
        self_test(intercepted(store, refuse))


# ── the log on every kind ───────────────────────────────────────────────────────────────────────


def test_the_lost_reply_to_a_create_is_settled_by_reading_back(store: BatchStore) -> None:
    """Field case 10: the create happened, its answer did not come, the client asks again."""
    lost = {"create": 1}

    def lose(name: str, args: tuple[Any, ...], act: Callable[[], Any]) -> Any:
        result = act()
        if lost.get(name, 0):
            lost[name] -= 1
            raise TimeoutError("the reply is lost")
        return result

    log = BatchLog(intercepted(store, lose), PREFIX)
    body = {
        "owner": {},
        "ttl": 9,
        "beat": 1,
        "purpose": "run",
        "recorded": False,
        "variables": {},
        "outputs": [],
    }
    state = log.append(log.read(), "a" * 32, "acquired", body)
    assert state.number == 1
    assert state.holder is not None
    lost["create"] = 2
    assert log.append(state, "a" * 32, "writing", {"outputs": []}).number == 2
    assert BatchLog(store, PREFIX).read().number == 2


def test_an_entry_under_another_number_is_refused(store: BatchStore) -> None:
    log = BatchLog(store, PREFIX)
    body = {
        "owner": {},
        "ttl": 9,
        "beat": 1,
        "purpose": "run",
        "recorded": False,
        "variables": {},
        "outputs": [],
    }
    log.append(log.read(), "a" * 32, "acquired", body)
    data = store.read(key(1))
    assert data is not None
    store.create(key(2), data)
    with pytest.raises(StateUnreadable, match="entry 2 says it is entry 1"):
        log.read()
