"""One run of one batch: the way of the data, from the lease to the record.

::

    open_run     look → judge → acquire → settle what others left → decide            (start.py)
    with run:    output() for each output: announce → stage                            (landing.py)
    on leaving:  claim → land what can be taken back → commit what can't → done → settle → record
    on failure:  take back → released → record; what can't be taken back is named

The order claim, land, done stands in :meth:`Run.commit` and nowhere else (contract, invariants 2, 6 to 8).
"""

from __future__ import annotations

import contextlib
import logging
import os
from collections.abc import Callable
from dataclasses import replace
from types import TracebackType
from typing import Self

from airflow_provider_ubunye.core import messages, replacing
from airflow_provider_ubunye.core.decide import Decision, appends, stands
from airflow_provider_ubunye.core.errors import (
    LandingFailed,
    LeaseLost,
    MayRepeat,
    RunInterrupted,
    UbunyeError,
    UsageError,
)
from airflow_provider_ubunye.core.interrupt import Interrupt
from airflow_provider_ubunye.core.landing import FilesLanding, Staging
from airflow_provider_ubunye.core.lease import Lease
from airflow_provider_ubunye.core.leaving import leave
from airflow_provider_ubunye.core.named import NamedLanding
from airflow_provider_ubunye.core.outcome import Outcome
from airflow_provider_ubunye.core.owner import LIVE_RUNS
from airflow_provider_ubunye.core.places import refuse_shared_ground
from airflow_provider_ubunye.core.receipt import Receipt
from airflow_provider_ubunye.core.request import Request, Setting
from airflow_provider_ubunye.core.settle import settle, take_back
from airflow_provider_ubunye.core.start import Start
from airflow_provider_ubunye.core.state import UNFINISHED, Debt, Place, Written, to_json
from airflow_provider_ubunye.core.takeback import TakeBack

logger = logging.getLogger("airflow_provider_ubunye")

Landing = FilesLanding | NamedLanding


def open_run(setting: Setting, request: Request) -> Run | None:
    """Start a run of a batch.

    :returns: the run, to be used as a context manager; None where ``--resume`` finds the batch finished.
    :raises RunLeaseHeld: another run holds the batch. :raises BatchFinished: it would append again.
    :raises UbunyeError: the state can't be read or used, or a dead run's files can't be removed.
    """
    start = Start(setting, request)
    landings: dict[str, Landing] = {
        name: files_landing(setting, request, name, mode, path)
        for name, (mode, path, kind) in request.outputs.items()
        if kind == FilesLanding.kind
    }
    run: Run | None = None
    try:
        lease = start.acquire(tuple(landing.written for landing in landings.values()))
        if lease is None:
            return None
        run = Run(setting, request, start, lease, landings)
        run.beat()
        if not start.settle(lease):
            run.end()
            return None
        run.begin()
    except BaseException:
        if run is not None:
            run.end()
        # An interrupt may have come between the entry and the lease made of it.
        leave(start.log, request.run)
        LIVE_RUNS.discard(request.run)
        raise
    return run


def files_landing(setting: Setting, request: Request, name: str, mode: str, path: str) -> FilesLanding:
    """The landing of one output of a run.

    :raises UsageError: the output lies where state or run records are.
    """
    place = setting.places.place(path)
    refuse_shared_ground(setting.places.path(place), mode, stands(mode), setting.roots)
    return FilesLanding(
        setting.disk,
        setting.places,
        request.run,
        name,
        mode,
        path,
        setting.staging_root,
        request.batch.pinned,
    )


class Run:
    """A run that holds its batch's lease. Leaving it without an exception commits it.

    Nothing that :meth:`output` staged can be read before the commit. Does not promise that a reader of plain
    files never sees old and new files together while a batch is being replaced.
    """

    def __init__(
        self, setting: Setting, request: Request, start: Start, lease: Lease, announced: dict[str, Landing]
    ) -> None:
        self.id = request.run
        self.request = request
        self.outcome = Outcome(request.run, over=lease.state.holder.over if lease.state.holder else None)
        self._setting = setting
        self._start = start
        self._lease = lease
        self._announced = announced
        self._landings: dict[str, Landing] = {}
        self._alive = contextlib.ExitStack()
        self._receipt = Receipt(setting, request)
        self._pid = os.getpid()
        self._replacing = False
        self._left_alone: set[Place] = set()
        self._interrupt = Interrupt(type(self).__exit__.__code__)

    def beat(self) -> None:
        """Keep the lease alive from here on."""
        self._lease.on_lost(self._interrupt.send)
        if self._setting.heartbeat:
            self._alive.enter_context(self._lease.kept_alive())

    def begin(self) -> None:
        """Write the record that says running, and say what a ``--rerun`` will replace."""
        self._receipt.begin()
        self._replacing = self.request.decide(self._start.finished) is Decision.REPLACE
        if self._replacing and self._start.finished is not None:
            replacing.say_what_is_replaced(self._setting, self._start.finished, self._start.replaced())

    def end(self) -> None:
        """Stop beating. A lease that is still held is freed, and what it owes is left to the next run."""
        try:
            self._alive.close()
            if self._lease.held:
                leave(self._lease.log, self.id)
        finally:
            LIVE_RUNS.discard(self.id)

    def output(self, name: str, mode: str, path: str) -> Staging | None:
        """Announce an output of files and open its staging folder.

        :returns: where to write; None where mode ``ignore`` finds data and leaves it alone.
        :raises BatchFinished: the batch is finished and this output would append it again.
        :raises UsageError: the run has an output of that name already.
        """
        self._refuse_a_second(name, mode)
        landing = self._announced.get(name)
        if not isinstance(landing, FilesLanding):
            landing = files_landing(self._setting, self.request, name, mode, path)
            if landing.skips():
                self._skip(name, landing.written.place)
                return None
            self._lease.append("writing", {"outputs": to_json([landing.written])})
        elif landing.skips():
            self._skip(name, landing.written.place)
            return None
        self._lease.check()
        beside = [o for o in self._landings.values() if o.written.place == landing.written.place]
        landing.tag = f"-{len(beside)}" if beside else ""
        staging = landing.open()
        self._landings[name] = landing
        for line in landing.warnings:
            logger.warning("%s", line)
        landing.warnings.clear()
        return staging

    def output_named(self, name: str, mode: str, path: str, write: Callable[[], None]) -> None:
        """Announce an output that can't be taken back; ``write`` is called after all files have landed.

        :raises BatchFinished: the batch is finished and this output would append it again.
        :raises UsageError: the run has an output of that name already.
        """
        self._refuse_a_second(name, mode)
        landing = NamedLanding(self._setting.places, name, mode, path, write)
        self._lease.append("writing", {"outputs": to_json([landing.written])})
        self._landings[name] = landing

    def commit(self) -> None:
        """Claim, land, done, settle.

        :raises LeaseLost: another run took over; nothing more of this one lands.
        :raises UbunyeError: the data could not be landed; the caller takes it back.
        """
        files = [o for o in self._landings.values() if isinstance(o, FilesLanding)]
        named = [o for o in self._landings.values() if isinstance(o, NamedLanding)]
        claimed: list[Written] = []
        replaces: list[Debt] = []
        for landing in files:
            written, listed = landing.claim()
            claimed.append(self.outcome.counted(written))
            replaces += listed
            for line in landing.warnings:
                logger.warning("%s", line)
        names = [(o.place, claim.final) for o in claimed for claim in o.claims]
        if len(set(names)) != len(names):
            raise LandingFailed("two outputs of the run would land files under one name")
        replaces += self._replaced_by_rerun(replaces)
        if claimed or replaces:
            self._lease.append("claimed", {"outputs": to_json(claimed), "replaces": to_json(replaces)})
        for landing in files:
            landing.land(self._lease.check)
            self.outcome.files[landing.written.name] = len(landing.written.claims)
        for other in named:
            other.commit(self._lease)
        self._lease.append("done", {"named": self.request.batch.named})
        if self.request.batch.named:
            replacing.say_what_is_empty(self.outcome, claimed)
        self._finish()

    def fail(self, error: BaseException) -> UbunyeError | None:
        """Take back what this run wrote, free the lease and close the record.

        :returns: the error to raise instead, where what happened says more than ``error`` does.
        """
        stopped = isinstance(error, KeyboardInterrupt | RunInterrupted)
        whole = False
        kept = [o.written.name for o in self._landings.values() if isinstance(o, NamedLanding) and o.began]
        try:
            self._lease.end_doubt()
            if self._succeeded():
                self._finish()
                return None
            settled = take_back(
                self._setting, self.request, self._lease, [Debt(UNFINISHED, self.id, w) for w in self._own()]
            )
            whole = not settled.left
            outcome = "interrupted" if stopped else "failed"
            # While the lease is held: whoever comes after a kill here still finds that the record may be open.
            self._receipt.fail(error, stopped)
            self._lease.append("released", {"outcome": outcome, "debts": to_json(settled.left), "kept": kept})
            self._lease.log.prune(self._lease.state)
        except LeaseLost as lost:
            self._sweep_own_staging()
            if self._succeeded():
                self._receipt.end("success", None, self.outcome)
                return None
            self._receipt.end("interrupted", lost.what)
            # What the heartbeat's interrupt, or a staged file that was gone, looks like from inside the run.
            return lost if isinstance(error, KeyboardInterrupt | UbunyeError | OSError) else None
        except (UbunyeError, OSError) as problem:
            logger.warning(
                "Run %s could not take itself back: %s. The next run will.", messages.who(self.id), problem
            )
            self._receipt.fail(error, stopped)
        if kept:
            return MayRepeat(
                f"{self.request.batch.label} failed, and rows of it are in {', '.join(kept)}, which can't be "
                f"taken back: {error}",
                hint="look at what is there before you run the batch again: a rerun adds its rows again",
            )
        if isinstance(error, KeyboardInterrupt):
            return messages.interrupted(self.request.batch.label, error, whole, self._replacing)
        return None

    def __enter__(self) -> Self:
        self._interrupt.listen()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        given = error
        if os.getpid() != self._pid:
            # A child that the user's code forked leaves the block too: the run is its parent's.
            return
        try:
            error = self._interrupt.arrived() or error
            if error is None:
                try:
                    with self._interrupt.passing():
                        self.commit()
                    return
                except BaseException as failed:  # noqa: BLE001 - taken back whatever it is, then raised
                    error = failed
            better = self.fail(error)
            if self._succeeded():
                logger.warning("Run %s had committed the batch when it was stopped.", messages.who(self.id))
                self.outcome.stopped = isinstance(error, KeyboardInterrupt | RunInterrupted)
            elif better is not None:
                raise better from error
            elif error is not given:
                raise error
        finally:
            self.end()
            self.outcome.stopped |= self._interrupt.stop_listening() and self._succeeded()

    def _succeeded(self) -> bool:
        if self._lease.committed:
            return True
        holder = self._lease.state.holder
        done = holder is None or holder.phase == "done"
        return done and self._lease.state.outcome_of(self.id) == "success"

    def _finish(self) -> None:
        """What remains after done. The run is a success whatever happens here; the next one goes on with it."""
        self._receipt.end("success", None, self.outcome)
        try:
            if self._lease.state.holder is None:
                # Stopped while it pruned: nothing else remained.
                self._lease.log.prune(self._lease.state)
                return
            settled = settle(self._setting, self.request, self._lease)
            self.outcome.replaced = settled.removed
            earlier = self._start.finished if self._replacing else None
            replacing.say_what_was_replaced(self._setting, settled, earlier)
            self._lease.log.prune(self._lease.state)
        except (UbunyeError, OSError) as error:
            logger.warning(
                "Run %s committed the batch; what remains to do is left to the next run: %s",
                messages.who(self.id),
                error,
            )

    def _own(self) -> list[Written]:
        holder = self._lease.state.holder
        known = {o.name: o for o in (holder.outputs if holder else ())}
        known.update({o.written.name: o.written for o in self._landings.values()})
        return list(known.values())

    def _refuse_a_second(self, name: str, mode: str) -> None:
        if name in self._landings:
            raise UsageError(f"the run has an output {name!r} already; give each output its own name")
        done = self._start.finished
        if done is not None and not self._replacing and appends(mode):
            raise self._start.refusal([name])

    def _skip(self, name: str, place: Place) -> None:
        logger.info("[SKIP] %s", messages.left_alone(self.request.batch, name, self.id))
        self.outcome.skipped.append(name)
        self._left_alone.add(place)

    def _replaced_by_rerun(self, listed: list[Debt]) -> list[Debt]:
        if not self._replacing:
            return []
        landings = [landing.written for landing in self._landings.values()]
        standing = {o.place for o in landings if stands(o.mode)} | self._left_alone
        earlier = self._start.replaced(standing, {o.place for o in landings})
        return replacing.not_listed(earlier, listed)

    def _sweep_own_staging(self) -> None:
        """A run that lost its lease removes what only it can still be writing: its own staging folders."""
        bare = [replace(w, claims=(), folders=(), made=0) for w in self._own()]
        with contextlib.suppress(UbunyeError, OSError):
            TakeBack(self._setting.disk, self._setting.places, self._setting.staging_root).settle(
                [Debt(UNFINISHED, self.id, w) for w in bare]
            )
