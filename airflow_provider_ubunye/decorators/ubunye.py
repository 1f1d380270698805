"""``@task.ubunye``: a plain Python function under a batch's lease."""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from airflow.sdk.bases.decorator import DecoratedOperator, TaskDecorator, task_decorator_factory
from airflow.sdk.exceptions import AirflowException

from airflow_provider_ubunye import api
from airflow_provider_ubunye.core.batch import Batch
from airflow_provider_ubunye.core.errors import RunLeaseHeld, UsageError
from airflow_provider_ubunye.hooks.ubunye import recorded
from airflow_provider_ubunye.operators.base import UbunyeBaseOperator, open_or_hold

if TYPE_CHECKING:
    from airflow.sdk import Context

    from airflow_provider_ubunye.attempt import Ruling
    from airflow_provider_ubunye.hooks.ubunye import UbunyeHook

RUN = "run"
"""The name by which a function takes its run."""


class _UbunyeDecoratedOperator(DecoratedOperator, UbunyeBaseOperator):
    """Calls the function inside a run of the batch.

    :param python_callable: takes the run as ``run``, by name or in ``**kwargs``.
    :param batch: which variables name the batch; all by default.
    """

    template_fields: Sequence[str] = (*UbunyeBaseOperator.template_fields, *DecoratedOperator.template_fields)
    custom_operator_name: str = "@task.ubunye"

    def __init__(
        self,
        *,
        python_callable: Callable[..., Any],
        op_args: Sequence[Any] = (),
        op_kwargs: Mapping[str, Any] | None = None,
        batch: Sequence[str] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(
            python_callable=python_callable,
            op_args=(),
            op_kwargs=_by_name(python_callable, op_args, op_kwargs or {}),
            **kwargs,
        )
        self.batch = batch

    def carry_out(self, context: Context, hook: UbunyeHook, ruling: Ruling, dt: Any) -> dict[str, Any] | None:
        variables = api.all_variables(dt, self.dtf, self.mode, self.variables)
        batch = Batch.of(self.task, variables, named_by=self.batch)
        where = hook.where(self.usecase_dir, lineage=self.lineage)
        with contextlib.ExitStack() as stack:
            try:
                run = stack.enter_context(
                    api.batch_run(
                        self.task,
                        variables=variables,
                        batch=self.batch,
                        rerun=ruling.rerun,
                        state=where.state,
                        usecase_dir=where.usecase_dir,
                        lineage=self.lineage,
                        lineage_dir=where.lineage_dir,
                        takeover_seconds=hook.settings.takeover_seconds,
                        attempt=recorded(ruling),
                        policy=ruling,
                    )
                )
            except RunLeaseHeld as error:
                raise open_or_hold(error, batch) from None
            if run.done_by is not None:
                return None
            self._call(context, run)
        return {"run": run.id, "rows": dict(run.outcome.rows), "files": dict(run.outcome.files)}

    def _call(self, context: Context, run: api.BatchRun) -> None:
        values = {**context, **self.op_kwargs, RUN: run}
        try:
            given = self.python_callable(**self.determine_kwargs(values))
        except RunLeaseHeld as error:
            # Of another batch, that the function itself asked for: it is not this one that is waited for.
            raise AirflowException(error.what) from error
        if given is not None:
            raise UsageError(
                f"{self.python_callable.__name__} returned a value, which a retry that finds the batch done could "
                "not give again",
                hint="write it with run.append(…); the task returns run, rows and files",
            )


def _by_name(function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments by name, so that ``run`` may stand anywhere in the function's signature.

    :raises UsageError: the function takes no ``run``. :raises TypeError: the arguments do not fit.
    """
    signature = inspect.signature(function)
    others = [p for name, p in signature.parameters.items() if name != RUN]
    if len(others) == len(signature.parameters) and not any(p.kind is p.VAR_KEYWORD for p in others):
        raise UsageError(f"{function.__name__} takes no parameter {RUN!r}, so it could write nothing")
    bound = signature.replace(parameters=others).bind_partial(
        *args, **{k: v for k, v in kwargs.items() if k != RUN}
    )
    extra = next((p.name for p in others if p.kind is p.VAR_KEYWORD), "")
    named = dict(bound.arguments)
    # None stands for the run until there is one: Airflow checks the signature when the DAG is parsed.
    return {**named.pop(extra, {}), **named, RUN: None}


def ubunye_task(
    python_callable: Callable[..., Any] | None = None, multiple_outputs: bool | None = None, **kwargs: Any
) -> TaskDecorator:
    """Make a function a task that runs under a batch's lease.

    The function takes the run as the keyword ``run`` and writes with ``run.append(frame, path)``; what it
    staged lands when it returns. It is not called where an earlier try of the task committed the batch.

    :param python_callable: the function.
    :param multiple_outputs: push ``run``, ``rows`` and ``files`` under keys of their own.
    :param kwargs: ``task`` and ``batch``, and those of
        :class:`~airflow_provider_ubunye.operators.base.UbunyeBaseOperator`.
    """
    return task_decorator_factory(
        python_callable=python_callable,
        multiple_outputs=multiple_outputs,
        decorated_operator_class=_UbunyeDecoratedOperator,
        **kwargs,
    )
