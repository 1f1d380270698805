"""The run's own record, kept beside the way of the data: it never stops a run."""

from __future__ import annotations

import contextlib
import importlib.metadata
import logging
from dataclasses import replace
from typing import TYPE_CHECKING

from airflow_provider_ubunye.core.errors import StateUnreadable
from airflow_provider_ubunye.core.records import RUNNING, RunRecord, now_text
from airflow_provider_ubunye.core.request import Request, Setting

if TYPE_CHECKING:
    from airflow_provider_ubunye.core.outcome import Outcome

logger = logging.getLogger("airflow_provider_ubunye")

DISTRIBUTION = "airflow-provider-ubunye"


class Receipt:
    """Writes one run's record, where records are kept.

    Does not promise that the record is there: a record that can't be written is said and the run goes on.
    """

    def __init__(self, setting: Setting, request: Request) -> None:
        self._records = setting.records if setting.recording else None
        self._begun = False
        self._record = RunRecord(
            run_id=request.run,
            task_path=request.batch.task,
            status=RUNNING,
            started_at=now_text(),
            profile=request.batch.variables["mode"],
            variables=dict(request.batch.variables),
            batch_key=request.batch.key,
            attempt=request.attempt,
            outputs=tuple(
                {"name": name, "direction": "output", "mode": mode, "location": path}
                for name, (mode, path, _) in request.outputs.items()
            ),
            **request.about,
        )

    def begin(self) -> None:
        """Write the record that says running. A run that was refused never gets here and leaves none."""
        if self._records is not None:
            with contextlib.suppress(importlib.metadata.PackageNotFoundError):
                version = importlib.metadata.version(DISTRIBUTION)
                self._record = replace(self._record, engine_version=version)
            self._begun = self._save()

    def end(self, status: str, error: str | None, outcome: Outcome | None = None) -> None:
        """Close the record."""
        if self._records is None or not self._begun:
            return
        outputs = self._record.outputs
        if outcome is not None:
            named = {o["name"]: dict(o) for o in outputs}
            for name, count in outcome.files.items():
                known = named.setdefault(name, {"name": name, "direction": "output"})
                known.update(files=count, row_count=outcome.rows.get(name))
            outputs = tuple(named.values())
        self._record = self._record.ended(status, error, outputs=outputs)
        self._save()

    def fail(self, error: BaseException, stopped: bool) -> None:
        """Close the record of a run that did not commit.

        :param stopped: whether it was asked to stop.
        """
        said = f"{type(error).__name__}: {error}" if isinstance(error, KeyboardInterrupt) else str(error)
        self.end("interrupted" if stopped else "error", said.strip(": ") or type(error).__name__)

    def _save(self) -> bool:
        assert self._records is not None
        try:
            self._records.save(self._record)
        except (OSError, StateUnreadable) as error:
            logger.warning("The run record could not be written: %s", error)
            return False
        return True
