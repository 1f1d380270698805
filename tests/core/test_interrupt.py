"""Interrupting the user's code when the lease is lost, and nothing but the user's code: real signals."""

from __future__ import annotations

import _thread
import os
import signal
import threading
from collections.abc import Iterator

import pytest

from airflow_provider_ubunye.core.interrupt import Interrupt


def end() -> None:
    """Stands for the function that ends the user's block: a signal is delivered while it runs."""
    _thread.interrupt_main()
    for _ in range(1000):
        pass


@pytest.fixture(autouse=True)
def handler() -> Iterator[None]:
    before = signal.getsignal(signal.SIGINT)
    yield
    assert signal.getsignal(signal.SIGINT) == before, "what was there is put back"


def ended(interrupt: Interrupt) -> KeyboardInterrupt | None:
    """The block and the run have ended: the heartbeat's interrupt that came too late for the block."""
    arrived = interrupt.arrived()
    assert not interrupt.stop_listening()
    return arrived


def spin() -> None:
    for _ in range(1000):
        pass


def test_the_users_code_is_interrupted_once() -> None:
    interrupt = Interrupt(end.__code__)
    interrupt.listen()
    with pytest.raises(KeyboardInterrupt):
        _send(interrupt)
    interrupt.send()
    spin()
    assert ended(interrupt) is None


def _send(interrupt: Interrupt) -> None:
    interrupt.send()
    spin()


def test_nothing_is_sent_before_the_block_and_after_it() -> None:
    interrupt = Interrupt(end.__code__)
    interrupt.send()
    interrupt.listen()
    assert ended(interrupt) is None
    interrupt.send()
    spin()


def test_what_comes_while_the_block_ends_is_only_noted() -> None:
    interrupt = Interrupt(end.__code__)
    interrupt.listen()
    interrupt._sent = True
    end()
    assert isinstance(ended(interrupt), KeyboardInterrupt)


def test_a_signal_of_others_goes_to_the_handler_that_was_there() -> None:
    interrupt = Interrupt(end.__code__)
    interrupt.listen()
    with pytest.raises(KeyboardInterrupt):
        _kill()
    interrupt.stop_listening()


def ending() -> None:
    """Stands for the function that ends the block while it takes back or settles."""
    _kill()


def committing(interrupt: Interrupt) -> None:
    """Stands for the same function while it commits."""
    with interrupt.passing():
        _kill()


def test_a_persons_interrupt_while_the_run_takes_itself_back_is_only_noted() -> None:
    interrupt = Interrupt(ending.__code__)
    interrupt.listen()
    ending()
    assert interrupt.arrived() is None
    assert interrupt.stop_listening()


def test_a_persons_interrupt_while_the_run_commits_goes_through() -> None:
    interrupt = Interrupt(committing.__code__)
    interrupt.listen()
    with pytest.raises(KeyboardInterrupt):
        committing(interrupt)
    assert ended(interrupt) is None


def _kill() -> None:
    os.kill(os.getpid(), signal.SIGINT)
    spin()


def test_where_signals_are_ignored_the_users_code_is_interrupted_all_the_same() -> None:
    """A job in the background of a shell: its SIGINT is ignored, and the lease is lost even so."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        interrupt = Interrupt(end.__code__)
        interrupt.listen()
        _kill()
        with pytest.raises(KeyboardInterrupt):
            _send(interrupt)
        interrupt.stop_listening()
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize("there", [signal.SIG_DFL, None])
def test_a_handler_that_is_not_pythons_is_left_alone(
    monkeypatch: pytest.MonkeyPatch, there: signal.Handlers | None
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(signal, "getsignal", lambda number: there)
        interrupt = Interrupt(end.__code__)
        interrupt.listen()
        interrupt.send()
        spin()
        assert ended(interrupt) is None


def test_a_handler_that_the_users_code_sets_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    before = signal.getsignal(signal.SIGINT)
    interrupt = Interrupt(end.__code__)
    interrupt.listen()
    seen: list[int] = []
    own = signal.signal(signal.SIGINT, lambda number, frame: seen.append(number))
    assert own == interrupt._handle
    interrupt.stop_listening()
    _kill()
    assert seen == [signal.SIGINT]
    signal.signal(signal.SIGINT, before)


def test_another_thread_is_never_interrupted() -> None:
    results: list[object] = []

    def go() -> None:
        interrupt = Interrupt(end.__code__)
        interrupt.listen()
        interrupt.send()
        results.append(ended(interrupt))

    thread = threading.Thread(target=go)
    thread.start()
    thread.join()
    spin()
    assert results == [None]
