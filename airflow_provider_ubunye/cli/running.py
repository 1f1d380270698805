"""Running the tasks of one call one after the other, and telling what became of each."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from airflow_provider_ubunye.cli.app import as_error, error_document, status_of
from airflow_provider_ubunye.cli.output import PREFIX, Out
from airflow_provider_ubunye.cli.signals import Stops
from airflow_provider_ubunye.core import messages
from airflow_provider_ubunye.core.errors import RunInterrupted, UbunyeError
from airflow_provider_ubunye.core.run import Run
from airflow_provider_ubunye.engines import engine
from airflow_provider_ubunye.taskrun import TaskResult, TaskRun

RAN, SKIPPED, NOT_RUN = "ok", "skipped", "not_run"

_SUMMARY = (
    (RAN, "ran"),
    (SKIPPED, "skipped"),
    ("refused", "refused"),
    ("invalid", "invalid"),
    ("failed", "failed"),
    ("stopped", "stopped"),
    ("needs_person", "to be looked at by a person"),
    (NOT_RUN, "not run"),
)
_BECAME = {
    "held": "refused: still running",
    "finished": "refused: already finished",
    "output_exists": "refused: its output holds data",
    "store": "refused: its state can't be used",
    "refused": "refused",
    "usage": "wrong usage",
    "config": "wrong configuration",
    "transform": "its code gave no result that fits",
    "landing": "its data could not be landed",
    "failed": "failed",
    "lease_lost": "stopped: it lost its lease",
    "interrupted": "stopped: it was interrupted",
    "stopped": "stopped",
    "unreadable": "a person must look: its state can't be read",
    "not_taken_back": "a person must look: files could not be removed",
    "may_repeat": "a person must look: rows that a rerun adds again",
    "needs_person": "a person must look",
}
_MARK = {RAN: "[OK]", SKIPPED: "[SKIP]", NOT_RUN: "[--]"}

_RUN = {"end": Run.__exit__.__code__, "back": Run.fail.__code__}
"""What of a run a signal leaves alone."""


@dataclass(frozen=True)
class Told:
    """What became of one task.

    :param status: ``ok``, ``skipped``, ``not_run``, or the status word of the error's exit code.
    """

    asked: TaskRun
    status: str
    result: TaskResult | None = None
    error: UbunyeError | None = None

    @property
    def exit_code(self) -> int:
        return self.error.exit_code if self.error is not None else 0

    def document(self) -> dict[str, object]:
        """The task's JSON document."""
        asked, result = self.asked, self.result
        begun = self.status not in (SKIPPED, NOT_RUN, "refused", "invalid")
        # A task whose config is wrong has no batch that could be named.
        batch = asked.batch if "batch" in vars(asked) else None
        told: dict[str, object] = {
            "status": self.status,
            "reason": {RAN: "done", SKIPPED: "finished", NOT_RUN: "not_run"}.get(self.status),
            "exit_code": self.exit_code,
            "task": asked.task,
            "variables": None if batch is None else dict(batch.variables),
            "key": None if batch is None else batch.key,
            "run": asked.request.run if begun and "request" in vars(asked) else None,
            "rows": {} if result is None else dict(result.rows),
            "files": {} if result is None else dict(result.files),
            "skipped_outputs": [] if result is None else list(result.skipped),
            "replaced": 0 if result is None else result.replaced,
            "over": None if result is None else result.over,
            "error": None,
        }
        if self.error is not None:
            told.update(error_document(self.error))
        return told

    def line(self) -> str:
        """The task's line in the summary."""
        said = ""
        if self.result is not None:
            said = f"  {what_it_did(self.result)}"
        elif self.error is not None:
            said = f"  {_became(self.error)}"
        return f"  {_MARK.get(self.status, '[ERROR]'):8}{self.asked.task}{said}"


def run_all(out: Out, asked: Sequence[TaskRun], stops: Stops) -> list[Told]:
    """Run them and say what becomes of each; the first failure ends it."""
    told = list(_each(out, asked, stops))
    if len(asked) > 1:
        _summary(out, told)
    return told


def _each(out: Out, asked: Sequence[TaskRun], stops: Stops) -> Iterator[Told]:
    wrong = _first_wrong(asked)
    if wrong is not None:
        out.error(wrong[1], prefix=prefix_of(*wrong))
        for task in asked:
            error = wrong[1] if task is wrong[0] else None
            yield Told(task, NOT_RUN if error is None else status_of(error.exit_code), error=error)
        return
    ended = False
    for number, task in enumerate(asked, 1):
        if ended:
            told = Told(task, NOT_RUN)
        elif stops.count:
            # It came while the task before was committed, or before the first: what is done stays done.
            error = RunInterrupted(f"interrupted{stops.by} before {task.batch.label} began; run it again")
            out.error(error)
            told = Told(task, status_of(error.exit_code), error=error)
        else:
            told = _one(out, task, f"[{number}/{len(asked)}] " if len(asked) > 1 else "", stops)
        ended = ended or told.error is not None
        yield told


def _first_wrong(asked: Sequence[TaskRun]) -> tuple[TaskRun, UbunyeError] | None:
    """The first task that can't be run as asked: found before any task has run, configs before state."""
    checks: tuple[Callable[[TaskRun], object], ...] = (
        lambda task: (task.request, engine(task.backend)),
        lambda task: task.setting,
    )
    for check in checks:
        for task in asked:
            try:
                check(task)
            except Exception as raised:  # noqa: BLE001 - whatever it is, it becomes one line
                return task, as_error(raised)
    return None


def _one(out: Out, task: TaskRun, count: str, stops: Stops) -> Told:
    named = "" if task.batch.named else ", no batch: without -dt or --var a second run adds its rows again"
    mode = task.batch.variables["mode"]
    out.line(f"{count}Starting {task.batch.label} (mode {mode}, {task.backend}{named})")
    result: TaskResult | None
    try:
        with _progress(out, f"{count}{task.task}"), stops.armed(**_RUN):
            result = task.run()
    except BaseException as raised:  # noqa: BLE001 - whatever it is, it becomes one line and an exit code
        result = _committed(task) if isinstance(raised, KeyboardInterrupt) else None
        if result is None:
            error = _fault(task, raised, stops)
            out.error(error, prefix=prefix_of(task, error))
            return Told(task, status_of(error.exit_code), error=error)
    if result is None:
        return Told(task, SKIPPED)
    out.line(f"[OK] {task.batch.label}: {what_it_did(result)}")
    return Told(task, RAN, result=result)


def prefix_of(task: TaskRun, error: UbunyeError) -> str:
    """What stands before an error's sentence: the exit code's word, and the batch where it does not name it."""
    word = PREFIX.get(error.exit_code, "")
    label = task.batch.label if "batch" in vars(task) else task.task
    return word if label in error.what and error.exit_code != 3 else f"{word}{label}: "


def _became(error: UbunyeError) -> str:
    """Why a task did not end well, in the summary's few words."""
    if error.reason == "transform" and error.__cause__ is not None:
        return f"its code raised {type(error.__cause__).__name__}"
    return _BECAME.get(error.reason, error.reason)


def _fault(task: TaskRun, raised: BaseException, stops: Stops) -> UbunyeError:
    error = as_error(raised)
    said = None
    if isinstance(raised, KeyboardInterrupt):
        said = f"{task.batch.label} was interrupted{stops.by} before it began; run it again"
    elif stops.count and error.exit_code == 3:
        # A library may turn the interrupt into an error of its own; the run was stopped all the same.
        stands = ", and the earlier batch stands" if task.rerun else ""
        said = (
            f"{task.batch.label} was interrupted{stops.by}; what it wrote is taken back{stands}; run it again"
        )
    if said is not None:
        error = RunInterrupted(said)
        error.__cause__ = raised
    return error


def _committed(task: TaskRun) -> TaskResult | None:
    """What the run did, where a signal that came after its commit kept it from telling."""
    try:
        state, _ = task.start().look()
    except UbunyeError:
        return None
    done = state.finished
    if done is None or done.run != task.request.run:
        return None
    files = {output.name: len(output.claims) for output in done.outputs}
    return TaskResult(task.task, done.run, {}, files, stopped=True)


def what_it_did(result: TaskResult) -> str:
    """A run's work in one clause: rows and files of each output, and its id."""
    did = [
        f"{_count(result.rows.get(name), 'row')} to {name} in {messages.count(files, 'file')}"
        for name, files in result.files.items()
    ]
    did += [f"{_count(n, 'row')} to {name}" for name, n in result.rows.items() if name not in result.files]
    did += [f"{name} left as it is" for name in result.skipped]
    return f"{', '.join(did) or 'nothing to write'} (run {result.run[:8]})"


def _count(number: int | None, noun: str) -> str:
    if number is None:
        return f"its {noun}s"
    return messages.count(number, noun)


def _summary(out: Out, told: Sequence[Told]) -> None:
    counts = Counter(t.status for t in told)
    out.line()
    out.line("Summary: " + ", ".join(f"{counts[s]} {said}" for s, said in _SUMMARY if counts[s]))
    for task in told:
        out.line(task.line())


@contextlib.contextmanager
def _progress(out: Out, said: str) -> Iterator[None]:
    """A line that shows the time going by, where a person looks on and there are several tasks."""
    if not out.live or not said.startswith("["):
        yield
        return
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn()
    with Progress(*columns, console=Console(), transient=True) as progress:
        progress.add_task(said, total=None)
        yield
