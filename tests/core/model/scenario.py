"""What is checked: runs, what stood there before, and how much may go wrong."""

from __future__ import annotations

import functools
import hashlib
from dataclasses import dataclass, field

from airflow_provider_ubunye.core.batch import Batch, bound
from airflow_provider_ubunye.core.request import RUN, appends
from tests.core.model.explore import Budget

PIPE = "/model/pipe"
TASK = "shop/daily/load_orders"


def hex_id(*parts: object) -> str:
    """A run or entry id that depends on nothing but its parts."""
    return hashlib.md5(repr(parts).encode(), usedforsecurity=False).hexdigest()


LOST = ("made", "made later")
OUT = tuple(f"{fate}, {how}" for fate in ("made", "not made", "made later") for how in ("out", "long out"))
"""What becomes of a create whose answer is lost, and whether the store then stays away for a while."""


@dataclass(frozen=True)
class Output:
    """:param parts: folders of the part files that each run writes, ``""`` for none."""

    mode: str = "append"
    name: str = "o"
    folder: str = "lake/orders"
    parts: tuple[str, ...] = ("", "")

    @functools.cached_property
    def path(self) -> str:
        return f"{PIPE}/{self.folder}"


@dataclass(frozen=True)
class Job:
    """A batch and what each of its runs writes.

    :param dt: None for a batch without a name.
    """

    dt: str | None = "2026-11-01"
    outputs: tuple[Output, ...] = (Output(),)

    @functools.cached_property
    def batch(self) -> Batch:
        return Batch.of(TASK, {} if self.dt is None else {"dt": self.dt})

    @functools.cached_property
    def adds(self) -> bool:
        return any(appends(o.mode) for o in self.outputs)


@dataclass(frozen=True)
class Actor:
    """One run. :param fails: its user's code raises once all is staged."""

    name: str
    job: Job = Job()
    purpose: str = RUN
    fails: bool = False

    @functools.cached_property
    def run(self) -> str:
        return bound(hex_id(self.name, 0), self.job.batch.key)


@dataclass(frozen=True)
class Scenario:
    """:param before: runs that ended before, one after the other.
    :param strangers: files that no run of ours wrote, by path below the use case folder.
    :param expected: errors that a run may report here, beside those that always may be.
    :param losses: how answers get lost here.
    :param shared_disk: whether the state is on the disk that holds the outputs.
    """

    name: str
    actors: tuple[Actor, ...]
    bound: Budget
    before: tuple[Actor, ...] = ()
    strangers: tuple[str, ...] = ()
    expected: frozenset[str] = frozenset()
    losses: tuple[str, ...] = LOST + OUT
    shared_disk: bool = True
    jobs: tuple[Job, ...] = field(init=False)

    def __post_init__(self) -> None:
        jobs = dict.fromkeys(a.job for a in (*self.before, *self.actors))
        object.__setattr__(self, "jobs", tuple(jobs))
