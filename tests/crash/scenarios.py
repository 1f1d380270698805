"""What is done before, what is killed, and what must be there in the end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from tests.crash.calls import Call
from tests.crash.world import Job, Out, Rows, rerun

DAY = "2026-11-01"
OTHER = "2026-10-31"

ORDERS = Out("orders")
BY_REGION = Out("regions", regions=("east", "west"))
AUDIT = Out("audit", parts=1)

Predicate = Callable[[Call], bool]


@dataclass(frozen=True)
class Before:
    """A run that is part of what was there before.

    :param dies: the first call before which this is true kills it; None lets it end.
    """

    job: Job
    dies: Predicate | None = None


@dataclass(frozen=True)
class Scenario:
    """One line of the matrix.

    :param before: runs that made what is there.
    :param job: the run that is killed or stopped at each of its calls.
    :param again: the run after it; as ``job``, but without its user's error.
    :param rows: what an uninterrupted run leaves, by output.
    :param old: what readers see before it commits.
    """

    name: str
    before: tuple[Before, ...]
    job: Job
    old: dict[str, Rows]
    rows: dict[str, Rows]
    files: dict[str, int]
    committed_before: bool = False

    @property
    def again(self) -> Job:
        return replace(self.job, fails=False)


@dataclass
class _Lake:
    """What finished runs leave, worked out by their modes alone."""

    files: dict[str, Counter[tuple[str, str, int, int]]] = field(default_factory=dict)

    def apply(self, job: Job) -> None:
        for out in job.outputs:
            there = self.files.setdefault(out.folder, Counter())
            mine = Counter((folder, job.day, job.version, part) for folder, part in out.files())
            if out.mode == "overwrite":
                there.clear()
            elif out.mode == "overwrite_partitions":
                folders = {folder for folder, _ in out.files()}
                for name in [n for n in there if n[0] in folders]:
                    del there[name]
            else:
                for name in [n for n in there if n[1] == job.day]:
                    del there[name]
            there.update(mine)

    def rows(self) -> dict[str, Rows]:
        return {
            folder: Counter({(day, version, part): 2 for _, day, version, part in files})
            for folder, files in self.files.items()
        }


def scenario(name: str, *before: Before | Job, job: Job) -> Scenario:
    """A scenario whose rows follow from its jobs. A job that dies before it is done leaves nothing."""
    lake = _Lake()
    steps = tuple(step if isinstance(step, Before) else Before(step) for step in before)
    committed = False
    for step in steps:
        if (step.dies is None and not step.job.fails) or step.dies in COMMITTED:
            lake.apply(step.job)
            committed = committed or step.job.day == job.day
    for out in job.outputs:
        lake.files.setdefault(out.folder, Counter())
    old = lake.rows()
    refused = committed and job.purpose == "run" and job.appends
    if not refused:
        lake.apply(job)
    files = {folder: len(names) for folder, names in lake.files.items()}
    return Scenario(name, steps, job, old, lake.rows(), files, committed_before=refused)


def _nth(number: int, matches: Predicate) -> Predicate:
    seen = 0

    def reached(call: Call) -> bool:
        nonlocal seen
        seen += matches(call)
        return seen == number

    return reached


def _landing(call: Call) -> bool:
    return call.kind == "rename" and ".parquet" in call.paths[-1]


def _note(call: Call) -> bool:
    return call.kind == "rename" and call.paths[-1].endswith(".finished.json")


def _removing(call: Call) -> bool:
    return call.kind == "remove" and "/lake/" in call.paths[0] and call.paths[0].endswith(".parquet")


MID_LANDING = _nth(2, _landing)
MID_TAKING_BACK = _nth(1, _removing)
BEFORE_NOTE = _nth(1, _note)
MID_REPLACING = _nth(2, _removing)
COMMITTED = (BEFORE_NOTE, MID_REPLACING)
"""Where a dead run had recorded ``done``."""

_other = Job(OTHER, (ORDERS,))
_new = Job(DAY, (ORDERS,))
_regions = Job(DAY, (BY_REGION,))
_two = Job(DAY, (ORDERS, AUDIT))
_overwrite = Job(DAY, (replace(ORDERS, mode="overwrite"),), version=1)
_partitions = Job(DAY, (replace(BY_REGION, mode="overwrite_partitions"),), version=1)
_failing = replace(_two, fails=True)
_fresh = Job(DAY, (replace(ORDERS, mode="errorifexists"),))

SCENARIOS = {
    s.name: s
    for s in (
        scenario("append to a new folder", job=_new),
        scenario("append beside another batch", _other, job=_new),
        scenario("append of many files", _other, job=Job(DAY, (replace(ORDERS, parts=10),))),
        scenario("append by partition", Job(OTHER, (BY_REGION,)), job=_regions),
        scenario(
            "append to a new partition", Job(OTHER, (replace(BY_REGION, regions=("east",)),)), job=_regions
        ),
        scenario("two outputs", _other, job=_two),
        scenario("rerun", _other, _new, job=rerun(replace(_new, outputs=(replace(ORDERS, parts=1),)), 1)),
        scenario("rerun by partition", _regions, job=rerun(_regions, 1)),
        scenario("overwrite", _other, _new, job=_overwrite),
        scenario("overwrite of nothing", job=_overwrite),
        scenario(
            "overwrite of partitions",
            Job(OTHER, (replace(BY_REGION, regions=("north", "east")),)),
            _regions,
            job=_partitions,
        ),
        scenario("errorifexists", job=_fresh),
        scenario("takeover in the landing", _other, Before(_two, MID_LANDING), job=_two),
        scenario("takeover in an overwrite", _other, Before(_overwrite, MID_LANDING), job=_overwrite),
        scenario("takeover in a rerun", _new, Before(rerun(_new, 1), MID_LANDING), job=rerun(_new, 2)),
        scenario(
            "takeover of a dead taker", Before(_two, MID_LANDING), Before(_two, MID_TAKING_BACK), job=_two
        ),
        scenario("finish of a dead run", _other, Before(_new, BEFORE_NOTE), job=_new),
        scenario("finish of a dead rerun", _other, _new, Before(rerun(_new, 1), MID_REPLACING), job=_new),
        scenario("rerun over a dead rerun", _new, Before(rerun(_new, 1), MID_REPLACING), job=rerun(_new, 2)),
        scenario(
            "finish of a dead overwrite",
            _new,
            Before(_overwrite, MID_REPLACING),
            job=replace(_overwrite, version=2),
        ),
        scenario("failing run", _other, job=_failing),
        scenario("failing rerun", _two, job=rerun(_failing, 1)),
    )
}
