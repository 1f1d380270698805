"""Waiting for a batch that another run holds, one look at a time, for those who must not block."""

from __future__ import annotations

import time

from airflow_provider_ubunye.core import messages
from airflow_provider_ubunye.core.errors import RunLeaseHeld
from airflow_provider_ubunye.core.judge import Verdict
from airflow_provider_ubunye.core.lease import Watch
from airflow_provider_ubunye.core.request import Request, Setting
from airflow_provider_ubunye.core.start import Start


class Waiting:
    """Looks at who holds a batch, again and again, so that the judge knows for how long a heartbeat stood still.

    Takes nothing: whoever is told that the batch is free asks for the lease like anybody else, and may lose it.
    """

    def __init__(self, setting: Setting, request: Request) -> None:
        self._start = Start(setting, request)
        self._watch = Watch(self._start.log, setting.owner, time.monotonic, setting.is_alive)
        self._where = self._start.log.where
        self._batch = request.batch

    def held(self) -> RunLeaseHeld | None:
        """Look once, writing nothing.

        :returns: the refusal that a run would get now; None where nobody holds the batch, or a dead run does.
        :raises UbunyeError: the state can't be read: only a run can say what that comes to.
        """
        try:
            state, _ = self._start.look()
        except RunLeaseHeld as refusal:
            # Held under another spelling of the batch.
            return refusal
        older = self._start.older.held()
        if older is not None or state.holder is None:
            return older
        verdict, evidence = self._watch.look(state.holder)
        if verdict is Verdict.DEAD:
            return None
        return messages.held(self._batch, state.holder, verdict, evidence, self._where)
