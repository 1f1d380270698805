"""Every error this project raises on purpose, under one root.

::

    UbunyeError                    what, where, hint; exit_code; reason
    ├── Refused               (1)  nothing was written
    │   ├── RunLeaseHeld           a live run holds the batch
    │   │   └── BatchFinished      the batch is there already
    │   └── OutputExists           mode errorifexists met data
    ├── UsageError            (2)  the call or the configuration is wrong
    │   └── ConfigError
    ├── RunFailed             (3)  running again is safe
    │   ├── TransformFailed        the user's own code raised
    │   └── LandingFailed          the data could not be staged or landed
    ├── RunStopped            (4)
    │   ├── LeaseLost              another run took the batch over, or it could not be refreshed
    │   └── RunInterrupted         asked to stop
    └── NeedsPerson           (5)  a state that must not be guessed about
        ├── StateUnreadable        an entry, note or lease exists and can't be read
        ├── NotTakenBack           files that could not be removed
        └── MayRepeat              rows are in an output that a rerun would add again

Exit codes: contract, "Exit codes and refusals".
"""

from __future__ import annotations

from collections.abc import Sequence

DAMAGED = (
    "nothing was run or removed. Put the file back from a backup; do not delete it, for it may say which files "
    "to take back. What to look at: docs/how-to/damaged.md"
)
"""What to do about a state that can't be read."""


class UbunyeError(Exception):
    """Something went wrong and is said in one line.

    :param what: one sentence: what happened, and who holds what since when.
    :param where: the file, key or config place it is about, if one helps.
    :param hint: what to type or change next.
    """

    exit_code = 3
    reason = "failed"

    def __init__(self, what: str, *, where: str | None = None, hint: str | None = None) -> None:
        super().__init__(what)
        self.what = what
        self.where = where
        self.hint = hint
        self._added: list[str] = []

    @property
    def __notes__(self) -> list[str]:
        """What a traceback shows below the sentence: where and hint as they are now, then notes added."""
        return [*self.lines()[1:], *self._added]

    @__notes__.setter
    def __notes__(self, notes: list[str]) -> None:
        self._added = list(notes)

    def add_note(self, note: str, /) -> None:
        self._added.append(note)

    def lines(self) -> list[str]:
        """The error as a person reads it: the sentence, then where and hint on lines of their own."""
        out = [self.what]
        if self.where:
            out.append(f"  Where: {self.where}")
        if self.hint:
            out.append(f"  Hint: {self.hint}")
        return out


class Refused(UbunyeError):
    """The run was refused before it wrote anything."""

    exit_code = 1
    reason = "refused"


class RunLeaseHeld(Refused):
    """A live run holds the batch's lease."""

    reason = "held"


class BatchFinished(RunLeaseHeld):
    """The batch is finished and running it again would add its rows twice."""

    reason = "finished"


class OutputExists(Refused):
    """An ``errorifexists`` output holds data already."""

    reason = "output_exists"


class UsageError(UbunyeError):
    """The call can't be carried out as it was made."""

    exit_code = 2
    reason = "usage"


class ConfigError(UsageError):
    """A task's configuration is wrong."""

    reason = "config"


class RunFailed(UbunyeError):
    """The run failed; what could be taken back is taken back, and running it again is safe."""


class TransformFailed(RunFailed):
    """The user's own code raised.

    :param frames: the traceback lines that lie in the user's code.
    """

    reason = "transform"

    def __init__(self, what: str, *, frames: Sequence[str] = (), hint: str | None = None) -> None:
        super().__init__(what, hint=hint)
        self.frames = list(frames)

    def lines(self) -> list[str]:
        return [self.what, *self.frames, *([f"  Hint: {self.hint}"] if self.hint else [])]


class LandingFailed(RunFailed):
    """The data could not be written, claimed or moved into place."""

    reason = "landing"


class RunStopped(UbunyeError):
    """The run ended before it committed, through no fault of its data."""

    exit_code = 4
    reason = "stopped"


class LeaseLost(RunStopped):
    """The lease is no longer this run's: it can record nothing and land nothing more."""

    reason = "lease_lost"


class RunInterrupted(RunStopped):
    """The run was asked to stop (a signal, Ctrl+C, a scheduler)."""

    reason = "interrupted"


class NeedsPerson(UbunyeError):
    """A state or an outcome that must not be guessed about."""

    exit_code = 5
    reason = "needs_person"


class StateUnreadable(NeedsPerson):
    """Something that protects the batch exists and can't be read or makes no sense."""

    reason = "unreadable"

    def __init__(self, what: str, *, where: str | None = None, hint: str | None = None) -> None:
        super().__init__(what, where=where, hint=hint or DAMAGED)


class NotTakenBack(NeedsPerson):
    """Files that belong to a dead or replaced run could not be removed."""

    reason = "not_taken_back"


class MayRepeat(NeedsPerson):
    """A run failed after rows reached an output that can't be taken back."""

    reason = "may_repeat"
