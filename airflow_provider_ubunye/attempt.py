"""Which try of which task asks, and what that means for a batch that is finished already. Pure; no Airflow.

=============================================================  ========  ======================================
the try that finished the batch, against the one that asks     relation  why
=============================================================  ========  ======================================
none recorded: the shell, plain Python                         other
of another DAG, DAG run, task or map index                     other
of ``airflow tasks test``                                      other     a person tried it out
the one that asks is of ``airflow tasks test``, or try 0       again     never a retry
another ``max_tries``                                          again     a clear sets it to try + retries
the same ``max_tries``, a lower try, the same ``clear_number``  retry     automatic
the same, another ``clear_number``, the same ``retries``       retry     another task of the run was cleared
the same, another ``clear_number``, other ``retries``          again     edited, so ``max_tries`` proves nothing
the same, a try that is not lower                              other     the DAG run was deleted and made again
=============================================================  ========  ======================================
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from enum import Enum
from typing import Any

from airflow_provider_ubunye.core.decide import Decision
from airflow_provider_ubunye.core.errors import UsageError
from airflow_provider_ubunye.core.messages import who
from airflow_provider_ubunye.core.state import Finished

FAIL = "fail"
SKIP = "skip"
RERUN = "rerun"

ON_FINISHED = (FAIL, SKIP, RERUN)
ON_CLEAR = (FAIL, RERUN)


class Relation(Enum):
    """What the try that asks is to the try that finished the batch."""

    RETRY = "retry"
    AGAIN = "again"
    OTHER = "other"


@dataclass(frozen=True)
class Attempt:
    """One try of one task instance, kept with the run.

    :param map_index: -1 for a task that is not mapped.
    :param try_number: from 1; 0 for a run that ``airflow tasks test`` made up.
    :param max_tries: the last try that Airflow starts by itself.
    :param clear_number: how often tasks of the DAG run were cleared.
    :param retries: the task's own setting as the DAG had it.
    :param test: whether ``airflow tasks test`` runs it.
    """

    dag_id: str
    run_id: str
    task_id: str
    map_index: int
    try_number: int
    max_tries: int
    clear_number: int
    retries: int
    test: bool = False

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    def relation(self, earlier: Mapping[str, Any] | None) -> Relation:
        """What this try is to the recorded one; the table at the head of the module."""
        mine = self.to_json()

        def same(*names: str) -> bool:
            return earlier is not None and all(earlier.get(n) == mine[n] for n in names)

        if earlier is None or earlier.get("test") or not same("dag_id", "run_id", "task_id", "map_index"):
            return Relation.OTHER
        if self.test or self.try_number == 0 or not same("max_tries"):
            return Relation.AGAIN
        before = earlier.get("try_number")
        if not isinstance(before, int) or not 0 < before < self.try_number:
            return Relation.OTHER
        return Relation.RETRY if same("clear_number") or same("retries") else Relation.AGAIN


@dataclass
class Ruling:
    """The policy that a try gives to the core: its answer to a finished batch.

    :param mine: the try that asks; None outside Airflow, where nothing is a retry.
    :param rerun: a rerun is asked for in so many words.
    :param on_finished: what to do with a batch that another DAG run, or the shell, finished.
    :param on_clear: what to do with a batch that this task finished before a person cleared it.
    :raises UsageError: a word that is not one of theirs.
    :ivar finished: the run that finished the batch, once asked about one.
    :ivar relation: what this try is to it.
    :ivar answer: what was answered.
    """

    mine: Attempt | None
    rerun: bool = False
    on_finished: str = FAIL
    on_clear: str = FAIL
    finished: Finished | None = field(default=None, init=False)
    relation: Relation = field(default=Relation.OTHER, init=False)
    answer: Decision | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        check_word("on_finished", self.on_finished, ON_FINISHED)
        check_word("on_clear", self.on_clear, ON_CLEAR)

    def __call__(self, finished: Finished) -> Decision | None:
        """The answer; None leaves it to the core's own rule, which never refuses what replaces itself."""
        self.finished = finished
        self.relation = Relation.OTHER if self.mine is None else self.mine.relation(finished.attempt)
        self.answer = self._answer()
        return self.answer

    def _answer(self) -> Decision | None:
        if self.relation is Relation.RETRY:
            return Decision.SKIP
        if self.rerun:
            return Decision.REPLACE
        word = self.on_clear if self.relation is Relation.AGAIN else self.on_finished
        return {FAIL: None, SKIP: Decision.SKIP, RERUN: Decision.REPLACE}[word]

    @property
    def already(self) -> str:
        """One clause: who finished the batch, and when."""
        done = self.finished
        if done is None:
            return "finished already"
        run = f"run {who(done.run)}, finished {done.at}"
        by = done.attempt or {}
        if self.relation is Relation.RETRY:
            return f"try {by.get('try_number')} of this task committed it already ({run})"
        named = " ".join(f"{k}={by[k]}" for k in ("dag_id", "run_id", "task_id", "try_number") if k in by)
        return f"finished already by {named or 'a run outside Airflow'} ({run})"

    @property
    def hint(self) -> str:
        """What a person may set where the batch was refused as finished."""
        ask = 'trigger with conf {"ubunye": {"rerun": true}}'
        if self.relation is Relation.AGAIN:
            return f"to replace the batch when the task is cleared set on_clear='rerun', or {ask}"
        return f"to replace the batch set on_finished='rerun' ('skip' to leave it), or {ask}"


def check_word(name: str, value: object, words: tuple[str, ...]) -> str:
    """Check that a parameter is one of its words and return it. :raises UsageError: it is not."""
    if value not in words:
        raise UsageError(f"{name} is {value!r}; it is one of {', '.join(words)}")
    assert isinstance(value, str)
    return value
