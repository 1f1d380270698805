"""A run under way, and what may become of its acts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from greenlet import greenlet

from airflow_provider_ubunye.core.owner import Owner
from tests.core.model.explore import Budget
from tests.core.model.scenario import Actor

FREE = Budget()
SWITCH = Budget(preemptions=1)
KILL = Budget(kills=1)
MISJUDGE = Budget(misjudged=1)
LOSE = Budget(losses=1)

OUTAGES = {"": 0, "out": 4, "long out": 5}
"""For how many further acts a store that gave no answer stays away: for the creates that try again, or for the
look at what became of them too."""


@dataclass
class Act:
    side: str
    name: str
    args: tuple[Any, ...]


class Coroutine:
    """One run under way."""

    def __init__(self, actor: Actor, pid: int) -> None:
        self.actor = actor
        self.owner = Owner("host", "boot", "", pid, 1.0)
        self.greenlet: greenlet | None = None
        self.act: Act | None = None
        self.seen = 0
        self.ids = 0
        self.outage = 0
        self.dropped = False
        self.ended = False
        self.changed = False
        self.inside = False
        self.killed = False
