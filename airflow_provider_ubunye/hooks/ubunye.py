"""The hook: from an Airflow connection to the core."""

from __future__ import annotations

import contextlib
import os
import signal
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from airflow.sdk import BaseHook
from airflow.sdk.exceptions import AirflowNotFoundException

from airflow_provider_ubunye import api
from airflow_provider_ubunye.attempt import FAIL, Ruling
from airflow_provider_ubunye.core.batch import Batch
from airflow_provider_ubunye.core.errors import StateUnreadable, UbunyeError, UsageError
from airflow_provider_ubunye.core.request import Request
from airflow_provider_ubunye.core.start import Start
from airflow_provider_ubunye.core.where import STATE, STATE_FOLDER, setting_for, state_uri
from airflow_provider_ubunye.hooks.context import attempt_of, current_context, rerun_asked
from airflow_provider_ubunye.hooks.failures import as_airflow
from airflow_provider_ubunye.hooks.settings import Settings
from airflow_provider_ubunye.hooks.stopping import interruptible
from airflow_provider_ubunye.taskrun import TaskRun

DEFAULT_CONN = "ubunye_default"

_NOT_GIVEN: Any = object()


@dataclass(frozen=True)
class Where:
    """Where the use cases, the state and the run records are.

    :param lineage_dir: None for the default place of run records, or where none are kept.
    """

    usecase_dir: str | None
    state: str
    lineage_dir: str | None


class UbunyeHook(BaseHook):
    """Runs batches under a lease, as an Airflow connection of type ``ubunye`` says where.

    Without a connection named ``ubunye_default`` the state is where the shell puts it,
    ``<usecase_dir>/.ubunye``. Inside a task each run is kept with the task's try, so that an automatic retry of
    work that an earlier try had committed adds nothing and succeeds.

    :param ubunye_conn_id: the connection. Any other than the default must exist.
    """

    conn_name_attr = "ubunye_conn_id"
    default_conn_name = DEFAULT_CONN
    conn_type = "ubunye"
    hook_name = "Ubunye"

    def __init__(self, *, ubunye_conn_id: str = DEFAULT_CONN, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.ubunye_conn_id = ubunye_conn_id
        self._settings: Settings | None = None

    @property
    def settings(self) -> Settings:
        """What the connection says.

        :raises UsageError: it says something that is not understood.
        :raises AirflowNotFoundException: it does not exist and is not the default one.
        """
        if self._settings is None:
            try:
                connection = self.get_connection(self.ubunye_conn_id)
            except AirflowNotFoundException:
                if self.ubunye_conn_id != DEFAULT_CONN:
                    raise
                self._settings = Settings()
            else:
                self._settings = Settings.of(self.ubunye_conn_id, connection.extra_dejson)
        return self._settings

    def test_connection(self) -> tuple[bool, str]:
        """Open the state store and let it pass its self-test, from the machine that shows the form."""
        try:
            where = self.where(None)
            found = api.check_state(where.usecase_dir, where.state)
        except UbunyeError as error:
            return False, " ".join(error.lines())
        return True, f"The state store {found} keeps its promise: of two creates of one key one wins."

    @contextlib.contextmanager
    def run(
        self,
        task: str,
        *,
        dt: Any = _NOT_GIVEN,
        dtf: Any = None,
        mode: str | None = None,
        variables: Mapping[str, Any] | None = None,
        batch: Sequence[str] | None = None,
        rerun: bool = False,
        on_finished: str = FAIL,
        on_clear: str = FAIL,
        usecase_dir: str | None = None,
        lineage: bool = True,
        wait: float = 0.0,
    ) -> Iterator[api.BatchRun]:
        """Run a batch in a ``with`` block; see :func:`airflow_provider_ubunye.api.batch_run`.

        :param task: ``usecase/package/task``; no task folder is needed.
        :param dt: the batch's date. None is refused: it is what a DAG run without a date gives.
        :param on_finished: a batch that another DAG run finished: ``fail``, ``skip`` or ``rerun``. After
            ``skip``, and in a retry of work that an earlier try committed, ``done_by`` of the run is set and
            its writes do nothing.
        :param on_clear: a batch that this task finished before it was cleared: ``fail`` or ``rerun``.
        :param wait: seconds to wait, in the task's slot, while another run holds the batch.
        :raises AirflowFailException: no retry can help: the batch is finished, the call is wrong.
        :raises AirflowException: the batch is held, the lease was lost, or the data could not be landed.
        """
        ruling = Ruling(None)
        try:
            ruling = self.ruling(rerun=rerun, on_finished=on_finished, on_clear=on_clear)
            where = self.where(usecase_dir, lineage=lineage)
            stoppable = interruptible(signal.SIGINT, signal.SIGTERM)
            with (
                stoppable,
                api.batch_run(
                    task,
                    dt=given_dt(dt),
                    dtf=dtf,
                    mode=mode,
                    variables=variables,
                    batch=batch,
                    rerun=ruling.rerun,
                    state=where.state,
                    usecase_dir=where.usecase_dir,
                    lineage=lineage,
                    lineage_dir=where.lineage_dir,
                    wait=wait,
                    takeover_seconds=self.settings.takeover_seconds,
                    attempt=recorded(ruling),
                    policy=ruling,
                ) as run,
            ):
                if run.done_by is not None:
                    self.log.info("%s: %s; nothing is added.", task, ruling.already)
                yield run
        except UbunyeError as error:
            raise as_airflow(error, ruling) from error

    def run_task(self, task: str, **how: Any) -> api.TaskResult | None:
        """Run a task folder's task; see :func:`airflow_provider_ubunye.api.run_task`.

        :param how: ``dt`` and the others of :meth:`run`, but ``batch``; also ``resume`` and ``backend``.
        :returns: what the run did; None where a finished batch is left as it is.
        :raises AirflowException: as :meth:`run`; also for the task's own error.
        """
        ruling = Ruling(None)
        try:
            words = {name: how.pop(name) for name in ("rerun", "on_finished", "on_clear") if name in how}
            ruling = self.ruling(**words)
            result = self.task_run(task, ruling, dt=given_dt(how.pop("dt", _NOT_GIVEN)), **how).run()
        except UbunyeError as error:
            raise as_airflow(error, ruling) from error
        if result is None and ruling.finished is not None:
            self.log.info("%s: %s; nothing is added.", task, ruling.already)
        return result

    def task_run(
        self,
        task: str,
        ruling: Ruling,
        *,
        dt: Any = None,
        dtf: Any = None,
        mode: str | None = None,
        variables: Mapping[str, Any] | None = None,
        resume: bool = False,
        backend: str | None = None,
        usecase_dir: str | None = None,
        lineage: bool = True,
        wait: float = 0.0,
    ) -> TaskRun:
        """A task folder's task and one batch of it, ready to run. For operators; raises the core's errors."""
        where = self.where(usecase_dir, lineage=lineage)
        if where.usecase_dir is None:
            raise UsageError(
                f"nothing says where the task {task} is", hint=f"give usecase_dir, or set it in {self._named}"
            )
        return TaskRun(
            task,
            usecase_dir=where.usecase_dir,
            variables=api.all_variables(dt, dtf, mode, variables),
            rerun=ruling.rerun,
            resume=resume and not ruling.rerun,
            backend=backend or self.settings.backend or "pandas",
            state=where.state,
            lineage=lineage,
            lineage_dir=where.lineage_dir,
            wait=wait,
            takeover_seconds=self.settings.takeover_seconds,
            attempt=recorded(ruling),
            policy=ruling,
        )

    def ruling(self, *, rerun: bool = False, on_finished: str = FAIL, on_clear: str = FAIL) -> Ruling:
        """What to do with a finished batch, for the task that runs here; outside a task nothing is a retry.

        :raises UsageError: a word that is not known, or a DAG run that asks for a rerun with neither true nor
            false.
        """
        context = current_context()
        if context is None:
            return Ruling(None, rerun, on_finished, on_clear)
        return Ruling(attempt_of(context), rerun or rerun_asked(context), on_finished, on_clear)

    def where(self, usecase_dir: str | None, *, lineage: bool = True) -> Where:
        """Where everything is.

        :param usecase_dir: goes before the connection's.
        :raises UsageError: nothing names a state store, or the one named can't keep state.
        """
        usecase_dir = usecase_dir or self.settings.usecase_dir
        state = state_uri(usecase_dir, self.settings.state)
        self._refuse_checkout(state)
        lineage_dir = self.settings.lineage_dir
        if lineage_dir is None and (usecase_dir is None or self._cannot_keep(usecase_dir)):
            # Records beside the state, where they can't be where the shell looks for them.
            lineage_dir = os.path.join(os.path.abspath(state.removeprefix("file://")), "lineage")
        return Where(usecase_dir, state, lineage_dir if lineage else None)

    def rows_of(self, task: str, run: str, usecase_dir: str | None) -> dict[str, int | None]:
        """The rows that a finished run wrote, by output, as its record says; empty without a record."""
        where = self.where(usecase_dir)
        setting = setting_for(
            where.usecase_dir, where.state, lineage=True, lineage_dir=where.lineage_dir, looking=True
        )
        assert setting.records is not None
        try:
            record = setting.records.load(task, run)
        except (StateUnreadable, OSError) as error:
            self.log.warning("The record of run %s can't be read: %s", run[:8], error)
            record = None
        return {o["name"]: o.get("row_count") for o in record.outputs} if record is not None else {}

    def attempt_on(self, batch: Batch, usecase_dir: str | None) -> Mapping[str, Any] | None:
        """The recorded try of the run that holds the batch now, else of the one that finished it.

        :returns: None where nobody has it, a run outside Airflow does, or the state can't be read.
        """
        try:
            setting = setting_for(None, self.where(usecase_dir).state, looking=True)
            state, _ = Start(setting, Request(batch)).look()
        except UbunyeError:
            return None
        has = state.holder or state.finished
        return None if has is None else has.attempt

    @property
    def _named(self) -> str:
        return f"the connection {self.ubunye_conn_id!r}"

    def _refuse_checkout(self, state: str) -> None:
        folder = state.removeprefix("file://")
        why = None if "://" in folder else self._cannot_keep(os.path.dirname(folder) or ".", folder)
        if why:
            raise UsageError(
                f"the state of batches can't be kept in {folder}: {why}",
                hint=f"set state in {self._named}, or {STATE}, to a folder that all workers share",
            )

    @staticmethod
    def _cannot_keep(parent: str, folder: str | None = None) -> str | None:
        """Why a folder can't keep state, None when it can.

        :param parent: the folder that it is made in.
        """
        path = Path(folder if folder is not None else os.path.join(parent, STATE_FOLDER)).resolve()
        bundles = bundle_storage().resolve()
        if path.is_relative_to(bundles):
            return f"it lies in Airflow's DAG bundle storage {bundles}, a checkout that is replaced"
        there = next((p for p in (path, *path.parents) if p.exists()), path)
        return None if os.access(there, os.W_OK) else f"{there} is read-only"


def bundle_storage() -> Path:
    """Where Airflow keeps checkouts of versioned DAG bundles; local bundles are not there."""
    from airflow.configuration import conf

    given = conf.get("dag_processor", "dag_bundle_storage_path", fallback=None)
    return Path(given) if given else Path(tempfile.gettempdir(), "airflow", "dag_bundles")


def given_dt(dt: Any) -> Any:
    """A ``dt`` argument as the API takes it.

    :raises UsageError: it was given and is None: a batch that was to have a date must not run without one.
    """
    if dt is None:
        raise UsageError(
            "dt is None: this DAG run has no date",
            hint="give dt a value that names the batch, or leave it out where other variables name it",
        )
    return None if dt is _NOT_GIVEN else dt


def recorded(ruling: Ruling) -> dict[str, Any] | None:
    """The try as it is kept with the run."""
    return None if ruling.mine is None else ruling.mine.to_json()
