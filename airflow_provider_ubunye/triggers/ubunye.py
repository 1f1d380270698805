"""The trigger that waits, without a slot, until a batch is free."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

from airflow.triggers.base import BaseTrigger, TriggerEvent

from airflow_provider_ubunye.core.batch import Batch
from airflow_provider_ubunye.core.errors import UbunyeError
from airflow_provider_ubunye.core.request import Request
from airflow_provider_ubunye.core.waiting import Waiting
from airflow_provider_ubunye.core.where import setting_for

FREE = "free"
TIMEOUT = "timeout"

LEAST_WAIT = 15.0
"""Seconds that a trigger waits at least. The scheduler hears that the process of a deferred task has ended up to
a heartbeat (5 s) and a loop later; a task that runs again by then counts as one that died, and loses its try."""


class UbunyeLeaseTrigger(BaseTrigger):
    """Fires when nobody holds the batch any more, its holder is judged dead, or the time is up.

    Does not promise that the batch is still free when the task resumes: it asks again, and may wait again.

    :param task: ``usecase/package/task``.
    :param variables: the batch's variables.
    :param named_by: ``CONFIG.batch``, where the task has one.
    :param state: the state store; the triggerer must see the same one as the workers.
    :param end: seconds since the epoch after which it gives up; None for never.
    :param poll_interval: seconds between two looks.
    :param least_wait: seconds before which it does not fire, whatever it sees.
    """

    def __init__(
        self,
        *,
        task: str,
        variables: Mapping[str, str],
        named_by: Sequence[str] | None,
        state: str,
        end: float | None = None,
        poll_interval: float = 5.0,
        least_wait: float = LEAST_WAIT,
    ) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.batch_task = task
        self.variables = dict(variables)
        self.named_by = None if named_by is None else list(named_by)
        self.state = state
        self.end = end
        self.poll_interval = poll_interval
        self.least_wait = least_wait

    def serialize(self) -> tuple[str, dict[str, Any]]:
        return (
            f"{type(self).__module__}.{type(self).__qualname__}",
            {
                "task": self.batch_task,
                "variables": self.variables,
                "named_by": self.named_by,
                "state": self.state,
                "end": self.end,
                "poll_interval": self.poll_interval,
                "least_wait": self.least_wait,
            },
        )

    async def run(self) -> AsyncIterator[TriggerEvent]:
        # The core is synchronous and a look may wait for a disk: it must not hold up other triggers.
        began = time.monotonic()
        event = await self._wait()
        await asyncio.sleep(max(0.0, self.least_wait - (time.monotonic() - began)))
        yield event

    async def _wait(self) -> TriggerEvent:
        try:
            waiting = await asyncio.to_thread(self._open)
            while (held := await asyncio.to_thread(waiting.held)) is not None:
                left = self.poll_interval if self.end is None else self.end - time.time()
                if left <= 0:
                    return TriggerEvent({"status": TIMEOUT, "message": held.what})
                await asyncio.sleep(min(self.poll_interval, left))
        except UbunyeError as error:
            # Only a run can say what a state that can't be read comes to.
            self.log.warning("%s", error.what)
        return TriggerEvent({"status": FREE})

    def _open(self) -> Waiting:
        batch = Batch.of(self.batch_task, self.variables, named_by=self.named_by)
        return Waiting(setting_for(None, self.state, looking=True), Request(batch))


def waits_for(batch: Batch, state: str, **how: Any) -> UbunyeLeaseTrigger:
    """The trigger for a batch.

    :param how: ``end``, ``poll_interval`` and ``least_wait`` of the trigger.
    """
    return UbunyeLeaseTrigger(
        task=batch.task,
        # As it was typed, so that the spellings of an older Ubunye are looked up too.
        variables={**batch.variables, "mode": batch.typed_mode},
        named_by=batch.named_by,
        state=state,
        **how,
    )
