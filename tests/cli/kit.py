"""A use case folder to call the program on."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_ubunye.cli.app import run

CONFIG = """\
CONFIG:
  inputs:
    orders: {{format: csv, path: data/orders.csv}}
  outputs:
    kept: {{format: parquet, path: output/kept, mode: {mode}}}
"""
CODE = "def transform(sources):\n    return {'kept': sources['orders']}\n"
ORDERS = "order_id,amount\n1,12.5\n2,0.4\n3,7.0\n"
DAY = "2026-11-01"


@dataclass
class Answer:
    """What one call came to."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def errors(self) -> list[str]:
        return [line for line in self.err.splitlines() if line.startswith("[ERROR]")]


@dataclass
class Shop:
    """A use case folder with tasks, and calls on it."""

    root: Path
    capsys: pytest.CaptureFixture[str]

    @property
    def state(self) -> Path:
        return self.root / ".ubunye"

    def task(self, name: str = "load", *, mode: str = "append", config: str = "", code: str = CODE) -> Path:
        folder = self.root / "shop" / "daily" / name
        (folder / "data").mkdir(parents=True, exist_ok=True)
        (folder / "config.yaml").write_text(config or CONFIG.format(mode=mode))
        (folder / "transformations.py").write_text(code)
        (folder / "data" / "orders.csv").write_text(ORDERS)
        return folder

    def args(self, command: str, *more: str, tasks: tuple[str, ...] = ("load",)) -> list[str]:
        named = [part for name in tasks for part in ("-t", name)]
        return [command, "-d", str(self.root), "-u", "shop", "-p", "daily", *named, *more]

    def ubunye(self, *args: str) -> Answer:
        self.capsys.readouterr()
        code = run(args)
        said = self.capsys.readouterr()
        assert "Traceback" not in said.err + said.out or "--debug" in args
        return Answer(code, said.out, said.err)

    def do(self, command: str, *more: str, tasks: tuple[str, ...] = ("load",)) -> Answer:
        return self.ubunye(*self.args(command, *more, tasks=tasks))

    def process(self, *args: str, **how: Any) -> subprocess.Popen[str]:
        """The real program."""
        program = [
            sys.executable,
            "-c",
            "import sys; from airflow_provider_ubunye.cli import main; sys.exit(main())",
        ]
        how = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, **how}
        return subprocess.Popen([*program, *args], **how)

    def files(self, name: str = "load") -> list[str]:
        folder = self.root / "shop" / "daily" / name / "output" / "kept"
        return sorted(os.listdir(folder)) if folder.is_dir() else []

    def everything(self) -> dict[str, bytes | None]:
        """Every path below the use case folder, with the content of files."""
        return {
            str(path.relative_to(self.root)): path.read_bytes() if path.is_file() else None
            for path in sorted(self.root.rglob("*"))
            if "__pycache__" not in path.parts
        }

    @contextmanager
    def running(
        self, *more: str, name: str = "load", mode: str = "append"
    ) -> Iterator[subprocess.Popen[str]]:
        """A real run that has its lease and waits inside its transform until the file ``go`` is there."""
        flag, go = self.root / "inside", self.root / "go"
        code = (
            "import os, time\n"
            "def transform(sources):\n"
            f"    open({str(flag)!r}, 'w').close()\n"
            f"    while not os.path.exists({str(go)!r}): time.sleep(0.02)\n"
            "    return {'kept': sources['orders']}\n"
        )
        self.task(name, mode=mode, code=code)
        process = self.process(*self.args("run", *more, tasks=(name,)))
        wait_until(flag.exists)
        try:
            yield process
        finally:
            process.kill()
            process.communicate()
            flag.unlink(missing_ok=True)
            go.unlink(missing_ok=True)

    def go(self) -> None:
        (self.root / "go").touch()


def wait_until(true: Callable[[], bool], seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.02)
