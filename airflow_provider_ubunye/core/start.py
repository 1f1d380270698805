"""The start of a run: look, judge, take the lease, settle what others left, decide (contract, invariant 1)."""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Collection
from dataclasses import replace

from airflow_provider_ubunye.core import messages
from airflow_provider_ubunye.core.decide import Decision, stands
from airflow_provider_ubunye.core.errors import BatchFinished, StateUnreadable
from airflow_provider_ubunye.core.judge import Verdict
from airflow_provider_ubunye.core.lease import Lease, Watch
from airflow_provider_ubunye.core.log import Superseded
from airflow_provider_ubunye.core.older import Older
from airflow_provider_ubunye.core.owner import LIVE_RUNS
from airflow_provider_ubunye.core.places import is_run_id
from airflow_provider_ubunye.core.request import RELEASE, Request, Setting
from airflow_provider_ubunye.core.settle import refuse_what_is_left, settle
from airflow_provider_ubunye.core.specs import IGNORE
from airflow_provider_ubunye.core.state import (
    REPLACED,
    BatchState,
    Debt,
    Finished,
    Holder,
    Place,
    Written,
    to_json,
)
from airflow_provider_ubunye.core.store.base import unusable
from airflow_provider_ubunye.core.takeback import OLDER_RUN, Settled, TakeBack

logger = logging.getLogger("airflow_provider_ubunye")

_LOOK_EVERY = 0.05
_LONGEST_LOOK = 2.0
_ACQUIRES = 100


class Start:
    """The way from a request to a lease.

    :ivar finished: the run that finished the batch before, if any: ours, an older Ubunye's, or one under
        another spelling of the batch.
    """

    def __init__(self, setting: Setting, request: Request) -> None:
        self._setting = setting
        self._request = request
        self._batch = request.batch
        self.log = setting.log(request.batch.key, request.batch.task)
        self.older = Older(setting, request, self.log)
        self.finished: Finished | None = None
        self.imported: Finished | None = None
        self.settled = Settled()
        self._said = ""
        self._waited_for: set[str] = set()
        self.shut_out = False
        """Whether the run that was taken over may still have been alive."""

    def look(self) -> tuple[BatchState, Decision]:
        """The batch as it is, and what the request comes to once nobody holds it. Writes nothing.

        :raises StateUnreadable: the state can't be read: never taken for absent.
        :raises StoreUnusable: the store does not answer.
        """
        try:
            state = self.log.read()
            self.imported = self.older.finished(state)
            self.finished = self.imported or state.finished
            self.older.refuse_other_names(state)
        except OSError as error:
            raise unusable(self._setting.store.where, error) from error
        return state, self._request.decide(self.finished)

    def acquire(self, announced: tuple[Written, ...]) -> Lease | None:
        """Take the lease, or refuse.

        :returns: the lease; None where ``--resume`` finds the batch finished.
        :raises RunLeaseHeld: a live run holds it. :raises BatchFinished: the task would append it again.
        """
        end = time.monotonic() + self._request.wait
        watch = Watch(self.log, self._setting.owner, is_alive=self._setting.is_alive)
        lost = 0
        while lost < _ACQUIRES:
            state, decision = self.look()
            if state.holder is None and not (state.debts or state.unclosed or self.older.has_lease()):
                if decision in (Decision.REFUSE, Decision.SKIP):
                    self._tidy(state)
                if decision is Decision.REFUSE:
                    raise self.refusal()
                if decision is Decision.SKIP:
                    return None
            if self._older_holds(end):
                continue
            if state.holder is not None and not self._dead(state.holder, watch, end):
                continue
            if decision is Decision.REPLACE:
                self.replaced()
            # Before the entry is there, lest another thread of this process takes the run for broken off.
            LIVE_RUNS.add(self._request.run)
            try:
                return self._append(state, announced)
            except Superseded:
                lost += 1
            except OSError as error:
                raise unusable(self._setting.store.where, error) from error
        raise StateUnreadable(
            f"{self._batch.label}: the lease changed hands {_ACQUIRES} times while this run tried to take it",
            where=self.log.where,
        )

    def settle(self, lease: Lease) -> bool:
        """Settle what earlier runs left, and decide again now that nothing moves.

        :returns: False where ``--resume`` finds the batch finished; the lease is free again then.
        :raises NotTakenBack: something could not be removed; the lease is free again.
        :raises BatchFinished: the dead run had committed; what it left is finished now.
        """
        dead = lease.state.unclosed
        self.older.fence(lease)
        self.settled = settle(self._setting, self._request, lease)
        self.older.forget(lease)
        if dead and self._request.purpose != RELEASE:
            done = [run for run in dead if lease.state.outcome_of(run) == "success"]
            logger.info(
                "Took over from run %s, which %s; %s removed.",
                messages.who(dead[-1]),
                "had committed the batch" if done else "died before it committed",
                messages.count(self.settled.removed, "file"),
            )
        if self.settled.left:
            self._release(lease, "refused")
            refuse_what_is_left(self.settled, self._batch.label)
        self.finished = lease.state.finished
        decision = self._request.decide(self.finished)
        if decision is Decision.REFUSE:
            self._release(lease, "refused")
            raise self.refusal()
        if decision is Decision.SKIP:
            self._release(lease, "refused")
            return False
        return True

    def _tidy(self, state: BatchState) -> None:
        """Prune for a run that died between its last entry and its own pruning."""
        if state.number:
            with contextlib.suppress(OSError):
                self.log.prune(state)

    def replaced(
        self, standing: Collection[Place] | None = None, places: Collection[Place] | None = None
    ) -> list[Debt]:
        """What a rerun removes once it has committed: all that is there of the batch, but where this run itself
        replaces what it finds, or leaves it alone.

        :param standing: those places; by default those of the outputs known beforehand.
        :param places: where this run's outputs are; by default as far as known beforehand.
        :raises NotTakenBack: something of it may not be removed. Asked before anything is written, so that a
            rerun can't succeed and leave the earlier rows beside its own.
        """
        assert self.finished is not None
        if standing is None:
            known = [(mode, path) for mode, path, _ in self._request.outputs.values()]
            standing = {
                self._setting.places.place(path) for mode, path in known if stands(mode) or mode == IGNORE
            }
        outputs = [o for o in self.finished.outputs if o.claims and o.place not in standing]
        self.older.refuse_strangers(self.finished.run, outputs, places)
        debts = []
        for output in outputs:
            run = output.run or self.finished.run
            owed = replace(output, folders=(), made=0, run=None)
            debts.append(Debt(REPLACED, run if is_run_id(run) else OLDER_RUN, owed, by=self._request.run))
        TakeBack(
            self._setting.disk, self._setting.places, self._setting.staging_root, owns=self._request.owns
        ).refuse(debts)
        return debts

    def _append(self, state: BatchState, announced: tuple[Written, ...]) -> Lease:
        request = self._request
        body = {
            "owner": replace(self._setting.owner, run=request.run).to_json(),
            "ttl": request.ttl,
            "beat": request.beat,
            "purpose": request.purpose,
            "recorded": self._setting.recording and self._setting.records is not None,
            "attempt": request.attempt,
            "config": request.about.get("config_hash"),
            "over": state.holder.run if state.holder else None,
            "task": self._batch.task,
            "variables": dict(self._batch.variables),
            "named_by": None if self._batch.named_by is None else list(self._batch.named_by),
            "outputs": to_json(announced),
            "older": {"finished": to_json(self.imported), "debts": to_json(self.older.debts())},
        }
        return Lease(self.log, request.run, self.log.append(state, request.run, "acquired", body))

    def _older_holds(self, end: float) -> bool:
        """Whether an older Ubunye's run holds the batch; waits as long as the request allows."""
        held = self.older.held()
        if held is None:
            return False
        if time.monotonic() >= end:
            raise held
        self._say("Waiting until an older Ubunye's run ends.")
        time.sleep(_LONGEST_LOOK)
        return True

    def _dead(self, holder: Holder, watch: Watch, end: float) -> bool:
        """Whether the holder is dead; waits as long as the request allows, or the judge needs to tell."""
        verdict, evidence = watch.look(holder)
        if self._request.force or verdict is Verdict.DEAD:
            self.shut_out = verdict is not Verdict.DEAD
            return True
        now = time.monotonic()
        # A heartbeat that is too old is watched for as long as a caching client may be shown an old one.
        watching = verdict is Verdict.UNKNOWN and evidence.worth_watching(end - now)
        if now >= end and not watching:
            raise messages.held(self._batch, holder, verdict, evidence, self.log.where)
        run = messages.who(holder.run)
        if watching:
            self._say(
                f"Watching run {run} for {messages.seconds(evidence.needed)}: it shows no sign of life."
            )
        else:
            self._waited_for.add(holder.run)
            self._say(
                f"Waiting for run {run}, which is still running: {messages.seconds(end - now)} at most."
            )
        time.sleep(min(_LONGEST_LOOK, max(_LOOK_EVERY, holder.beat / 2)))
        return False

    def _say(self, line: str) -> None:
        """Say once what is waited for: the time left in it changes with every look."""
        what = line.partition(":")[0]
        if what != self._said:
            self._said = what
            logger.info("%s", line)

    def refusal(self, appending: list[str] | None = None) -> BatchFinished:
        """The refusal of the finished batch.

        :param appending: the outputs that append; by default those known beforehand.
        """
        assert self.finished is not None
        names = self._request.appending if appending is None else appending
        waited = self.finished.run in self._waited_for
        return messages.finished(self._batch, self.finished, names, self.log.where, waited=waited)

    def _release(self, lease: Lease, outcome: str) -> None:
        lease.append("released", {"outcome": outcome, "debts": to_json(self.settled.left)})
        self.log.prune(lease.state)
