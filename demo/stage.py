"""The demo's stage: commands typed and shown, facts checked."""

from __future__ import annotations

import itertools
import os
import shlex
import subprocess
import sys
import textwrap
from dataclasses import dataclass, field
from pathlib import Path

import pandas as pd

from demo.lake import Day, Lake, ordered

WIDTH = 100
COLOUR = sys.stdout.isatty() and "NO_COLOR" not in os.environ


class NotSo(Exception):
    """Something that the demo claims does not hold."""


def paint(text: str, code: str) -> str:
    """``text`` in a terminal's colour, where there is a terminal."""
    return f"\033[{code}m{text}\033[0m" if COLOUR else text


def folded(line: str) -> str:
    """A long line as a terminal of our width shows it; paths, words and the lines of a table stay whole."""
    if "  " in line.strip():
        return line
    return textwrap.fill(
        line, WIDTH - 2, subsequent_indent="    ", break_long_words=False, break_on_hyphens=False
    )


def quote(text: str) -> None:
    """Print what a program said, indented."""
    for line in text.splitlines():
        print(textwrap.indent(folded(line), "  "))


@dataclass(frozen=True)
class Said:
    """What a command answered: its exit code and its lines."""

    code: int
    text: str

    def show(self) -> None:
        """Print the lines as they came, and the exit code."""
        quote(self.text.rstrip())
        print(paint("  killed" if self.code == -9 else f"  exit code {self.code}", "2"))


@dataclass
class Demo:
    """The demo at work in one folder."""

    work: Path
    steps: int = 0
    checks: int = 0
    before: dict[str, Day] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.move_to(self.work)
        programs = Path(sys.executable).parent
        # What this terminal has set for its own runs must not reach ours.
        ours = {k: v for k, v in os.environ.items() if not k.startswith("UBUNYE_")}
        self.environ = {**ours, "PATH": f"{programs}{os.pathsep}{ours.get('PATH', '')}", "NO_COLOR": "1"}

    def move_to(self, work: Path) -> None:
        """Go on in another folder, with its own feed and lake."""
        self.work = work
        self.feed = work / "feed"
        self.lake = Lake(work / "lake" / "flights")

    # ── telling ─────────────────────────────────────────────────────────────────────────────────

    def step(self, title: str, *lines: str) -> None:
        """Open a step."""
        self.steps += 1
        print()
        print(paint(f"── {self.steps}. {title} ".ljust(WIDTH, "─"), "1;36"))
        for line in lines:
            print(textwrap.fill(line, WIDTH))
        self.before = self.lake.days()

    def check(self, fact: str, holds: bool) -> None:
        """Print a fact that holds. :raises NotSo: it doesn't."""
        if not holds:
            raise NotSo(fact)
        self.checks += 1
        print(f"  {paint('✓', '32')} {fact}")

    def check_day(self, date: str, *, rows: int | None = None) -> None:
        """The day is in the lake as the feed has it, or has ``rows`` rows; no other day was touched."""
        after = self.lake.days()
        if rows is None:
            self.check_exact(date, after)
        else:
            day = after.get(date, Day())
            what = f"{date} has {day.rows} rows in {len(day.files)} files"
            self.check(f"{what}: {'none' if not rows else 'those it had'}", day.rows == rows)
        self.check_others(date, after)

    def check_exact(self, date: str, after: dict[str, Day]) -> None:
        """The day is in the lake as the feed has it."""
        day = after.get(date, Day())
        feed = ordered(pd.read_csv(self.feed / f"{date}.csv", na_values="NA", keep_default_na=False))
        self.check(
            f"{date} has {day.rows} rows in {len(day.files)} files: exactly the flights of the feed",
            feed.equals(self.lake.rows_of(date)),
        )

    def check_others(self, date: str, after: dict[str, Day]) -> None:
        """No day but this one changed: the same rows in the very same files."""
        others = {k: v for k, v in self.before.items() if k != date}
        rows = sum(day.rows for day in others.values())
        same = others == {k: v for k, v in after.items() if k != date}
        if others or not same:
            self.check(
                f"days untouched beside it: {len(others)}, with {rows:,} rows; not one file changed", same
            )

    # ── typing ──────────────────────────────────────────────────────────────────────────────────

    def start(self, command: str) -> subprocess.Popen[str]:
        """Start a command as it would be typed; ``NAME=value`` before it goes to its environment."""
        print(paint(f"  $ {command}", "1"))
        words = shlex.split(command)
        settings = dict(word.split("=", 1) for word in itertools.takewhile(lambda w: "=" in w, words))
        return subprocess.Popen(
            words[len(settings) :],
            cwd=self.work,
            env={**self.environ, **settings},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def type(self, command: str) -> Said:
        """Run a command and show what it said."""
        said = answer(self.start(command))
        said.show()
        return said

    def load(self, date: str, more: str = "") -> str:
        """The command that loads one day."""
        return f"ubunye run -d pipelines -u air -p daily -t load_flights -dt {date}{more}"


def answer(process: subprocess.Popen[str]) -> Said:
    """Wait for a command's end."""
    text, _ = process.communicate(timeout=120)
    return Said(process.returncode, text)
