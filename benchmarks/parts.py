"""``ubunye run`` appending 12,000 part files, with the lease and with ``UBUNYE_RUN_LEASE=off``.

Without a lease the run still stages, names, checks, syncs and renames every file. What differs is the log:
kept in memory, or written entry by entry.
"""

from __future__ import annotations

from pathlib import Path

from airflow_provider_ubunye.core.localdisk import sync_file_system
from benchmarks.measure import Cost, Figure, interleaved, process, ratio
from benchmarks.usecase import clear, make_task, run_command

LIMIT = 1.1


def measure(work: Path, rounds: int, files: int) -> list[Figure]:
    """A: lease on. B: lease off. Fresh processes, each into a new output folder."""
    source = work / "orders.csv"
    source.write_text("id,price\n" + "".join(f"{i},1.0\n" for i in range(files)))
    make_task(work / "uc", source, f"{work}/out-{{{{ dt }}}}", options=", options: {maxRecordsPerFile: 1}")

    def run(day: str, lease: str) -> Cost:
        cost = process(run_command(work / "uc", day), {"UBUNYE_RUN_LEASE": lease})
        landed = sum(1 for name in (work / f"out-{day}").iterdir() if name.suffix == ".parquet")
        if landed != files:
            raise SystemExit(f"{landed} files landed instead of {files}")
        clear(work / f"out-{day}")
        sync_file_system(str(work))
        return cost

    on, off = interleaved(rounds, lambda n: run(f"on{n}", "on"), lambda n: run(f"off{n}", "off"))
    what = f"ubunye run appending {files:,} parts, lease on/off"
    return [
        ratio(f"{what}, wall", [c.wall for c in on], [c.wall for c in off], LIMIT, "on", "off"),
        ratio(f"{what}, CPU", [c.cpu for c in on], [c.cpu for c in off], LIMIT, "on", "off"),
    ]
