"""What a run is asked to do, and what that comes to on a finished batch: the rule, row by row."""

from __future__ import annotations

import pytest

from airflow_provider_ubunye.core.decide import RELEASE, RERUN, RESUME, RUN, Decision, appends, decide
from airflow_provider_ubunye.core.errors import UsageError
from airflow_provider_ubunye.core.request import Request
from airflow_provider_ubunye.core.specs import MODES
from airflow_provider_ubunye.core.state import Finished, Place, Written
from tests.core.kit import Shop


def done(*modes: str) -> Finished:
    outputs = tuple(Written(m, "files", m, Place("root", "/x")) for m in modes)
    return Finished("a" * 32, "2026-11-01T00:00:00Z", outputs)


@pytest.mark.parametrize(
    ("finished", "purpose", "adds", "decision"),
    [
        (None, RUN, True, Decision.RUN),
        (None, RERUN, True, Decision.RUN),
        (None, RESUME, True, Decision.RUN),
        (done("append"), RUN, True, Decision.REFUSE),
        (done("overwrite"), RUN, True, Decision.REFUSE),
        (done("append"), RUN, False, Decision.RUN),
        (done("append"), RERUN, True, Decision.REPLACE),
        (done("append"), RERUN, False, Decision.REPLACE),
        (done("append"), RESUME, True, Decision.SKIP),
        (done("overwrite"), RESUME, False, Decision.RUN),
        (done("append"), RELEASE, True, Decision.RUN),
        # The outputs come later: what the finished run did is the guess.
        (done("overwrite", "append"), RUN, None, Decision.REFUSE),
        (done("overwrite"), RUN, None, Decision.RUN),
        (done(), RUN, None, Decision.RUN),
        (done("append"), RESUME, None, Decision.SKIP),
    ],
)
def test_the_rule_for_a_finished_batch(
    finished: Finished | None, purpose: str, adds: bool | None, decision: Decision
) -> None:
    assert decide(finished, purpose, adds) is decision


def test_the_callers_own_answer_comes_first() -> None:
    assert decide(done("append"), RUN, True, lambda done: Decision.SKIP) is Decision.SKIP
    assert decide(done("append"), RUN, True, lambda done: None) is Decision.REFUSE
    assert decide(None, RUN, True, lambda done: Decision.SKIP) is Decision.RUN
    assert decide(done("append"), RELEASE, True, lambda done: Decision.SKIP) is Decision.RUN


def test_a_mode_that_is_not_known_to_replace_appends() -> None:
    assert [mode for mode in (*MODES, "merge", "", "Overwrite", "whatever") if appends(mode)] == [
        "append",
        "",
        "Overwrite",
        "whatever",
    ]


def test_a_request_knows_its_run_its_beat_and_what_it_appends_to(shop: Shop) -> None:
    outputs = {
        "a": ("append", "/x", "files"),
        "b": ("overwrite", "/y", "files"),
        "c": ("append", "t", "named"),
    }
    request = Request(shop.batch(), outputs=outputs, ttl=90)
    assert len(request.run) == 32
    assert request.run != Request(shop.batch()).run
    assert request.beat == 3
    assert request.appending == ["a", "c"]
    assert request.decide(done("append")) is Decision.REFUSE


@pytest.mark.parametrize("purpose", [RERUN, RESUME])
def test_a_batch_that_nothing_names_can_not_be_replaced_or_resumed(shop: Shop, purpose: str) -> None:
    with pytest.raises(UsageError, match="named batch") as error:
        Request(shop.batch(dt=None, mode="prod"), purpose=purpose)
    assert error.value.exit_code == 2
    assert Request(shop.batch(dt=None), purpose=RELEASE).purpose == RELEASE
