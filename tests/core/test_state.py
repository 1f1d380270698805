"""What the log says of a batch: written as JSON and read back, and every damaged value refused."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_ubunye.core.errors import StateUnreadable
from airflow_provider_ubunye.core.state import (
    HISTORY,
    REPLACED,
    UNFINISHED,
    BatchState,
    Claim,
    Debt,
    Ended,
    Finished,
    Place,
    Reader,
    Written,
    checkpoint_json,
    to_json,
)

READER = Reader("log/7")

names = st.text(min_size=1, max_size=12)
numbers = st.integers(min_value=0, max_value=2**53)
details = st.dictionaries(names, st.none() | st.booleans() | numbers | names, max_size=2)
claims = st.builds(Claim, names, names, st.none() | st.tuples(numbers, numbers))
writtens = st.builds(
    Written,
    name=names,
    kind=names,
    mode=names,
    place=st.builds(Place, st.sampled_from(["usecase", "root"]), names),
    made=numbers,
    claims=st.lists(claims, max_size=3).map(tuple),
    folders=st.lists(names, max_size=2).map(tuple),
    detail=details,
)
debts = st.builds(
    Debt,
    why=st.sampled_from([UNFINISHED, REPLACED]),
    run=st.none() | names,
    output=writtens,
    by=st.none() | names,
    proof=st.lists(names, max_size=2).map(tuple),
)
finisheds = st.builds(
    Finished,
    run=names,
    at=names,
    outputs=st.lists(writtens, max_size=2).map(tuple),
    recorded=st.booleans(),
    attempt=st.none() | details,
    config=st.none() | names,
)
states = st.builds(
    BatchState,
    number=numbers,
    last=names,
    holder=st.none(),
    finished=st.none() | finisheds,
    commits=numbers,
    runs=numbers,
    debts=st.lists(debts, max_size=2).map(tuple),
    unclosed=st.lists(names, max_size=2).map(tuple),
    history=st.lists(st.builds(Ended, names, names, names), max_size=HISTORY).map(tuple),
    variables=st.dictionaries(names, names, max_size=2),
    named_by=st.none() | st.lists(names, max_size=2).map(tuple),
)


def through_json(value: Any) -> Any:
    return json.loads(json.dumps(to_json(value)))


@given(debts)
def test_a_debt_is_read_back(debt: Debt) -> None:
    assert READER.debt(through_json(debt)) == debt


@given(states)
def test_a_checkpoint_is_read_back(state: BatchState) -> None:
    document = json.loads(json.dumps(checkpoint_json(state)))
    assert state.last is not None
    assert READER.checkpoint(document, state.number, state.last) == state


def test_a_claim_says_no_more_than_it_must() -> None:
    assert to_json(Claim("a", "a")) == "a"
    assert to_json(Claim("a", "b")) == ["a", "b"]
    assert to_json(Claim("a", "a", (1, 2))) == ["a", "a", [1, 2]]


def test_how_a_run_ended_is_what_was_last_said() -> None:
    state = BatchState(
        history=(Ended("r", "1", "interrupted"), Ended("q", "2", "failed"), Ended("r", "3", "success"))
    )
    assert state.outcome_of("r") == "success"
    assert state.outcome_of("q") == "failed"
    assert state.outcome_of("nobody") is None


OUTPUT = through_json(Written("o", "files", "append", Place("usecase", "lake/o")))


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"name": 3}, "name is int"),
        ({"name": None}, "name is NoneType"),
        ({"place": "lake"}, "place is str"),
        ({"place": {"base": "home", "path": "x"}}, "an output's base is 'home'"),
        ({"place": {"base": "root", "path": 1}}, "path is int"),
        ({"made": True}, "made is bool"),
        ({"made": "1"}, "made is str"),
        ({"claims": "a"}, "claims is str"),
        ({"claims": [3]}, "a claim is not a file name"),
        ({"claims": [["a"]]}, "a claim is not a file name"),
        ({"claims": [["a", "b", [1]]]}, "a claim is not a file name"),
        ({"claims": [["a", "b", [1, "2"]]]}, "a claim is not a file name"),
        ({"folders": ["a", 1]}, "folders holds something that is not text"),
        ({"detail": []}, "detail is list"),
    ],
)
def test_a_damaged_output_is_refused(change: dict[str, Any], says: str) -> None:
    with pytest.raises(StateUnreadable, match=says) as refused:
        READER.written({**OUTPUT, **change})
    assert refused.value.where == "log/7"


@pytest.mark.parametrize("source", [None, 3, "text", ["list"]])
def test_what_is_no_object_is_refused(source: Any) -> None:
    with pytest.raises(StateUnreadable, match="name is missing"):
        READER.get(source, "name", str)


@pytest.mark.parametrize("why", ["", "unfinished ", "mine"])
def test_a_debt_of_no_known_kind_is_refused(why: str) -> None:
    with pytest.raises(StateUnreadable, match="a debt is"):
        READER.debt({"why": why, "run": None, "output": OUTPUT, "by": None, "proof": []})


def test_variables_are_text() -> None:
    assert READER.variables({"variables": {"dt": "2026-11-01"}}) == {"dt": "2026-11-01"}
    with pytest.raises(StateUnreadable, match="variables hold something that is not text"):
        READER.variables({"variables": {"dt": 1}})
    assert READER.named_by({"named_by": None}) is None
    assert READER.named_by({"named_by": ["dt"]}) == ("dt",)
    assert READER.mapping_or_none({"attempt": {"try": 1}}, "attempt") == {"try": 1}
    with pytest.raises(StateUnreadable, match="attempt is list"):
        READER.mapping_or_none({"attempt": []}, "attempt")


@pytest.mark.parametrize(
    "value", [10**400, -(10**400), 2**63, float("inf"), float("nan")], ids=lambda v: str(v)[:9]
)
def test_a_number_that_no_run_writes_is_refused(value: float) -> None:
    """As JSON may have it, and as no float can hold it."""
    with pytest.raises(StateUnreadable, match="ttl is a number that no run writes"):
        READER.get({"ttl": value}, "ttl", (int, float))
    assert READER.get({"ttl": 2**62}, "ttl", (int, float)) == 2**62
