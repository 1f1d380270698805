"""The retry table, a row per line of it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from airflow_provider_ubunye.attempt import Attempt, Relation, Ruling
from airflow_provider_ubunye.core.decide import Decision
from airflow_provider_ubunye.core.errors import UsageError
from airflow_provider_ubunye.core.state import Finished

# The first try of a task with two retries.
FIRST = Attempt("shop", "scheduled__2026-11-01", "load", -1, 1, 2, 0, 2)


def finished(by: Attempt | None) -> Finished:
    return Finished("0" * 32, "2026-11-01T00:00:00+00:00", (), attempt=None if by is None else by.to_json())


@pytest.mark.parametrize(
    ("earlier", "mine", "relation"),
    [
        pytest.param(None, FIRST, Relation.OTHER, id="finished by the shell"),
        pytest.param(FIRST, replace(FIRST, try_number=2), Relation.RETRY, id="automatic retry"),
        pytest.param(
            replace(FIRST, try_number=2), replace(FIRST, try_number=3), Relation.RETRY, id="second retry"
        ),
        pytest.param(FIRST, FIRST, Relation.OTHER, id="same try: the DAG run was made again"),
        pytest.param(
            replace(FIRST, try_number=2), FIRST, Relation.OTHER, id="lower try: the DAG run was made again"
        ),
        pytest.param(
            FIRST, replace(FIRST, try_number=2, max_tries=3, clear_number=1), Relation.AGAIN, id="cleared"
        ),
        pytest.param(
            replace(FIRST, try_number=2, max_tries=3, clear_number=1),
            replace(FIRST, try_number=3, max_tries=3, clear_number=1),
            Relation.RETRY,
            id="automatic retry after a clear",
        ),
        pytest.param(
            FIRST, replace(FIRST, try_number=2, clear_number=1), Relation.RETRY, id="another task was cleared"
        ),
        pytest.param(
            FIRST,
            replace(FIRST, try_number=2, clear_number=1, retries=1),
            Relation.AGAIN,
            id="cleared after its retries were edited",
        ),
        pytest.param(
            FIRST, replace(FIRST, try_number=0, test=True), Relation.AGAIN, id="tasks test, no such DAG run"
        ),
        pytest.param(
            FIRST, replace(FIRST, try_number=2, test=True), Relation.AGAIN, id="tasks test of a DAG run"
        ),
        pytest.param(
            replace(FIRST, test=True), replace(FIRST, try_number=2), Relation.OTHER, id="tasks test before"
        ),
        pytest.param(
            FIRST, replace(FIRST, run_id="manual", try_number=2), Relation.OTHER, id="another DAG run"
        ),
        pytest.param(FIRST, replace(FIRST, dag_id="other", try_number=2), Relation.OTHER, id="another DAG"),
        pytest.param(FIRST, replace(FIRST, task_id="other", try_number=2), Relation.OTHER, id="another task"),
        pytest.param(
            FIRST, replace(FIRST, map_index=3, try_number=2), Relation.OTHER, id="another map index"
        ),
    ],
)
def test_relation(earlier: Attempt | None, mine: Attempt, relation: Relation) -> None:
    assert mine.relation(None if earlier is None else earlier.to_json()) is relation


@pytest.mark.parametrize("value", [None, "1", 1.5, -1, 0])
def test_a_try_that_makes_no_sense_is_no_earlier_try(value: object) -> None:
    earlier = {**FIRST.to_json(), "try_number": value}
    assert replace(FIRST, try_number=2).relation(earlier) is Relation.OTHER


RETRY = replace(FIRST, try_number=2)
CLEARED = replace(FIRST, try_number=2, max_tries=3, clear_number=1)
OTHER_RUN = replace(FIRST, run_id="manual")


@pytest.mark.parametrize(
    ("mine", "words", "answer"),
    [
        (RETRY, {}, Decision.SKIP),
        (RETRY, {"rerun": True}, Decision.SKIP),
        (RETRY, {"on_finished": "rerun", "on_clear": "rerun"}, Decision.SKIP),
        (CLEARED, {}, None),
        (CLEARED, {"on_finished": "rerun"}, None),
        (CLEARED, {"on_finished": "skip"}, None),
        (CLEARED, {"on_clear": "rerun"}, Decision.REPLACE),
        (CLEARED, {"rerun": True}, Decision.REPLACE),
        (OTHER_RUN, {}, None),
        (OTHER_RUN, {"on_clear": "rerun"}, None),
        (OTHER_RUN, {"on_finished": "skip"}, Decision.SKIP),
        (OTHER_RUN, {"on_finished": "rerun"}, Decision.REPLACE),
        (OTHER_RUN, {"on_finished": "skip", "rerun": True}, Decision.REPLACE),
        (None, {}, None),
        (None, {"on_finished": "skip"}, Decision.SKIP),
    ],
)
def test_ruling(mine: Attempt | None, words: dict[str, object], answer: Decision | None) -> None:
    ruling = Ruling(mine, **words)  # type: ignore[arg-type]
    assert ruling(finished(FIRST)) is answer
    assert ruling.answer is answer


def test_the_clause_names_the_try_or_the_dag_run() -> None:
    ruling = Ruling(RETRY)
    assert ruling.already == "finished already"
    ruling(finished(FIRST))
    assert ruling.already.startswith("try 1 of this task committed it already (run 00000000")
    other = Ruling(OTHER_RUN)
    other(finished(FIRST))
    assert "dag_id=shop run_id=scheduled__2026-11-01 task_id=load try_number=1" in other.already
    assert "on_finished='rerun'" in other.hint
    other(finished(None))
    assert "a run outside Airflow" in other.already
    cleared = Ruling(CLEARED)
    cleared(finished(FIRST))
    assert "on_clear='rerun'" in cleared.hint


@pytest.mark.parametrize("words", [{"on_finished": "succeed"}, {"on_clear": "skip"}, {"on_clear": None}])
def test_a_word_that_is_not_known_is_refused(words: dict[str, object]) -> None:
    with pytest.raises(UsageError, match=f"{next(iter(words))} is .*; it is one of fail"):
        Ruling(None, **words)  # type: ignore[arg-type]
