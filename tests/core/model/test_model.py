"""The protocol, checked: the real core in every interleaving up to each scenario's bound.

A larger bound: ``python -m tests.core.model --bound 3,1,1,0``.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from tests.core.model.check import check
from tests.core.model.faults import FAULTS, Fault
from tests.core.model.scenario import Scenario
from tests.core.model.scenarios import SCENARIOS, named


@pytest.fixture(autouse=True)
def _no_collector() -> Iterator[None]:
    # It would look at every visited state again and again, and has nothing to free before the end.
    gc.disable()
    yield
    gc.enable()


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda s: s.name.replace(" ", "_"))
def test_every_interleaving_keeps_the_invariants(
    scenario: Scenario, capsys: pytest.CaptureFixture[str]
) -> None:
    checked = check(scenario)
    with capsys.disabled():
        print(f"\n  {checked.line()}", end="")
    assert checked.violation is None, checked.violation
    assert checked.explored.complete


@pytest.mark.parametrize("fault", FAULTS, ids=lambda f: f.name.replace(" ", "_"))
def test_a_planted_fault_is_found(fault: Fault, capsys: pytest.CaptureFixture[str]) -> None:
    with fault.plant():
        checked = check(named(fault.scenario))
    with capsys.disabled():
        print(f"\n  {fault.name}: {checked.line()}", end="")
    assert checked.violation is not None
    assert fault.says in checked.violation.splitlines()[0]


def test_a_schedule_that_breaks_an_invariant_is_told_act_by_act() -> None:
    fault = next(f for f in FAULTS if f.name == "no fence")
    with fault.plant():
        told = check(named(fault.scenario)).violation
    assert told is not None
    assert "  A: create leases/" in told
    assert "  B: lives 1 (dead) → False" in told
