"""The plain-Python face: batches that are safe to run again, without Airflow.

::

    from airflow_provider_ubunye.api import batch_run

    with batch_run("shop/daily/load_orders", dt="2026-11-01", state="/srv/state") as run:
        run.append(frame, "/lake/orders", format="parquet", partition_by=["region"])

Nothing is visible before the block ends; leaving it by an exception takes everything back. ``run_task`` and
``run_pipeline`` do the same for task folders.
"""

from __future__ import annotations

import contextlib
import logging
import os
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from airflow_provider_ubunye import arguments
from airflow_provider_ubunye.arguments import all_variables
from airflow_provider_ubunye.core.batch import Batch, check_name
from airflow_provider_ubunye.core.decide import Policy
from airflow_provider_ubunye.core.errors import UsageError
from airflow_provider_ubunye.core.lease import DEFAULT_TTL
from airflow_provider_ubunye.core.messages import who
from airflow_provider_ubunye.core.outcome import Outcome
from airflow_provider_ubunye.core.request import RERUN, RUN, Request
from airflow_provider_ubunye.core.run import Run, open_run
from airflow_provider_ubunye.core.specs import APPEND, MODES, OVERWRITE, OVERWRITE_PARTITIONS, OutputSpec
from airflow_provider_ubunye.core.start import Start
from airflow_provider_ubunye.core.state import Finished
from airflow_provider_ubunye.core.store import StoreUnusable, open_store
from airflow_provider_ubunye.core.store.base import unusable
from airflow_provider_ubunye.core.where import need_lease, setting_for, state_uri, takeover_after
from airflow_provider_ubunye.taskrun import TaskResult, TaskRun
from airflow_provider_ubunye.tasks.config import check_format
from airflow_provider_ubunye.tasks.paths import resolve_path
from airflow_provider_ubunye.tasks.secrets import mask

__all__ = ["BatchRun", "TaskResult", "all_variables", "batch_run", "check_state", "run_pipeline", "run_task"]

logger = logging.getLogger("airflow_provider_ubunye")

StrPath = str | os.PathLike[str]


@dataclass
class BatchRun:
    """A run of one batch, given by :func:`batch_run`.

    :ivar done_by: the earlier run that did this work already, by the caller's policy: writes then do nothing.
        None for a run that works.
    :ivar id: the run's id, 32 hex digits; every file it lands carries it. Where the work is done already, the
        id of the run that did it.
    :ivar outcome: what it did; complete once the block has ended.
    """

    _run: Run | None
    _engine: Any
    done_by: Finished | None = None
    _ended: bool = field(default=False, init=False)
    _pid: int = field(default_factory=os.getpid, init=False)
    id: str = field(init=False)
    outcome: Outcome = field(init=False)

    def __post_init__(self) -> None:
        if self._run is not None:
            self.id, self.outcome = self._run.id, self._run.outcome
        else:
            assert self.done_by is not None
            self.id = self.done_by.run
            self.outcome = Outcome(self.id, files={o.name: len(o.claims) for o in self.done_by.outputs})

    def append(
        self,
        frame: Any,
        path: StrPath,
        *,
        format: str = "parquet",  # noqa: A002 - the config's own word
        partition_by: Sequence[str] = (),
        options: Mapping[str, Any] | None = None,
        name: str | None = None,
    ) -> int:
        """Add the frame's rows to the folder. Parameters as :meth:`write`.

        :raises BatchFinished: the batch is finished and its rows would be there twice.
        """
        return self.write(
            frame,
            path,
            mode=APPEND,
            format=format,
            partition_by=partition_by,
            options=options,
            name=name,
        )

    def overwrite(
        self,
        frame: Any,
        path: StrPath,
        *,
        format: str = "parquet",  # noqa: A002 - the config's own word
        partition_by: Sequence[str] = (),
        options: Mapping[str, Any] | None = None,
        name: str | None = None,
    ) -> int:
        """Replace everything in the folder. The old files stand until the new ones are committed.

        Parameters as :meth:`write`.
        """
        return self.write(
            frame,
            path,
            mode=OVERWRITE,
            format=format,
            partition_by=partition_by,
            options=options,
            name=name,
        )

    def overwrite_partitions(
        self,
        frame: Any,
        path: StrPath,
        *,
        format: str = "parquet",  # noqa: A002 - the config's own word
        partition_by: Sequence[str] = (),
        options: Mapping[str, Any] | None = None,
        name: str | None = None,
    ) -> int:
        """Replace the partitions that the frame has rows for. Parameters as :meth:`write`."""
        return self.write(
            frame,
            path,
            mode=OVERWRITE_PARTITIONS,
            format=format,
            partition_by=partition_by,
            options=options,
            name=name,
        )

    def write(
        self,
        frame: Any,
        path: StrPath,
        *,
        mode: str,
        format: str = "parquet",  # noqa: A002 - the config's own word
        partition_by: Sequence[str] = (),
        options: Mapping[str, Any] | None = None,
        name: str | None = None,
    ) -> int:
        """Stage a frame; it lands when the block ends.

        :param frame: a pandas DataFrame, a pyarrow Table, or anything with an Arrow stream (polars).
        :param path: the output folder.
        :param mode: ``append``, ``overwrite``, ``overwrite_partitions``, ``errorifexists`` or ``ignore``.
        :param format: ``parquet``, ``csv``, ``json``, ``orc``, ``avro`` or ``text``.
        :param partition_by: columns that become hive folders, outermost first.
        :param options: writer options in Spark's spelling.
        :param name: the output's name, the same in every run of the batch; the folder's name by default.
        :returns: the rows staged; 0 where mode ``ignore`` found data, or the work is done already.
        :raises UsageError: a wrong argument, a second output of one name, or a write after the block has ended
            or from another process than the run's.
        :raises LandingFailed: the frame can't be written in that format.
        """
        if os.getpid() != self._pid:
            raise UsageError(
                f"run {who(self.id)} belongs to process {self._pid}: this one, {os.getpid()}, can't write in it",
                hint="hand the frame to that process, or give this one a batch of its own",
            )
        if self._ended:
            raise UsageError(
                f"run {who(self.id)} has ended: nothing can be written in it any more",
                hint="write inside the with block",
            )
        folder = resolve_path(arguments.folder("the output's path", path), Path.cwd(), "the output's path")
        if mode not in MODES:
            raise UsageError(f"there is no mode {mode!r}; there is {', '.join(MODES)}")
        if mode == OVERWRITE_PARTITIONS and not partition_by:
            raise UsageError(
                "overwrite_partitions needs partition_by: the columns whose partitions are replaced"
            )
        columns = arguments.texts("partition_by", partition_by)
        chosen = check_format(arguments.text("the output's format", format), "the output's format")
        name = check_name(
            "output", os.path.basename(folder) if name is None else arguments.text("name", name)
        )
        spec = OutputSpec(name, chosen, folder, mode, columns, arguments.mapping("options", options))
        if self._run is None:
            logger.info("[SKIP] %s: run %s wrote it already; nothing is written.", name, who(self.id))
            return 0
        staging = self._run.output(name, mode, folder)
        if staging is None:
            return 0
        rows: int = self._engine.stage(frame, spec, staging)
        self.outcome.rows[name] = rows
        return rows


@contextlib.contextmanager
def batch_run(
    task: str,
    *,
    dt: object = None,
    dtf: object = None,
    mode: str | None = None,
    variables: Mapping[str, object] | None = None,
    batch: Sequence[str] | None = None,
    rerun: bool = False,
    state: StrPath | None = None,
    usecase_dir: StrPath | None = None,
    lineage: bool = False,
    lineage_dir: StrPath | None = None,
    wait: float | str = 0.0,
    takeover_seconds: float | str | None = None,
    attempt: Mapping[str, Any] | None = None,
    policy: Policy | None = None,
) -> Iterator[BatchRun]:
    """Run a batch in a ``with`` block: lease, refusal, take-back, commit. No task folder is needed.

    :param task: ``usecase/package/task``; with the variables it names the batch.
    :param dt: the batch's date; text, or a date (written YYYY-MM-DD).
    :param mode: ``DEV`` by default; part of the batch.
    :param variables: further variables; each is part of the batch.
    :param batch: which variables name the batch; all by default.
    :param rerun: replace a finished batch.
    :param state: where the state of batches is kept; else ``UBUNYE_STATE``, else ``<usecase_dir>/.ubunye``.
    :param usecase_dir: outputs beneath it are recorded relative to it.
    :param lineage: keep a run record.
    :param wait: how long to wait while another run holds the batch: seconds, or a time span as text (``"10m"``).
    :param takeover_seconds: time without a heartbeat after which a run elsewhere may be taken over, as ``wait``.
    :param attempt: who asked, recorded with the run (for schedulers).
    :param policy: the caller's own answer to a finished batch (for schedulers). Where it says skip, the block
        is given a run whose ``done_by`` is set and whose writes do nothing.
    :raises RunLeaseHeld: another run holds the batch.
    :raises BatchFinished: the batch is finished: at once where the finished run appended, else at the
        first append.
    :raises UbunyeError: see :mod:`airflow_provider_ubunye.core.errors`.
    """
    from airflow_provider_ubunye.engines import engine

    named_by = None if batch is None else arguments.texts("batch", batch)
    asked = Batch.of(
        arguments.text("the task", task), all_variables(dt, dtf, mode, variables), named_by=named_by
    )
    waiting = arguments.seconds("wait", wait)
    ttl = takeover_after(arguments.seconds_or_none("takeover_seconds", takeover_seconds), DEFAULT_TTL)
    attempt = arguments.recordable("attempt", attempt)
    if rerun:
        need_lease("rerun=True")
    setting = setting_for(
        arguments.folder_or_none("usecase_dir", usecase_dir),
        arguments.folder_or_none("state", state),
        lineage=lineage,
        lineage_dir=arguments.folder_or_none("lineage_dir", lineage_dir),
        mask=mask,
    )
    request = Request(
        asked,
        purpose=RERUN if rerun else RUN,
        ttl=ttl,
        attempt=attempt,
        wait=waiting,
        about={"backend": "pandas"},
        policy=policy,
    )
    run = open_run(setting, request)
    if run is None:
        start = Start(setting, request)
        start.look()
        assert start.finished is not None  # what the policy was asked about
        with _open(BatchRun(None, engine("pandas"), start.finished)) as work:
            yield work
        return
    with run, _open(BatchRun(run, engine("pandas"))) as work:
        yield work


@contextlib.contextmanager
def _open(work: BatchRun) -> Iterator[BatchRun]:
    try:
        yield work
    finally:
        work._ended = True  # noqa: SLF001 - what batch_run alone may say


def run_task(
    task: str,
    *,
    usecase_dir: StrPath,
    dt: object = None,
    dtf: object = None,
    mode: str | None = None,
    variables: Mapping[str, object] | None = None,
    rerun: bool = False,
    resume: bool = False,
    backend: str = "pandas",
    state: StrPath | None = None,
    lineage: bool = False,
    lineage_dir: StrPath | None = None,
    wait: float | str = 0.0,
    takeover_seconds: float | str | None = None,
    attempt: Mapping[str, Any] | None = None,
    policy: Policy | None = None,
) -> TaskResult | None:
    """Run a task folder's task under its batch's lease.

    :param task: ``usecase/package/task``, a folder below ``usecase_dir``.
    :param rerun: replace a finished batch.
    :param resume: leave a finished batch as it is.
    :param backend: the engine: ``pandas``.
    :returns: what the run did; None where ``resume`` or ``policy`` leaves a finished batch as it is.
    :raises UsageError: ``rerun`` together with ``resume``, or a wrong name, variable or config.
    :raises UbunyeError: as :func:`batch_run`; :class:`TransformFailed` for the task's own error.

    Other parameters as :func:`batch_run`.
    """
    asked = TaskRun(
        arguments.text("the task", task),
        usecase_dir=arguments.folder("usecase_dir", usecase_dir),
        variables=all_variables(dt, dtf, mode, variables),
        rerun=rerun,
        resume=resume,
        backend=backend,
        state=arguments.folder_or_none("state", state),
        lineage=lineage,
        lineage_dir=arguments.folder_or_none("lineage_dir", lineage_dir),
        wait=arguments.seconds("wait", wait),
        takeover_seconds=arguments.seconds_or_none("takeover_seconds", takeover_seconds),
        attempt=arguments.recordable("attempt", attempt),
        policy=policy,
    )
    return asked.run()


def run_pipeline(
    tasks: Sequence[str], *, report: Callable[[str, TaskResult | None], None] | None = None, **how: Any
) -> dict[str, TaskResult]:
    """Run tasks one after another; the first failure ends it.

    :param tasks: ``usecase/package/task`` each, run in this order.
    :param report: called after each task with its name and result, None for one that was skipped.
    :param how: as :func:`run_task`; ``resume=True`` skips the tasks that finished the batch.
    :returns: task to result; a task skipped by ``resume`` is not in it.
    :raises UbunyeError: what the first failing task raised; the tasks before it are done and stay done.
    """
    results: dict[str, TaskResult] = {}
    for task in arguments.texts("tasks", tasks):
        result = run_task(task, **how)
        if report is not None:
            report(task, result)
        if result is not None:
            results[task] = result
            if result.stopped:
                raise KeyboardInterrupt
    return results


def check_state(usecase_dir: StrPath | None = None, state: StrPath | None = None) -> str:
    """Open the state store and let two creates of one key compete in it, whatever earlier tests said.

    :returns: where the store is.
    :raises UsageError: nothing names a store. :raises StoreUnusable: it can't be used.
    """
    given = arguments.folder_or_none("usecase_dir", usecase_dir), arguments.folder_or_none("state", state)
    store = open_store(state_uri(*given))
    key = f"self-test/{uuid.uuid4().hex}.json"
    try:
        first, second = store.create(key, b"first"), store.create(key, b"second")
        store.delete([key])
    except OSError as error:
        raise unusable(store.where, error) from error
    if not first or second:
        raise StoreUnusable(f"the state store {store.where} lets two creates of one key win")
    return store.where
