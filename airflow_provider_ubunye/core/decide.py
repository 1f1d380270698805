"""What a request comes to on a batch that nobody holds. Pure."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum

from airflow_provider_ubunye.core.state import Finished

RUN = "run"
RERUN = "rerun"
RESUME = "resume"
RELEASE = "release"

NEVER_REFUSED = frozenset({"overwrite", "overwrite_partitions", "errorifexists", "ignore", "merge"})
"""Modes of which a finished batch is never refused: they replace, or look for themselves."""


class Decision(Enum):
    """What a request comes to."""

    RUN = "run"
    REPLACE = "replace"
    SKIP = "skip"
    REFUSE = "refuse"


Policy = Callable[[Finished], Decision | None]
"""A caller's own answer to a finished batch; None leaves it to the rule."""


def appends(mode: str) -> bool:
    """Whether a write mode adds rows to what is there, so that a second run would add them twice."""
    return mode not in NEVER_REFUSED


def stands(mode: str) -> bool:
    """Whether a write mode itself replaces what its folder holds."""
    return mode in ("overwrite", "overwrite_partitions", "merge")


def decide(
    finished: Finished | None, purpose: str, adds: bool | None, policy: Policy | None = None
) -> Decision:
    """The rule (contract, first column of the table).

    :param finished: the run that finished the batch, None when it is not finished.
    :param adds: whether an output appends; None when the outputs are not known yet.
    """
    if finished is None or purpose == RELEASE:
        return Decision.RUN
    answer = policy(finished) if policy is not None else None
    if answer is not None:
        return answer
    if purpose == RERUN:
        return Decision.REPLACE
    if adds is None:
        # The outputs come later: what the finished run did is the best guess, and each append asks again.
        adds = any(appends(output.mode) for output in finished.outputs)
    if not adds:
        return Decision.RUN
    return Decision.SKIP if purpose == RESUME else Decision.REFUSE
