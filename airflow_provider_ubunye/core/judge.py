"""Is the run that holds a lease dead? One pure judgement over the evidence (contract, invariant 9).

=================================================  ========  ===========================================
evidence                                           verdict   why
=================================================  ========  ===========================================
same place, process there with that start time     alive     a slow or frozen run is not a dead one
same place, process gone, or its pid reused        dead      at once
elsewhere, heartbeat younger than ttl              alive
elsewhere, older, but not yet watched long enough  unknown   a caching client may be shown an old state
elsewhere, older, unchanged while watched          dead
elsewhere, in the future, unchanged for ttl        dead      the store's clock was set back: only our
                                                             own watch counts
=================================================  ========  ===========================================

A wrong "dead" is safe: a takeover fences before it removes anything. A wrong "alive" only waits.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

PATIENCE = 90.0
"""Seconds for which a run watches a silent holder unasked: the longest beat and a network disk's caching."""


class Verdict(Enum):
    """What the judge says of a holder."""

    ALIVE = "alive"
    DEAD = "dead"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class Evidence:
    """What was seen of a holder.

    :param process: True or False for an owner of this place, None elsewhere.
    :param age: seconds since its heartbeat by the store's clock; None when the heartbeat is gone.
    :param watched: seconds by the judge's own clock through which the heartbeat did not change.
    :param ttl: seconds without a heartbeat after which the lease may be taken.
    :param watch: seconds that the judge must have watched: one beat and the store's caching time.
    """

    process: bool | None
    age: float | None
    watched: float
    ttl: float
    watch: float

    @property
    def ahead(self) -> float:
        """Seconds by which the heartbeat lies in the future: a clock was set back, or the file's time changed."""
        return max(-self.age, 0.0) if self.age is not None else 0.0

    @property
    def needed(self) -> float:
        """Seconds for which a silent holder must be watched in all before it is dead."""
        return self.watch if self.age is not None and not self.ahead else self.ttl + self.watch

    def worth_watching(self, left: float) -> bool:
        """Whether to go on watching a holder that shows no sign of life: it may soon be told dead.

        :param left: seconds that the run may wait anyway. A heartbeat in the future that needs more than that is
            watched only where that takes no longer than any other silent holder may.
        """
        if self.ahead:
            return self.needed - self.watched <= max(left, PATIENCE)
        return self.age is not None and self.age >= self.ttl


def judge(seen: Evidence) -> Verdict:
    """The verdict over the evidence; see the table above."""
    if seen.process is not None:
        return Verdict.ALIVE if seen.process else Verdict.DEAD
    if seen.age is not None and 0 <= seen.age < seen.ttl:
        return Verdict.ALIVE
    return Verdict.DEAD if seen.watched >= seen.needed else Verdict.UNKNOWN
