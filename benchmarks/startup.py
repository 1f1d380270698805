"""What ``ubunye`` costs before it does anything, against importing click alone. CPU, for that is what it is."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

from benchmarks.measure import Figure, interleaved, process, ratio
from benchmarks.usecase import append_parts, ubunye

LIMIT = 1.5
_BATCHES = 1000


def measure(work: Path, rounds: int) -> list[Figure]:
    """A: the command. B: ``python -c 'import click'``."""
    empty, full = work / "empty", work / "full"
    empty.mkdir()
    full.mkdir()
    for number in range(_BATCHES):
        append_parts(full, work / "out", {"dt": "2026-11-01", "shard": str(number)}, files=1)
    click = [sys.executable, "-c", "import click"]
    figures = []
    commands: list[tuple[str, list[str], float | None]] = [
        ("ubunye --help", ubunye("--help"), LIMIT),
        ("ubunye leases list, nothing there", ubunye("leases", "list", "-d", str(empty)), LIMIT),
        (
            f"ubunye leases list, {_BATCHES:,} finished batches",
            ubunye("leases", "list", "-d", str(full)),
            None,
        ),
    ]
    for name, argv, limit in commands:
        a, b = interleaved(rounds, _cpu_of(argv), _cpu_of(click))
        figures.append(ratio(f"{name}, CPU", a, b, limit, name.partition(",")[0], "import click"))
    return figures


def _cpu_of(argv: list[str]) -> Callable[[int], float]:
    return lambda _: process(argv).cpu
