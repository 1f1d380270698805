"""``python -m benchmarks``: measure, print, and with ``--check`` fail past a limit."""

from __future__ import annotations

import argparse
import importlib
import os
import platform
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import benchmarks
from airflow_provider_ubunye.core.store.file import file_system_of
from benchmarks.measure import Figure

FILES = 12_000

# Name -> (module, pairs to measure).
_ALL: dict[str, tuple[str, int]] = {
    "landing": ("landing", 7),
    "parts": ("parts", 5),
    "operations": ("operations", 1),
    "startup": ("startup", 15),
    "small": ("small", 15),
    "long": ("long", 5),
    "operator": ("operator", 5),
    "takeover": ("takeover", 7),
    "entry": ("entry", 7),
}
_TAKES_FILES = {"landing", "parts", "takeover"}


def main(arguments: list[str]) -> int:
    """Measure what was asked for. Returns the exit code: 1 where ``--check`` found a figure past its limit."""
    asked = _parser().parse_args(arguments)
    figures: list[Figure] = []
    with tempfile.TemporaryDirectory(prefix="ubunye-benchmarks-", dir=asked.folder) as made:
        root = Path(made).resolve()
        print(f"{platform.platform()}, Python {platform.python_version()}, {_cores()} cores")
        print(f"work folder on {file_system_of(str(root))}\n")
        for name in asked.what or list(_ALL):
            module, rounds = _ALL[name]
            measure: Callable[..., list[Figure]] = importlib.import_module(f"benchmarks.{module}").measure
            work = root / name
            work.mkdir()
            how = {} if name == "operations" else {"rounds": asked.rounds or rounds}
            if name in _TAKES_FILES:
                how["files"] = asked.files
            print(f"== {name}")
            for figure in measure(work, **how):
                figures.append(figure)
                print(figure, *(f"    {line}" for line in figure.lines), sep="\n", flush=True)
            print()
    bad = [figure for figure in figures if not figure.good]
    print(f"{len(figures)} figures, {len(bad)} past their limit")
    for figure in bad:
        print(f"  {figure}")
    return 1 if asked.check and bad else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=benchmarks.__doc__)
    parser.add_argument("what", nargs="*", choices=[*_ALL, []], help="what to measure; everything by default")
    parser.add_argument("--check", action="store_true", help="exit 1 where a figure is past its limit")
    parser.add_argument("--rounds", type=int, help="pairs to measure; each benchmark has its own default")
    parser.add_argument("--files", type=int, default=FILES, help=f"files to land (default {FILES})")
    parser.add_argument("--folder", help="where to work: a folder on the disk to measure")
    return parser


def _cores() -> int:
    return len(os.sched_getaffinity(0))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
