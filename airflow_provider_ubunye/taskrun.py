"""Running a task folder's task: config → batch → lease → read → transform → stage → claim, land, done."""

from __future__ import annotations

import contextlib
import logging
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from airflow_provider_ubunye.core.batch import Batch, check_task
from airflow_provider_ubunye.core.decide import Policy
from airflow_provider_ubunye.core.errors import ConfigError, RunStopped, UbunyeError, UsageError
from airflow_provider_ubunye.core.lease import DEFAULT_TTL
from airflow_provider_ubunye.core.messages import who
from airflow_provider_ubunye.core.records import SUCCESS, RunRecord
from airflow_provider_ubunye.core.request import RERUN, RESUME, RUN, Request, Setting, appends
from airflow_provider_ubunye.core.run import Run, open_run
from airflow_provider_ubunye.core.specs import FILE_FORMATS, InputSpec, OutputSpec
from airflow_provider_ubunye.core.start import Start
from airflow_provider_ubunye.core.where import need_lease, other_state, setting_for, shell_of, takeover_after
from airflow_provider_ubunye.tasks.config import TaskConfig, load_config
from airflow_provider_ubunye.tasks.folder import TaskFolder
from airflow_provider_ubunye.tasks.secrets import mask, mask_error

logger = logging.getLogger("airflow_provider_ubunye")


@dataclass(frozen=True)
class TaskResult:
    """What a task's run did.

    :param run: its id.
    :param rows: output name to rows written; None where the writer does not say.
    :param files: output name to files landed.
    :param skipped: outputs left alone by mode ``ignore``.
    :param replaced: files of earlier runs removed.
    :param over: the dead run that this one took over from, if any.
    :param stopped: it was asked to stop after it had committed.
    """

    task: str
    run: str
    rows: Mapping[str, int]
    files: Mapping[str, int]
    skipped: tuple[str, ...] = ()
    replaced: int = 0
    over: str | None = None
    stopped: bool = False


@dataclass(frozen=True)
class TaskRun:
    """One task and one batch of it, as asked. Parameters as :func:`airflow_provider_ubunye.api.run_task`.

    Making one checks names and opens nothing; config, batch and setting are read when first asked for.

    :param looking: only :meth:`start` and look, never run: the state store is not even made.
    """

    task: str
    usecase_dir: str
    variables: Mapping[str, object] = field(default_factory=dict)
    rerun: bool = False
    resume: bool = False
    backend: str = "pandas"
    state: str | None = None
    lineage: bool = False
    lineage_dir: str | None = None
    wait: float = 0.0
    takeover_seconds: float | None = None
    attempt: Mapping[str, Any] | None = None
    policy: Policy | None = None
    looking: bool = False

    def __post_init__(self) -> None:
        check_task(self.task)
        if self.rerun and self.resume:
            raise UsageError("--rerun and --resume together make no sense: replace the batch, or keep it?")

    @cached_property
    def folder(self) -> TaskFolder:
        return TaskFolder(Path(self.usecase_dir), *self.task.split("/"))

    @cached_property
    def config(self) -> TaskConfig:
        """The task's config, rendered for this batch. :raises ConfigError: it is wrong."""
        config = load_config(self.folder, self.variables)
        self._check_options(config)
        return config

    def _check_options(self, config: TaskConfig) -> None:
        """Have the engine check all options now, not when the inputs before have been read."""
        specs: list[InputSpec | OutputSpec] = [*config.inputs, *config.outputs]
        specs = [spec for spec in specs if spec.options]
        if not specs:
            return
        from airflow_provider_ubunye.engines import engine
        from airflow_provider_ubunye.tasks.secrets import is_secret

        chosen = engine(self.backend)
        for spec in specs:
            section = "outputs" if isinstance(spec, OutputSpec) else "inputs"
            later = [name for name, value in spec.options.items() if is_secret(value)]
            try:
                chosen.check(spec, f"CONFIG.{section}.{spec.name}.options", later=later)
            except ConfigError as error:
                raise ConfigError(error.what, where=str(self.folder.config_path), hint=error.hint) from None

    @cached_property
    def batch(self) -> Batch:
        return Batch.of(self.task, self.variables, named_by=self.config.batch)

    @cached_property
    def setting(self) -> Setting:
        """:raises StoreUnusable: the state store can't be used."""
        setting = setting_for(
            self.folder.require().usecase_dir,
            self.state,
            lineage=self.lineage,
            lineage_dir=self.lineage_dir,
            looking=self.looking,
            mask=mask,
        )
        # As it was given, not as it was resolved: hints show what can be typed where the call was made.
        return replace(setting, shell=shell_of(self.usecase_dir, self.state))

    def other_state(self) -> str | None:
        """A warning where the use case folder's own state knows the batch too, and another one is used."""
        return other_state(self.usecase_dir, self.setting, self.batch)

    @cached_property
    def request(self) -> Request:
        """The request that the core gets.

        :raises UsageError: ``--rerun`` or ``--resume`` of no batch, or while the lease is off.
        """
        if not self.batch.named and (self.rerun or self.resume):
            raise UsageError(
                f"{self.task} has no batch here: {'--rerun' if self.rerun else '--resume'} needs a -dt or a --var",
                hint="give -dt or --var name=value",
            )
        if self.rerun or self.resume:
            need_lease("--rerun" if self.rerun else "--resume")
        outputs = {o.name: (o.mode, o.path, output_kind(o)) for o in self.config.outputs}
        return Request(
            self.batch,
            purpose=RERUN if self.rerun else RESUME if self.resume else RUN,
            appends=any(appends(o.mode) for o in self.config.outputs),
            outputs=outputs,
            ttl=takeover_after(self.takeover_seconds, DEFAULT_TTL),
            attempt=self.attempt,
            about={
                "config_hash": self.config.digest,
                "backend": self.backend,
                "version": self.config.version,
            },
            wait=self.wait,
            policy=self.policy,
        )

    def start(self) -> Start:
        """The start of the run, to look without running."""
        return Start(self.setting, self.request)

    def run(self) -> TaskResult | None:
        """Run it. Raises as ``run_task``; what an error says is masked.

        :returns: None where ``resume`` or the caller's policy leaves a finished batch as it is.
        """
        try:
            return self._run()
        except UbunyeError as error:
            mask_error(error)
            raise

    def _run(self) -> TaskResult | None:
        from airflow_provider_ubunye.engines import engine
        from airflow_provider_ubunye.tasks.load import load_transform

        chosen = engine(self.backend)
        _ = self.request  # A config that is wrong is said before a state folder is made.
        if other := self.other_state():
            logger.warning("%s: %s", self.batch.label, other)
        record = self.finished_by_record()
        if record is not None:
            self._say_skipped(record.run_id, record.config_hash)
            return None
        run = open_run(self.setting, self.request)
        if run is None:
            if self.resume:
                start = self.start()
                start.look()
                done = start.finished
                self._say_skipped(done.run if done else "?", done.config if done else None)
            return None
        with run:
            with _in_one_process(self.batch.label):
                transform = load_transform(self.folder)
            self._write(run, chosen, transform)
        outcome = run.outcome
        return TaskResult(
            task=self.task,
            run=run.id,
            rows=outcome.rows,
            files=outcome.files,
            skipped=tuple(outcome.skipped),
            replaced=outcome.replaced,
            over=outcome.over,
            stopped=outcome.stopped,
        )

    def _write(self, run: Run, engine: Any, transform: Callable[..., dict[str, Any]]) -> None:
        from airflow_provider_ubunye.tasks.load import check_result
        from airflow_provider_ubunye.tasks.secrets import resolve, resolve_spec
        from airflow_provider_ubunye.tasks.task import TaskContext

        for output in self.config.outputs:
            if output_kind(output) == "named":
                logger.warning(
                    "%s can't be taken back: the format %s claims no files. A run that fails may leave rows "
                    "there, and a rerun adds them again.",
                    output.name,
                    output.format,
                )
        sources = {spec.name: engine.read(resolve_spec(spec)) for spec in self.config.inputs}
        context = TaskContext(
            task=self.task,
            dt=self.batch.variables.get("dt"),
            dtf=self.batch.variables.get("dtf"),
            mode=self.batch.variables["mode"],
            variables=self.batch.variables,
            run=run.id,
            params=resolve(self.config.params, "CONFIG.transform.params"),
            usecase_dir=self.folder.usecase_dir,
            task_dir=self.folder.path,
        )
        with _in_one_process(self.batch.label):
            frames = transform(sources, context)
        check_result(frames, [o.name for o in self.config.outputs])
        for output in self.config.outputs:
            spec, frame = resolve_spec(output), frames[output.name]
            if output_kind(output) == "named":
                run.output_named(output.name, output.mode, output.path, _writer(spec, frame, run))
                continue
            staging = run.output(output.name, output.mode, output.path)
            if staging is not None:
                run.outcome.rows[output.name] = engine.stage(frame, spec, staging)

    def finished_by_record(self) -> RunRecord | None:
        """The record by which ``resume`` skips a task that only overwrites: nothing else says it finished."""
        records = self.setting.records
        if not self.resume or self.request.appends or records is None or not self.setting.recording:
            return None
        for record in records.search(self.task):
            if record.batch_key != self.batch.key:
                continue
            return record if record.status == SUCCESS else None
        return None

    def _say_skipped(self, run: str, config: str | None) -> None:
        changed = config is not None and config != self.config.digest
        note = " Its config has changed since; --rerun runs it with the new one." if changed else ""
        logger.info(
            "[SKIP] %s already finished this batch (run %s; --resume); kept as it is.%s",
            self.batch.label,
            who(run),
            note,
        )


@contextlib.contextmanager
def _in_one_process(label: str) -> Iterator[None]:
    """End a process that the user's code forked, where it comes out of that code: the run is its parent's.

    Going on it would stage into its parent's folder and tell of a commit that it did not make.
    """
    pid = os.getpid()
    try:
        yield
    finally:
        if os.getpid() != pid:
            line = (
                f"[ERROR] Stopped: {label}: a process that the task's code forked came out of that code; the run "
                f"belongs to process {pid}. End a forked process with os._exit.\n"
            )
            with contextlib.suppress(OSError):
                # Not through sys.stderr, nor by SystemExit: what is buffered and registered is the parent's.
                os.write(2, line.encode(errors="backslashreplace"))
            os._exit(RunStopped.exit_code)


def output_kind(output: OutputSpec) -> str:
    """How an output lands: ``files`` are staged and taken back, ``named`` can only be named after a crash."""
    if output.format in FILE_FORMATS:
        return "files"
    from airflow_provider_ubunye.engines.formats import registered_format

    try:
        registered_format(output.format, "stage")
    except ConfigError:
        registered_format(output.format, "write")
        return "named"
    return "files"


def _writer(spec: OutputSpec, frame: Any, run: Run) -> Callable[[], None]:
    from airflow_provider_ubunye.engines.formats import registered_format

    def write() -> None:
        run.outcome.rows[spec.name] = registered_format(spec.format, "write").write(frame, spec)

    return write
