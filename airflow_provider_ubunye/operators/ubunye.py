"""The operator that runs a task folder's task."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow_provider_ubunye.core.errors import RunLeaseHeld
from airflow_provider_ubunye.operators.base import UbunyeBaseOperator, open_or_hold

if TYPE_CHECKING:
    from airflow.sdk import Context

    from airflow_provider_ubunye.attempt import Ruling
    from airflow_provider_ubunye.hooks.ubunye import UbunyeHook


class UbunyeTaskOperator(UbunyeBaseOperator):
    """Run a task folder's task under its batch's lease; safe to retry, to clear and to backfill.

    Returns the run's id, the rows and the files by output: ``{"run": …, "rows": {…}, "files": {…}}``. Where the
    batch was done already, they are those of the run that did it; ``rows`` then comes from its run record.

    :param backend: the engine; by default the connection's, else ``pandas``.
    :param resume: succeed on a finished batch, with a ``[SKIP]`` line, and leave it as it is. A rerun that is
        asked for goes before.

    Other parameters as :class:`~airflow_provider_ubunye.operators.base.UbunyeBaseOperator`.
    """

    def __init__(self, *, backend: str | None = None, resume: bool = False, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.backend = backend
        self.resume_finished = resume

    def carry_out(
        self,
        context: Context,  # noqa: ARG002 - a task folder has its own
        hook: UbunyeHook,
        ruling: Ruling,
        dt: Any,
    ) -> dict[str, Any] | None:
        run = hook.task_run(
            self.task,
            ruling,
            dt=dt,
            dtf=self.dtf,
            mode=self.mode,
            variables=self.variables,
            resume=self.resume_finished,
            backend=self.backend,
            usecase_dir=self.usecase_dir,
            lineage=self.lineage,
        )
        try:
            result = run.run()
        except RunLeaseHeld as error:
            raise open_or_hold(error, run.batch) from None
        if result is None:
            return None
        return {"run": result.run, "rows": dict(result.rows), "files": dict(result.files)}
