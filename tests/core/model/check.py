"""Checks a scenario and says what was looked at."""

from __future__ import annotations

from dataclasses import dataclass

from tests.core.model.determined import determined
from tests.core.model.explore import Budget, Explored, explore
from tests.core.model.monitor import Violation
from tests.core.model.scenario import Scenario
from tests.core.model.world import Base, World


@dataclass
class Checked:
    """:ivar violation: what was broken first, with the schedule that broke it; None when nothing was."""

    scenario: Scenario
    bound: Budget
    explored: Explored
    violation: str | None = None

    def line(self) -> str:
        """One line for people."""
        e = self.explored
        b = self.bound
        return (
            f"{self.scenario.name}: {e.executions} executions ({e.finished} to the end), {e.states} states, "
            f"bound: {b.preemptions} preemptions, {b.kills} kills, {b.misjudged} misjudged, {b.losses} lost "
            f"answers{'' if e.complete else ' (cut at the limit)'}, {e.seconds:.1f} s"
        )


def check(scenario: Scenario, bound: Budget | None = None, limit: int | None = None) -> Checked:
    """Explore a scenario up to its bound, or another one.

    :param limit: the most executions; None for no limit.
    """
    bound = scenario.bound if bound is None else bound
    last: list[World] = []
    with determined():
        base = Base(scenario)

        def begin() -> World:
            last[:] = [World(base).begin()]
            return last[0]

        counted = Explored()
        try:
            explore(begin, bound, limit, counted)
        except Violation as violation:
            trace = "\n  ".join(last[0].trace())
            return Checked(scenario, bound, counted, f"{violation}\n  {trace}")
    return Checked(scenario, bound, counted)
