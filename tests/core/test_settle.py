"""Settling what runs left, and the sentences it says."""

from __future__ import annotations

import pytest

from airflow_provider_ubunye.core import messages
from airflow_provider_ubunye.core.errors import (
    LeaseLost,
    NotTakenBack,
    RunLeaseHeld,
    TransformFailed,
    UbunyeError,
)
from airflow_provider_ubunye.core.judge import Evidence, Verdict
from airflow_provider_ubunye.core.note import write_note
from airflow_provider_ubunye.core.owner import LIVE_RUNS
from airflow_provider_ubunye.core.places import Places
from airflow_provider_ubunye.core.settle import refuse_what_is_left, settle
from airflow_provider_ubunye.core.state import REPLACED, UNFINISHED, Debt, Finished, Holder, Place, Written
from airflow_provider_ubunye.core.takeback import Settled
from tests.core.kit import Shop, elsewhere

RUN = "a" * 32


def left(*whys: str) -> Settled:
    written = Written("o", "files", "append", Place("root", "/x"))
    debts = [Debt(why, RUN, written) for why in whys]
    return Settled(left=debts, problems=[f"{n} stays" for n, _ in enumerate(whys)])


def test_nothing_left_refuses_nothing() -> None:
    refuse_what_is_left(Settled(), "a batch")


@pytest.mark.parametrize(
    ("settled", "says"),
    [
        (left(UNFINISHED), "files of a dead run could not be removed: 0 stays"),
        (left(REPLACED), "files of a replaced run could not be removed: 0 stays"),
        (left(REPLACED, UNFINISHED, REPLACED), r"a dead run .*: 0 stays \(and 2 more\)"),
    ],
)
def test_what_is_left_is_named_with_how_much_more_there_is(settled: Settled, says: str) -> None:
    with pytest.raises(NotTakenBack, match=says) as error:
        refuse_what_is_left(settled, "a batch")
    assert error.value.exit_code == 5


def test_a_run_without_debts_settles_nothing(shop: Shop) -> None:
    run = shop.open()
    number = run._lease.state.number
    assert settle(shop.setting(), run.request, run._lease).removed == 0
    assert run._lease.state.number == number
    run.end()


def test_a_run_that_was_taken_over_leaves_the_note_to_its_taker(shop: Shop) -> None:
    run = shop.open()
    done = Finished(run.id, "2026-11-01T00:00:00Z", ())
    write_note(run._lease, shop.batch(), done, Places(shop.root))
    assert run.id in shop.note().read_text()
    LIVE_RUNS.discard(run.id)
    shop.run({"": "1"})
    before = shop.note().read_bytes()
    with pytest.raises(LeaseLost):
        write_note(run._lease, shop.batch(), done, Places(shop.root))
    run.end()
    assert (shop.note().read_bytes(), shop.rows()) == (before, ["1"])


@pytest.mark.parametrize(
    ("evidence", "verdict", "hint"),
    [
        (Evidence(True, None, 0, 900, 30), Verdict.ALIVE, "stop process 7"),
        (Evidence(None, 5.0, 0, 900, 30), Verdict.ALIVE, "silent for 15 min"),
        (Evidence(None, 905.0, 0, 900, 30), Verdict.UNKNOWN, "can't be told yet"),
        (Evidence(None, -5.0, 0, 900, 30), Verdict.UNKNOWN, "--wait 16m watches it for 16 min"),
        (Evidence(None, -5.0, 0, 5, 1), Verdict.UNKNOWN, "--wait 1m watches it for 6 s"),
        (Evidence(None, None, 0, 900, 30), Verdict.UNKNOWN, "can't be told yet"),
    ],
)
def test_a_refusal_says_what_to_do_next(shop: Shop, evidence: Evidence, verdict: Verdict, hint: str) -> None:
    holder = Holder(RUN, 1, "2026-11-01T00:00:00Z", {"host": "h", "pid": 7}, 900, 30, "acquired", "run")
    error = messages.held(shop.batch(), holder, verdict, evidence, "/s")
    assert isinstance(error, RunLeaseHeld)
    assert hint in str(error.hint)
    assert ("last heartbeat" in error.what) is (evidence.age is not None)
    assert "run aaaaaaaa on h, pid 7, since 2026-11-01T00:00:00Z" in error.what
    assert "an unknown host" in messages.holder_line(Holder(RUN, 1, "", {}, 1, 1, "acquired", "run"))


def test_errors_read_as_lines_of_text() -> None:
    assert UbunyeError("what").lines() == ["what"]
    assert UbunyeError("what", where="/w", hint="h").lines() == ["what", "  Where: /w", "  Hint: h"]
    failed = TransformFailed("boo", frames=["  line 3"], hint="mend it")
    assert failed.lines() == ["boo", "  line 3", "  Hint: mend it"]
    assert TransformFailed("boo").lines() == ["boo"]


def test_a_held_batch_elsewhere_names_who_when_and_how_long_ago(shop: Shop) -> None:
    shop.die("rename", owner=elsewhere())
    with pytest.raises(RunLeaseHeld, match=r"on other-machine, pid \d+, since .*, last heartbeat \d+ s ago"):
        shop.run()
