"""What a run is asked to do: the values that the way of a run is parametrised by."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from airflow_provider_ubunye.core.batch import belongs, new_run_id
from airflow_provider_ubunye.core.decide import RELEASE, RERUN, RESUME, RUN, Decision, Policy, appends, decide
from airflow_provider_ubunye.core.errors import UsageError
from airflow_provider_ubunye.core.lease import DEFAULT_TTL, beat_of
from airflow_provider_ubunye.core.setting import Setting

if TYPE_CHECKING:
    from airflow_provider_ubunye.core.batch import Batch
    from airflow_provider_ubunye.core.state import Finished


@dataclass(frozen=True)
class Request:
    """One run of one batch, as asked.

    :param run: this run's id, 32 hex digits that are bound to the batch; made when left out.
    :param purpose: :data:`RUN`, :data:`RERUN`, :data:`RESUME` or :data:`RELEASE`.
    :param appends: whether an output appends; None when the outputs are not known yet, so that what the
        finished run did decides.
    :param outputs: name to (mode, path, kind) of the outputs known beforehand.
    :param ttl: seconds without a heartbeat after which another place may take over.
    :param attempt: who asked, for schedulers: recorded, never interpreted here.
    :param about: what the run record says beside: ``model``, ``version``, ``config_hash``, ``backend``.
    :param force: release a run that may be alive.
    :param wait: seconds to wait for a batch that is held.
    :param policy: the caller's own answer to a finished batch, asked first (a scheduler knows its retries).
    :raises UsageError: a rerun or resume of a batch that nothing names.
    """

    batch: Batch
    run: str = ""
    purpose: str = RUN
    appends: bool | None = None
    outputs: Mapping[str, tuple[str, str, str]] = field(default_factory=dict)
    ttl: float = DEFAULT_TTL
    attempt: Mapping[str, Any] | None = None
    about: Mapping[str, Any] = field(default_factory=dict)
    force: bool = False
    wait: float = 0.0
    policy: Policy | None = None

    def __post_init__(self) -> None:
        if not self.run:
            object.__setattr__(self, "run", new_run_id(self.batch.key))
        if self.purpose in (RERUN, RESUME) and not self.batch.named:
            raise UsageError(
                f"a {self.purpose} needs a named batch, and {self.batch.label} has neither a dt nor a variable",
                hint="give it a dt, or a variable of its own",
            )

    def decide(self, finished: Finished | None) -> Decision:
        """What this request comes to, given the run that finished the batch."""
        return decide(finished, self.purpose, self.appends, self.policy)

    def owns(self, run: str) -> bool:
        """Whether a run id is of this batch, under whichever spelling."""
        return belongs(run, [self.batch.key, *(key for key, _ in self.batch.other_keys())])

    @property
    def beat(self) -> float:
        return beat_of(self.ttl)

    @property
    def appending(self) -> list[str]:
        """The names of the outputs known to append."""
        return [name for name, (mode, _, _) in self.outputs.items() if appends(mode)]


__all__ = ["RELEASE", "RERUN", "RESUME", "RUN", "Request", "Setting", "appends"]
