"""A use case folder on a real disk, jobs that run in it, and what must be true of it afterwards."""

from __future__ import annotations

import functools
import io
import json
import os
import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from airflow_provider_ubunye.core.batch import Batch
from airflow_provider_ubunye.core.log import BatchLog
from airflow_provider_ubunye.core.owner import Owner, this_process
from airflow_provider_ubunye.core.places import Places
from airflow_provider_ubunye.core.records import RUNNING, FileRecords, RunRecord
from airflow_provider_ubunye.core.request import RERUN, RUN, Request, Setting, appends
from airflow_provider_ubunye.core.run import open_run
from airflow_provider_ubunye.core.state import BatchState
from airflow_provider_ubunye.core.store import FileStore, open_store

TASK = "shop/daily/load_orders"
Row = tuple[str, int, int]
"""Day, version, part: each part file holds two such rows."""
Rows = Counter[Row]

_PART = re.compile(r"part-\d{5}-[0-9a-f]{32}\.parquet")
_HEX = "[0-9a-f]"
_EXPECTED = [
    re.compile(pattern)
    for pattern in (
        r"\.ubunye/(|lineage/|leases/|staging/|self-test/|store\.json)",
        r"\.ubunye/(leases|lineage)/(shop/|shop/daily/|shop/daily/load_orders/)",
        r"\.ubunye/lineage/shop/daily/load_orders/\.tmp/",
        rf"\.ubunye/lineage/shop/daily/load_orders/{_HEX}{{32}}\.json",
        rf"\.ubunye/leases/shop/daily/load_orders/{_HEX}{{16}}(/|\.finished\.json|/\d{{8}}\.json)",
        rf"lake/([a-z]+/([a-z]+=[a-z]+/)?({_PART.pattern})?)?",
    )
]


class UserError(Exception):
    """What a user's own transform raises."""


@dataclass(frozen=True)
class Out:
    """One output of a job.

    :param regions: partition values; none for an output without partitions.
    :param parts: part files in each folder.
    """

    folder: str
    mode: str = "append"
    regions: tuple[str, ...] = ()
    parts: int = 2

    def files(self) -> list[tuple[str, int]]:
        """Each part file: its folder inside the output, and its number."""
        folders = [f"region={r}" for r in self.regions] or [""]
        return [(f, i * self.parts + p) for i, f in enumerate(folders) for p in range(self.parts)]


@dataclass(frozen=True)
class Job:
    """One run of the batch of one day.

    :param version: tells the rows of a rerun from those of the first run.
    :param fails: the user's code raises after the first output is staged.
    """

    day: str
    outputs: tuple[Out, ...]
    version: int = 0
    purpose: str = RUN
    fails: bool = False
    ttl: float = 900.0
    wait: float = 0.0

    @property
    def appends(self) -> bool:
        return any(appends(o.mode) for o in self.outputs)

    @property
    def batch(self) -> Batch:
        return Batch.of(TASK, {"dt": self.day})

    def rows(self, out: Out) -> Rows:
        return Counter({(self.day, self.version, part): 2 for _, part in out.files()})


@functools.cache
def part_bytes(day: str, version: int, part: int) -> bytes:
    """A Parquet file of two equal rows. Made before a sweep forks, so that no child starts Arrow's threads."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pa.table({"day": [day] * 2, "version": [version] * 2, "part": [part] * 2})
    sink = io.BytesIO()
    pq.write_table(table, sink)
    return sink.getvalue()


def prepare_data(job: Job) -> None:
    """Make the bytes that a job will write."""
    for out in job.outputs:
        for _, part in out.files():
            part_bytes(job.day, job.version, part)


class World:
    """The folder.

    :param root: holds ``.ubunye`` and ``lake``.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self.state = root / ".ubunye"

    def setting(self, elsewhere: bool = False) -> Setting:
        """:param elsewhere: be judged, and judge, by the heartbeat alone."""
        owner = this_process()
        if elsewhere:
            owner = replace(owner, host="elsewhere", pid_space="another")
        return self.setting_of(owner)

    def setting_of(self, owner: Owner) -> Setting:
        return Setting(
            open_store(str(self.state)),
            Places(self.root),
            staging_root=f"{self.state}/staging",
            records=FileRecords(self.state / "lineage"),
            owner=owner,
        )

    def run(
        self, job: Job, setting: Setting | None = None, before_commit: Callable[[], object] = lambda: None
    ) -> str:
        """Run a job here and now, as a program would.

        :param before_commit: called when everything is staged.
        :returns: the run's id.
        :raises UbunyeError: it was refused or failed. :raises UserError: as the job asks.
        """
        os.makedirs(self.root, exist_ok=True)
        paths = {o.folder: str(self.root / "lake" / o.folder) for o in job.outputs}
        request = Request(
            job.batch,
            purpose=job.purpose,
            appends=job.appends,
            outputs={o.folder: (o.mode, paths[o.folder], "files") for o in job.outputs},
            ttl=job.ttl,
            wait=job.wait,
        )
        run = open_run(setting or self.setting(), request)
        assert run is not None
        with run:
            for out in job.outputs:
                staging = run.output(out.folder, out.mode, paths[out.folder])
                assert staging is not None
                for folder, part in out.files():
                    inside = staging.folder / folder
                    inside.mkdir(exist_ok=True)
                    with open(inside / staging.part_name(part, ".parquet"), "xb") as file:
                        file.write(part_bytes(job.day, job.version, part))
                if job.fails:
                    raise UserError("the user's own")
            before_commit()
        return run.id

    def rows(self, folder: str) -> Rows:
        """The rows of an output as a reader sees them: every file there must be whole."""
        import pyarrow.dataset as ds

        if not (self.root / "lake" / folder).is_dir():
            return Counter()
        found = ds.dataset(self.root / "lake" / folder, format="parquet", partitioning="hive")
        if not found.files:
            return Counter()
        table = found.to_table(columns=["day", "version", "part"], use_threads=False)
        columns = [table.column(name).to_pylist() for name in ("day", "version", "part")]
        return Counter(zip(*columns, strict=True))

    def log(self, job: Job) -> BatchLog:
        return BatchLog(FileStore(self.state), f"leases/{TASK}/{job.batch.key}")

    def batch(self, job: Job) -> BatchState:
        return self.log(job).read()

    def records(self) -> list[RunRecord]:
        return list(FileRecords(self.state / "lineage").search(TASK))

    def left_behind(self, job: Job, files: dict[str, int]) -> Iterator[str]:
        """Everything in the folder that a quiet one must not hold, in words.

        :param job: of the batch that ran last, whose note must be right.
        :param files: how many data files each output must hold.
        """
        names = list(_walk(str(self.root)))
        for name in names:
            empty = not any(n != name and n.startswith(name) for n in names)
            if not any(pattern.fullmatch(name) for pattern in _EXPECTED):
                yield f"left behind: {name}"
            elif name.startswith("lake/") and name.endswith("/") and empty:
                yield f"left behind, empty: {name}"
        for folder, count in files.items():
            there = sum(n.startswith(f"lake/{folder}/") and n.endswith(".parquet") for n in names)
            if there != count:
                yield f"{there} files in {folder}, not {count}"
        yield from self._state_left_behind(names)
        note = json.loads((self.state / f"leases/{TASK}/{job.batch.key}.finished.json").read_text())
        claimed = [name for output in note["outputs"].values() for name in output["claimed"]]
        if gone := [name for name in claimed if not (self.root / name).exists()]:
            yield f"the note names {gone}, which are not there"

    def _state_left_behind(self, names: list[str]) -> Iterator[str]:
        entries = Counter(os.path.dirname(n) for n in names if re.search(r"/\d{8}\.json$", n))
        notes = {n.removesuffix(".finished.json") for n in names if n.endswith(".finished.json")}
        for batch, count in entries.items():
            if count != 1:
                yield f"{count} entries in {batch}"
            if batch not in notes:
                yield f"no note for {batch}"
        for record in self.records():
            if record.status == RUNNING:
                yield f"the record of {record.run_id} says running"


def rerun(job: Job, version: int) -> Job:
    """The job run again on purpose, with other rows."""
    return replace(job, purpose=RERUN, version=version)


def _walk(root: str, inside: str = "") -> Iterator[str]:
    with os.scandir(os.path.join(root, inside)) as found:
        for item in list(found):
            if item.is_dir(follow_symlinks=False):
                yield f"{inside}{item.name}/"
                yield from _walk(root, f"{inside}{item.name}/")
            else:
                yield inside + item.name
