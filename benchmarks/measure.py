"""Measuring: interleaved pairs, their spread, what a process costs, and limits.

A machine slows down and speeds up while a benchmark runs. So the two sides of a comparison take turns,
A B A B …, each pair gives one ratio, and the median of these ratios is the figure. The spread is always shown.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

T = TypeVar("T")


@dataclass(frozen=True)
class Cost:
    """What one process cost, in seconds.

    :param cpu: user and system time of the process and the children it waited for.
    """

    wall: float
    cpu: float


@dataclass(frozen=True)
class Figure:
    """One figure, and the limit it must keep.

    :param value: a ratio, a count or seconds, as ``unit`` says: ``"x"``, ``""``, ``"s"``.
    :param limit: the highest value that is good; None where none is set.
    :param lines: what it was found from, for people.
    """

    what: str
    value: float
    unit: str
    limit: float | None = None
    lines: Sequence[str] = field(default_factory=tuple)

    @property
    def good(self) -> bool:
        return self.limit is None or self.value <= self.limit

    def __str__(self) -> str:
        value = f"{self.value:.0f}" if self.unit == "" else f"{self.value:.2f} {self.unit}"
        if self.limit is None:
            return f"{self.what}: {value}"
        mark = "good" if self.good else "PAST THE LIMIT"
        return f"{self.what}: {value} (limit {self.limit:g}) {mark}"


def ratio(
    what: str, a: Sequence[float], b: Sequence[float], limit: float | None, a_name: str, b_name: str
) -> Figure:
    """The median over the pairs of A's seconds divided by B's."""
    each = [x / y for x, y in zip(a, b, strict=True)]
    width = max(len(a_name), len(b_name))
    lines = (
        f"A {a_name:{width}}  {_spread(a)} s",
        f"B {b_name:{width}}  {_spread(b)} s",
        f"A/B pair by pair: {' '.join(f'{r:.2f}' for r in each)}",
    )
    return Figure(what, statistics.median(each), "x", limit, lines)


def _spread(values: Sequence[float]) -> str:
    return f"min {min(values):.3f}  median {statistics.median(values):.3f}  max {max(values):.3f}"


def interleaved(rounds: int, a: Callable[[int], T], b: Callable[[int], T]) -> tuple[list[T], list[T]]:
    """Measure A B A B …. Each side is run once before that, uncounted, so that both find warm caches.

    :param a: measures once, given the round; the uncounted round is 0.
    """
    of_a: list[T] = []
    of_b: list[T] = []
    for number in range(rounds + 1):
        found = a(number), b(number)
        if number:
            of_a.append(found[0])
            of_b.append(found[1])
    return of_a, of_b


def timed(act: Callable[[], object]) -> float:
    """Seconds that ``act`` takes."""
    began = time.perf_counter()
    act()
    return time.perf_counter() - began


def process(argv: Sequence[str], environ: Mapping[str, str] | None = None) -> Cost:
    """Run a fresh process to its end.

    :param environ: what its environment has beside this process' own.
    :raises SystemExit: it failed; what it said is shown.
    """
    with tempfile.TemporaryFile() as said:
        began = time.perf_counter()
        child = subprocess.Popen(
            argv, stdin=subprocess.DEVNULL, stdout=said, stderr=said, env={**os.environ, **(environ or {})}
        )
        _, status, used = os.wait4(child.pid, 0)
        wall = time.perf_counter() - began
        child.returncode = os.waitstatus_to_exitcode(status)
        if child.returncode:
            said.seek(0)
            text = said.read().decode(errors="replace")
            raise SystemExit(f"{' '.join(argv)} ended with {child.returncode}:\n{text}")
    return Cost(wall, used.ru_utime + used.ru_stime)
