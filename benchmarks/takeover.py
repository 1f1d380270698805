"""Taking over from a run that was killed on this machine, against the same run with nothing to take over."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

from airflow_provider_ubunye.core.disk import LocalDisk
from airflow_provider_ubunye.core.localdisk import sync_file_system
from benchmarks.measure import Figure, interleaved, ratio, timed
from benchmarks.usecase import append_parts, clear


class _Deadly(LocalDisk):
    """Kills its process once it has moved some part files."""

    def __init__(self, moves: int) -> None:
        self._left = moves

    def rename(self, source: str, target: str) -> None:
        if target.endswith(".parquet"):
            if not self._left:
                os.kill(os.getpid(), signal.SIGKILL)
            self._left -= 1
        super().rename(source, target)


def measure(work: Path, rounds: int, files: int) -> list[Figure]:
    """A: the run after one that was killed half way through landing. B: the run of a batch nobody ran."""
    figures = []
    for count in (2, files):
        folder = work / str(count)
        folder.mkdir()

        def run(day: str, count: int = count, folder: Path = folder) -> float:
            spent = timed(lambda: append_parts(folder, folder / "out", {"dt": day}, count))
            landed = len(list((folder / "out").glob("*.parquet")))
            if landed != count:
                raise SystemExit(f"{landed} files are there instead of {count}")
            clear(folder / "out")
            sync_file_system(str(folder))
            return spent

        def after_a_dead_run(number: int, count: int = count, folder: Path = folder) -> float:
            day = f"taken-{number}"
            program = [sys.executable, "-m", __name__, str(folder), day, str(count)]
            ended = subprocess.run(program, check=False, cwd=Path(__file__).parents[1]).returncode
            if ended != -signal.SIGKILL:
                raise SystemExit(f"the run that was to be killed ended with {ended}")
            return run(day)

        a, b = interleaved(rounds, after_a_dead_run, lambda number: run(f"new-{number}"))
        what = f"a run of {count:,} files that takes over from one killed half way"
        figures.append(ratio(what, a, b, None, "takes over", "nothing to take over"))
    return figures


if __name__ == "__main__":
    _folder, _day, _count = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
    append_parts(_folder, _folder / "out", {"dt": _day}, _count, _Deadly(_count // 2))
