"""The lease: taking it, keeping it, losing it (contract, invariants 1, 2, 9 and 10).

A lease is this run's while its entry is the last word of the batch's log. Everything that must be recorded
goes through :meth:`Lease.append`; everything that is about to have an effect asks :meth:`Lease.check` first.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NoReturn

from airflow_provider_ubunye.core import messages
from airflow_provider_ubunye.core import owner as owners
from airflow_provider_ubunye.core.errors import LeaseLost, StateUnreadable, UsageError
from airflow_provider_ubunye.core.judge import Evidence, Verdict, judge
from airflow_provider_ubunye.core.log import BatchLog, Superseded
from airflow_provider_ubunye.core.state import BatchState, Holder, to_json
from airflow_provider_ubunye.core.store.base import StoreFailed

DEFAULT_TTL = 900.0
"""Seconds without a heartbeat after which a run elsewhere may be judged dead: 15 minutes."""

BEATS_PER_TTL = 30
LONGEST_BEAT = 30.0

_DOUBTS = 3

LOST_AT = 2 / 3
"""The part of the ttl without a successful heartbeat after which a run declares its own lease lost."""


def beat_of(ttl: float) -> float:
    """Seconds between heartbeats for a time to takeover.

    :raises UsageError: the ttl is not a positive number.
    """
    if not 0 < ttl < float("inf"):
        raise UsageError(f"the time to takeover must be a positive number of seconds, not {ttl!r}")
    return min(ttl / BEATS_PER_TTL, LONGEST_BEAT)


def boot_clock() -> float:
    """Seconds that go on while the machine sleeps: a laptop that slept past its ttl must notice."""
    clock = getattr(time, "CLOCK_BOOTTIME", None)
    return time.monotonic() if clock is None else time.clock_gettime(clock)


class Watch:
    """Watches one batch's holder, so that the judge knows for how long its heartbeat stood still."""

    def __init__(
        self,
        log: BatchLog,
        me: owners.Owner,
        clock: Callable[[], float] = time.monotonic,
        is_alive: Callable[[owners.Owner], bool] = owners.is_alive,
    ) -> None:
        self._log = log
        self._me = me
        self._clock = clock
        self._is_alive = is_alive
        self._seen: tuple[str, int] | None = None
        self._beaten: float | None = None
        self._since = 0.0

    def look(self, holder: Holder) -> tuple[Verdict, Evidence]:
        """Look once.

        :returns: the verdict, and the evidence that gave it.
        """
        other = owners.Owner.from_json(holder.owner)
        process = self._is_alive(other) if other.same_place(self._me) else None
        age = None
        if process is None:
            age = self._log.store.age(self._log.entry_key(holder.entry))
        now = self._clock()
        # When the heartbeat was, on the judge's own clock: it moves only when the holder beats.
        beaten = None if age is None else now - age
        same = (holder.run, holder.entry) == self._seen and _same_beat(beaten, self._beaten, holder.beat)
        if not same:
            self._seen, self._beaten, self._since = (holder.run, holder.entry), beaten, now
        evidence = Evidence(
            process=process,
            age=age,
            watched=now - self._since,
            ttl=holder.ttl,
            # No run beats less often: a log that says so is not believed, lest it be watched for ever.
            watch=min(holder.beat, LONGEST_BEAT) + self._log.store.caching,
        )
        return judge(evidence), evidence


def _same_beat(now: float | None, before: float | None, beat: float) -> bool:
    if now is None or before is None:
        return now is before
    # Two looks at one heartbeat differ by what the looking took; a new one by at least most of a beat.
    # A coarse file clock and a busy machine blur very short beats; age decides first all the same.
    return abs(now - before) < max(beat / 2, 0.05)


class Lease:
    """What a run holds.

    :param state: the batch as of this run's last entry.

    Does not promise to notice a takeover before the next :meth:`append`: it is the log that fences, and
    :meth:`check` only makes a run stop sooner.
    """

    def __init__(
        self,
        log: BatchLog,
        run: str,
        state: BatchState,
        *,
        clock: Callable[[], float] = boot_clock,
    ) -> None:
        assert state.holder is not None
        assert state.holder.run == run
        self.log = log
        self.run = run
        self.state = state
        self.ttl = state.holder.ttl
        self._beat = state.holder.beat
        self._key = log.entry_key(state.holder.entry)
        self._on_lost: Callable[[], None] | None = None
        self._clock = clock
        self._fresh = clock()
        self._lost: str | None = None
        self._ended = False
        self._doubt = False
        self.committed = False
        """Whether the run was found to have committed before it was taken over."""
        self._appending = threading.Lock()

    def on_lost(self, act: Callable[[], None] | None) -> None:
        """Have ``act`` called from the heartbeat's thread, once, when the lease is found lost."""
        self._on_lost = act

    def append(self, kind: str, body: Mapping[str, Any] | None = None) -> BatchState:
        """Record one step before its effect.

        :raises LeaseLost: the batch was taken over; nothing was recorded that counts.
        :raises StoreFailed: the store refused it. :raises StoreBroken: whether it counts could not be found out.
        """
        self.check()
        with self._appending:
            try:
                self._doubt = True
                self.state = self.log.append(self.state, self.run, kind, body)
                self._doubt = False
            except Superseded:
                self._doubt = False
                self._lose(self._taken())
            except OSError as error:
                raise StoreFailed(
                    f"the step {kind!r} of run {self.run[:8]} could not be recorded: {error.strerror or error}",
                    where=self.log.where,
                    hint="mend the state store, then run the batch again",
                ) from error
            self._ended = self.state.holder is None
        return self.state

    def end_doubt(self) -> None:
        """After an append that raised: find out whether its entry counts, and see that it can't count later.

        A create whose answer was lost may still be under way. Its number is taken by an entry that changes
        nothing, or the entry is found there and is the batch's state. Until then nothing may be removed: the
        entry may be ``done``.

        :raises LeaseLost: another run took over; :attr:`committed` says whether this one had committed.
        :raises StoreFailed: the store still does not answer; the doubt stands.
        """
        for _ in range(_DOUBTS):
            if not self._doubt:
                return
            self.check()
            with self._appending:
                state = self.log.read()
                if state.holder is None or state.holder.run != self.run:
                    self.committed = state.outcome_of(self.run) == "success"
                    self._lose(messages.lost_to(state, self.run))
                if state.number > self.state.number:
                    self.state, self._doubt = state, False
                    return
            try:
                self.append("cleaned", {"debts": to_json(self.state.debts)})
            except LeaseLost:
                # The number is taken: by another run, or by the entry in doubt, which came just now.
                self._lost, self._doubt = None, True
        self._lose("the batch's log changes faster than it can be read")

    def check(self) -> None:
        """Stop a run that must not go on.

        :raises LeaseLost: the lease was found lost, or could not be refreshed for two thirds of its ttl.
        """
        if self._lost is None:
            silent = self._clock() - self._fresh
            if silent > self.ttl * LOST_AT:
                self._lost = f"the lease could not be refreshed for {silent:.0f} s"
        if self._lost is not None:
            raise self._lost_error()

    def confirm(self) -> None:
        """Ask the log itself whether the lease is still this run's.

        :raises LeaseLost: it is not.
        """
        self.check()
        with self._appending:
            if not self.log.ends_with(self.state):
                self._lose(self._taken())

    @property
    def held(self) -> bool:
        """Whether the lease was neither freed nor found lost, as far as this run knows."""
        return self._lost is None and not self._ended

    @property
    def lost(self) -> bool:
        return self._lost is not None

    def refresh(self) -> None:
        """Beat once, and look whether the log has gone on without this run.

        :raises LeaseLost: it has.
        :raises OSError: the store did not answer; the caller tries again, until :meth:`check` says no.
        """
        began = self._clock()
        beaten = self.log.store.beat(self._key)
        # Nothing of this run can be half recorded while the lock is held, so a foreign last word is one.
        with self._appending:
            if self._ended:
                return
            if not beaten:
                self._lose(self._taken())
            state = self.log.read()
            if state.holder is None or state.holder.run != self.run:
                self._lose(messages.lost_to(state, self.run))
        self._fresh = began

    @contextlib.contextmanager
    def kept_alive(self) -> Iterator[Lease]:
        """Beat from a thread of its own while the block runs."""
        stop = threading.Event()
        thread = threading.Thread(target=self._beat_until, args=(stop,), name="ubunye-heartbeat", daemon=True)
        thread.start()
        try:
            yield self
        finally:
            stop.set()
            thread.join(timeout=self._beat + 5)

    def _beat_until(self, stop: threading.Event) -> None:
        while not stop.wait(self._beat):
            try:
                self.refresh()
            except LeaseLost:
                break
            except (OSError, StateUnreadable):
                # A passing error. The time since the last good beat decides, not the number of bad ones.
                try:
                    self.check()
                except LeaseLost:
                    break
        if self._lost is not None and self._on_lost is not None and not stop.is_set():
            self._on_lost()

    def _lose(self, why: str) -> NoReturn:
        self._lost = why
        raise self._lost_error() from None

    def _taken(self) -> str:
        """Who has the batch now, where the log can be read at this moment."""
        try:
            return messages.lost_to(self.log.read(), self.run)
        except (OSError, StateUnreadable):
            return "the batch was taken over"

    def _lost_error(self) -> LeaseLost:
        return LeaseLost(
            f"run {self.run[:8]} lost its lease: {self._lost}",
            where=self.log.where,
            hint=f"nothing more was landed; see who has the batch: {self.log.typed('leases list')}",
        )
