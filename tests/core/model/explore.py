"""Every interleaving of some runs, up to a bound: a depth-first search that runs each schedule from its start.

Two things prune it, neither of which loses a behaviour within the bound. **Sleep sets**: after a run was
preempted before an act, it is resumed only once another run did something that the act's outcome can depend
on. Only the act of the run that was going on is put to sleep, and a late create, for then the schedule left
out has an equal with no more preemptions. **Visited states**: a schedule that reaches a state (store, disk,
what each run has seen so far, what the monitor remembers) with no more budget left than before is cut short.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from tests.core.model.footprint import Footprint


class Budget(NamedTuple):
    """How much may go wrong in one schedule.

    :param preemptions: times that a run stops between two acts while another goes on; it may be resumed at
        any later act, so each is also a freeze.
    :param kills: runs that die between two acts, and never go on.
    :param misjudged: times that a run that is not dead is judged dead.
    :param losses: creates whose answer is lost.
    """

    preemptions: int = 0
    kills: int = 0
    misjudged: int = 0
    losses: int = 0

    @functools.cache  # noqa: B019 - there are few budgets, and they are asked millions of times
    def less(self, cost: Budget) -> Budget | None:
        """What is left after ``cost``, None when it can't be paid."""
        left = Budget(*(a - b for a, b in zip(self, cost, strict=True)))
        return None if min(left) < 0 else left

    @functools.cache  # noqa: B019 - as above
    def and_also(self, cost: Budget) -> Budget:
        """Both costs together."""
        return Budget(*(a + b for a, b in zip(self, cost, strict=True)))

    def covers(self, other: Budget) -> bool:
        return all(a >= b for a, b in zip(self, other, strict=True))


class Choice(NamedTuple):
    """One thing that can happen next: ``step`` of a run (in a variant), ``kill``, or ``deliver``."""

    act: str
    actor: str
    variant: str = ""


@dataclass(frozen=True)
class Option:
    choice: Choice
    cost: Budget
    footprint: Footprint
    sleeps: bool
    """Whether, tried once, it need not be tried again before something it depends on has happened."""


class World(Protocol):
    """What is explored. It begins anew with each execution and is deterministic in its choices."""

    def options(self) -> list[Option]:
        """What can happen next; none when all has ended."""

    def do(self, choice: Choice) -> None:
        """Let it happen. :raises Violation: an invariant is broken."""

    def state(self) -> int:
        """A hash of everything that can make a difference from here on."""

    def finish(self) -> None:
        """Check what must hold once all has ended. :raises Violation: it does not."""

    def drop(self) -> None:
        """Give up this execution."""


@dataclass
class Explored:
    """:ivar complete: False when the limit of executions stopped the search."""

    executions: int = 0
    finished: int = 0
    states: int = 0
    seconds: float = 0.0
    complete: bool = True


@dataclass
class _Node:
    options: list[Option]
    budget: Budget
    sleep: dict[Choice, Footprint]
    index: int = 0
    slept: dict[Choice, Footprint] = field(default_factory=dict)


def explore(begin: Callable[[], World], budget: Budget, limit: int | None, explored: Explored) -> None:
    """Run every schedule within the budget.

    :param limit: the most executions; None for no limit.
    :param explored: is counted up.
    :raises Violation: from the first schedule that breaks an invariant.
    """
    seen: dict[int, list[tuple[Budget, frozenset[Choice]]]] = {}
    stack: list[_Node] = []
    began = time.perf_counter()
    try:
        while True:
            world = begin()
            explored.executions += 1
            try:
                for node in stack:
                    world.do(node.options[node.index].choice)
                _go_on(world, stack, budget, seen, explored)
            finally:
                world.drop()
            while stack and stack[-1].index + 1 >= len(stack[-1].options):
                stack.pop()
            if not stack:
                return
            stack[-1].index += 1
            if limit is not None and explored.executions >= limit:
                explored.complete = False
                return
    finally:
        explored.states = len(seen)
        explored.seconds = time.perf_counter() - began


def _go_on(
    world: World,
    stack: list[_Node],
    whole: Budget,
    seen: dict[int, list[tuple[Budget, frozenset[Choice]]]],
    explored: Explored,
) -> None:
    while True:
        left, sleep = _after(stack[-1]) if stack else (whole, {})
        state = world.state()
        asleep = frozenset(sleep)
        before = seen.setdefault(state, [])
        if any(b.covers(left) and s <= asleep for b, s in before):
            return
        before[:] = [(b, s) for b, s in before if not (left.covers(b) and asleep <= s)]
        before.append((left, asleep))
        every = world.options()
        if not every:
            explored.finished += 1
            world.finish()
            return
        options = [o for o in every if o.choice not in sleep and left.less(o.cost) is not None]
        if not options:
            return
        stack.append(_Node(options, left, sleep))
        world.do(options[0].choice)


def _after(node: _Node) -> tuple[Budget, dict[Choice, Footprint]]:
    """Budget and sleep set once a node's present option was taken."""
    taken = node.options[node.index]
    left = node.budget.less(taken.cost)
    assert left is not None
    sleep = dict(node.sleep)
    sleep.update({o.choice: o.footprint for o in node.options[: node.index] if o.sleeps})
    kept = {
        choice: footprint
        for choice, footprint in sleep.items()
        if choice.actor != taken.choice.actor and not footprint.conflicts(taken.footprint)
    }
    return left, kept
