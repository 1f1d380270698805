"""What every operator that runs a batch does: hold, refuse, wait, retry, and be killed."""

from __future__ import annotations

import contextlib
import datetime
import math
import signal
import time
from abc import abstractmethod
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from airflow.sdk import BaseOperator, BaseOperatorLink
from airflow.sdk.exceptions import (
    AirflowException,
    AirflowFailException,
    AirflowSkipException,
    TaskDeferralTimeout,
)

from airflow_provider_ubunye.attempt import FAIL, ON_CLEAR, ON_FINISHED, SKIP, Relation, Ruling, check_word
from airflow_provider_ubunye.core.batch import Batch
from airflow_provider_ubunye.core.decide import Decision
from airflow_provider_ubunye.core.errors import BatchFinished, RunLeaseHeld, UbunyeError
from airflow_provider_ubunye.hooks.context import AUTO, dt_of, no_date
from airflow_provider_ubunye.hooks.failures import as_airflow, one_line
from airflow_provider_ubunye.hooks.stopping import interruptible
from airflow_provider_ubunye.hooks.ubunye import DEFAULT_CONN, UbunyeHook, given_dt
from airflow_provider_ubunye.links.ubunye import UbunyeRunLink
from airflow_provider_ubunye.triggers.ubunye import TIMEOUT, waits_for

if TYPE_CHECKING:
    import jinja2
    from airflow.sdk import Context

DEFER = "defer"
ON_HELD = (DEFER, FAIL, SKIP)

_TRIGGERER_GRACE = 60.0
"""Seconds past held_timeout after which the scheduler gives up on a triggerer that does not answer."""


class Held(Exception):
    """The batch is held, so the work did not begin.

    :param batch: what to wait for.
    """

    def __init__(self, refusal: RunLeaseHeld, batch: Batch) -> None:
        super().__init__(refusal.what)
        self.refusal = refusal
        self.batch = batch


class UbunyeBaseOperator(BaseOperator):
    """Base of the operators that run a batch. Subclasses say in :meth:`carry_out` what the work is.

    :param task: ``usecase/package/task``; templated.
    :param dt: the batch's date, templated. By default the logical date for a daily or coarser schedule, the
        full UTC timestamp for any other, the partition key where there is one.
    :param dtf: the second date, templated.
    :param variables: further variables, templated; each is part of the batch.
    :param mode: ``DEV`` by default; part of the batch, templated.
    :param usecase_dir: the folder of all use cases, templated; by default the connection's.
    :param rerun: replace a finished batch. The DAG param ``ubunye_rerun`` and
        ``conf={"ubunye": {"rerun": true}}`` ask for the same.
    :param on_held: while another run holds the batch: ``defer`` (wait in the triggerer, without a slot),
        ``fail`` or ``skip``.
    :param held_timeout: how long to wait in all, a timedelta or seconds, and never less than some 15 seconds; by
        default ``[ubunye] held_timeout`` of Airflow's configuration, else for ever. ``execution_timeout`` does
        not count it.
    :param on_finished: another DAG run finished the batch: ``fail``, ``skip`` or ``rerun``. An automatic retry
        of work that an earlier try of this task committed succeeds, whatever is said here.
    :param on_clear: this task finished the batch, then was cleared: ``fail`` or ``rerun``.
    :param lineage: keep a run record.
    :param poll_interval: seconds between two looks while waiting.
    :param ubunye_conn_id: the connection; :class:`UbunyeHook` says what holds without one.
    """

    template_fields: Sequence[str] = ("task", "dt", "dtf", "variables", "mode", "usecase_dir")
    template_fields_renderers = {"variables": "json"}  # noqa: RUF012 - declared so by Airflow's base class
    ui_color = "#e7f0d8"
    operator_extra_links: Collection[BaseOperatorLink] = (UbunyeRunLink(),)

    def __init__(
        self,
        *,
        task: str,
        dt: Any = AUTO,
        dtf: Any = None,
        variables: Mapping[str, Any] | None = None,
        mode: str | None = None,
        usecase_dir: str | None = None,
        rerun: bool = False,
        on_held: str = DEFER,
        held_timeout: datetime.timedelta | float | None = None,
        on_finished: str = FAIL,
        on_clear: str = FAIL,
        lineage: bool = True,
        poll_interval: float = 5.0,
        ubunye_conn_id: str = DEFAULT_CONN,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.task = task
        self.dt = dt
        self.dtf = dtf
        self.variables = variables
        self.mode = mode
        self.usecase_dir = usecase_dir
        self.rerun = rerun
        self.on_held = check_word("on_held", on_held, ON_HELD)
        self.held_timeout = held_timeout
        self.on_finished = check_word("on_finished", on_finished, ON_FINISHED)
        self.on_clear = check_word("on_clear", on_clear, ON_CLEAR)
        self.lineage = lineage
        self.poll_interval = poll_interval
        self.ubunye_conn_id = ubunye_conn_id
        self.other_attempt: Mapping[str, Any] | None = None  # of the run that has the batch, for the link
        self._working = False
        self._killed = False

    @abstractmethod
    def carry_out(self, context: Context, hook: UbunyeHook, ruling: Ruling, dt: Any) -> dict[str, Any] | None:
        """Do the work.

        :returns: run, rows and files; None where a finished batch is left as it is.
        :raises Held: another run holds the batch, and nothing was begun.
        """

    def execute(self, context: Context) -> Any:
        return self.attempt(context, None)

    def resume(
        self,
        context: Context,
        event: Mapping[str, Any],
        held_since: float | None = None,
        held_by: Mapping[str, Any] | None = None,
    ) -> Any:
        """Go on after waiting. The batch may be held again, finished, or free."""
        # Both are missing in dag.test(), which runs the trigger itself and hands on its event alone (3.3.2).
        if event["status"] == TIMEOUT:
            self.other_attempt = held_by
            raise AirflowException(f"{event['message']}. held_timeout is over")
        return self.attempt(context, held_since)

    def resume_execution(self, next_method: str, next_kwargs: dict[str, Any] | None, context: Context) -> Any:
        try:
            return super().resume_execution(next_method, next_kwargs, context)
        except TaskDeferralTimeout:
            self.other_attempt = (next_kwargs or {}).get("held_by")
            raise AirflowException(
                "held_timeout is over and no triggerer answered: start one (airflow triggerer), or set "
                "on_held='fail'"
            ) from None

    def attempt(self, context: Context, held_since: float | None) -> dict[str, Any]:
        """One go: run the batch, find it done, or wait for it."""
        ruling = Ruling(None)
        try:
            with self._stoppable():
                hook = UbunyeHook(ubunye_conn_id=self.ubunye_conn_id)
                ruling = hook.ruling(rerun=self.rerun, on_finished=self.on_finished, on_clear=self.on_clear)
                dt = dt_of(context) if self.dt == AUTO else given_dt(self.dt)
                result = self.carry_out(context, hook, ruling, dt)
                done = self._found_done(hook, ruling) if result is None else result
        except Held as held:
            self._wait(held, hook, held_since)
        except UbunyeError as error:
            if isinstance(error, BatchFinished) and ruling.finished is not None:
                self.other_attempt = ruling.finished.attempt
            raise as_airflow(error, ruling) from error
        except KeyboardInterrupt:
            raise AirflowException(
                "the task was told to stop before its run began or after it ended"
            ) from None
        self._tell_assets(context, done)
        return done

    def on_kill(self) -> None:
        """Unwind the run, so that it takes back what it wrote. Raises into the work, once."""
        again, self._killed = self._killed, True
        # Called again, or after the work was unwound (a timeout), it must not break into the taking back.
        if self._working and not again:
            raise KeyboardInterrupt

    def render_template_fields(self, context: Context, jinja_env: jinja2.Environment | None = None) -> None:
        from jinja2 import UndefinedError

        try:
            super().render_template_fields(context, jinja_env)
        except UndefinedError as error:
            values: Any = context
            if values.get("logical_date") is None:
                raise AirflowFailException(f"{error}: {one_line(no_date())}") from None
            raise

    @contextlib.contextmanager
    def _stoppable(self) -> Iterator[None]:
        """While the work is done, let :meth:`on_kill` and a lost lease break into it."""
        if self._killed:
            raise KeyboardInterrupt
        self._working = True
        try:
            with interruptible(signal.SIGINT):
                yield
        finally:
            self._working = False

    def _found_done(self, hook: UbunyeHook, ruling: Ruling) -> dict[str, Any]:
        """What the run that finished the batch did, as this task's own result."""
        done = ruling.finished
        if done is None:
            # An overwrite that resume knows from its record alone.
            return {"run": None, "rows": {}, "files": {}}
        self.other_attempt = done.attempt
        if ruling.answer is Decision.SKIP and ruling.relation is not Relation.RETRY:
            raise AirflowSkipException(ruling.already)
        self.log.info("%s; nothing is added.", ruling.already)
        return {
            "run": done.run,
            "rows": hook.rows_of(self.task, done.run, self.usecase_dir),
            "files": {o.name: len(o.claims) for o in done.outputs},
        }

    def _wait(self, held: Held, hook: UbunyeHook, since: float | None) -> NoReturn:
        line = one_line(held.refusal)
        self.other_attempt = hook.attempt_on(held.batch, self.usecase_dir)
        if self.on_held == SKIP:
            raise AirflowSkipException(line)
        if self.on_held == FAIL:
            raise AirflowException(line)
        since = since if since is not None else time.time()
        span = default_held_timeout() if self.held_timeout is None else seconds(self.held_timeout)
        end = None if span is None else since + span
        left = None if end is None else end - time.time()
        if left is not None and left <= 0:
            raise AirflowException(f"{line}. held_timeout is over")
        state = hook.where(self.usecase_dir).state
        self.log.info(
            "%s. Waiting for it in the triggerer, without a slot; without a running triggerer this waits %s.",
            held.refusal.what,
            "for ever" if left is None else f"for {left:.0f} s",
        )
        self.defer(
            trigger=waits_for(held.batch, state, end=end, poll_interval=self.poll_interval),
            method_name="resume",
            kwargs={"held_since": since, "held_by": self.other_attempt},
            timeout=None if left is None else left + _TRIGGERER_GRACE,
        )

    def _tell_assets(self, context: Context, result: dict[str, Any]) -> None:
        from airflow.sdk import Asset

        for outlet in self.outlets:
            if isinstance(outlet, Asset):
                context["outlet_events"][outlet].extra.update(result)


def default_held_timeout() -> float | None:
    """``[ubunye] held_timeout`` in seconds; None for ever.

    :raises AirflowFailException: it is not a number of seconds.
    """
    from airflow.configuration import conf

    given = conf.get("ubunye", "held_timeout", fallback="")
    try:
        span = float(given) if given else None
    except ValueError:
        span = math.nan
    if span is not None and not 0 <= span < math.inf:
        raise AirflowFailException(f"[ubunye] held_timeout is {given!r}, not a number of seconds")
    return span


def seconds(span: datetime.timedelta | float) -> float:
    """A time span in seconds."""
    return span.total_seconds() if isinstance(span, datetime.timedelta) else float(span)


def open_or_hold(error: RunLeaseHeld, batch: Batch) -> Exception:
    """What a refused start comes to: waiting, unless the batch is finished."""
    return error if isinstance(error, BatchFinished) else Held(error, batch)
