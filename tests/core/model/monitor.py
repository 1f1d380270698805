"""The invariants, looked at after every act that changed something, and once all has ended."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from airflow_provider_ubunye.core.errors import UbunyeError
from airflow_provider_ubunye.core.log import BatchLog
from airflow_provider_ubunye.core.places import STAGING_PREFIX, Places, hidden, run_in, staging_name
from airflow_provider_ubunye.core.state import BatchState, Written
from airflow_provider_ubunye.core.testing import MemoryDisk, MemoryStore
from tests.core.model.footprint import log_of
from tests.core.model.scenario import PIPE, Actor, Job, Scenario

SUCCESS = "success"
SKIPPED = "skipped"
RELEASED = "released"
REFUSED = frozenset({"RunLeaseHeld", "BatchFinished"})
FAILED = frozenset({"LeaseLost", "ValueError", "LandingFailed", "RunInterrupted"})
UNANSWERED = frozenset(
    {"StoreBroken", "StoreFailed", "StoreUnusable", "OSError", "LandingFailed", "FileNotFoundError"}
)
"""What a run may report that got no answer from the store: why, or what it met and could not find out about."""


class Violation(AssertionError):
    """An invariant is broken."""


class Monitor:
    """Remembers what it must of one execution, and judges.

    :param owners: run id to the actor whose run it is; grows as runs are made.
    """

    def __init__(
        self,
        scenario: Scenario,
        store: MemoryStore,
        disk: MemoryDisk,
        states: dict[frozenset[tuple[str, bytes]], BatchState],
    ) -> None:
        self.scenario = scenario
        self.store = store
        self.disk = disk
        self.jobs = {f"leases/{j.batch.task}/{j.batch.key}": j for j in scenario.jobs}
        self.logs = {job.batch.key: BatchLog(store, prefix) for prefix, job in self.jobs.items()}
        self.actors: dict[str, Actor] = {a.run: a for a in (*scenario.before, *scenario.actors)}
        self.committed: dict[str, list[str]] = {j.batch.key: [] for j in scenario.jobs}
        self.claims: dict[str, frozenset[str]] = {}
        self.reported: dict[str, str] = {}
        self.unanswered: set[str] = set()
        self.late: set[str] = set()
        self.visible = self._visible()
        self._places = Places(PIPE)
        self._states = states
        folders = [o.path for j in scenario.jobs for o in j.outputs]
        self._strangers = {f"{PIPE}/{s}" for s in scenario.strangers}
        self._before = {a.run for a in scenario.before}
        self._alone = len(folders) == len(set(folders))

    def copy_from(self, other: Monitor) -> None:
        """Go on from where another one stands: what went before is the same for every execution."""
        self.committed = {key: list(runs) for key, runs in other.committed.items()}
        self.claims = dict(other.claims)
        self.visible = self._visible()

    def memory(self) -> tuple[Any, ...]:
        """What it remembers that changes its judgement."""
        return (
            tuple(map(tuple, self.committed.values())),
            tuple(sorted(self.reported.items())),
            tuple(sorted(self.unanswered)),
            tuple(sorted(self.late)),
        )

    # ── after an act ────────────────────────────────────────────────────────────────────────────

    def stored(self, key: str) -> None:
        """The store changed at ``key``."""
        job = self.jobs.get(log_of(key))
        if job is None:
            return
        state = self.state_of(job)
        batch = job.batch
        holder = state.holder
        runs = self.committed[batch.key]
        if holder is not None and holder.phase == "done" and holder.run not in runs:
            runs.append(holder.run)
            self.claims[holder.run] = frozenset(self._files_of(holder.outputs))
            if missing := self.claims[holder.run] - self.visible:
                raise Violation(f"committed, but not there: {sorted(missing)}")
            wanted = sum(len(o.parts) for o in job.outputs)
            if len(self.claims[holder.run]) != wanted:
                raise Violation(f"committed {len(self.claims[holder.run])} files of {wanted}")
        if holder is None and not state.debts and self._alone:
            self._exact(job)

    def moved(self, actor: Actor) -> None:
        """The disk changed by an act of ``actor``."""
        now = self._visible()
        if now == self.visible:
            return
        removed, added, self.visible = self.visible - now, now - self.visible, now
        state = self.state_of(actor.job)
        holds = state.holder is not None and state.holder.run == actor.run
        if not holds and actor.run not in state.unclosed:
            raise Violation(
                f"{actor.name} is fenced, and yet changed the output: +{sorted(added)} -{sorted(removed)}"
            )
        for path in removed:
            self._may_go(path, actor)

    def ended(self, actor: Actor, outcome: str) -> None:
        """An actor's run ended and reported ``outcome``."""
        self.reported[actor.run] = outcome
        self._expected(actor, outcome)
        commits = actor.run in self.committed[actor.job.batch.key]
        if outcome == SUCCESS and not commits:
            raise Violation(f"{actor.name} reported success and had not committed")
        if outcome in FAILED | REFUSED and commits:
            raise Violation(f"{actor.name} reported {outcome} and had committed")
        last = outcome == SUCCESS and self.committed[actor.job.batch.key][-1] == actor.run
        if last and self._alone and (missing := self.claims[actor.run] - self.visible):
            raise Violation(f"{actor.name} reported success without {sorted(missing)}")
        if outcome == SKIPPED and not self.committed[actor.job.batch.key]:
            raise Violation(f"{actor.name} was skipped, and nobody had committed")
        if outcome == "BatchFinished" and not self.committed[actor.job.batch.key]:
            raise Violation(f"{actor.name} was refused as finished, and nobody had committed")

    def _expected(self, actor: Actor, outcome: str) -> None:
        allowed = outcome in REFUSED | {SUCCESS, SKIPPED, RELEASED, "LeaseLost"}
        allowed |= outcome == "ValueError" and actor.fails
        allowed |= outcome in UNANSWERED and actor.run in self.unanswered
        allowed |= outcome in self.scenario.expected
        if not allowed:
            raise Violation(f"{actor.name} reported {outcome}, for which there is no reason")

    def state_of(self, job: Job) -> BatchState:
        """The state that the log says, read past every run.

        :raises Violation: it can't be read.
        """
        log = self.logs[job.batch.key]
        data = frozenset((k, v) for k, v in self.store.data.items() if k.startswith(log.prefix + "/"))
        state = self._states.get(data)
        if state is None:
            try:
                state = log.read()
            except UbunyeError as error:
                raise Violation(f"the log can't be read: {error}") from error
            self._states[data] = state
        return state

    # ── once all has ended ──────────────────────────────────────────────────────────────────────

    def settled(self, run_alone: Callable[[Job, str], str]) -> None:
        """Let one plain run and one ``--rerun`` of each batch run alone, and see what is there.

        :param run_alone: runs a job for a purpose and returns what it reported.
        """
        for run, outcome in self.reported.items():
            actor = self.actors[run]
            if outcome in FAILED | REFUSED and run in self.committed[actor.job.batch.key]:
                raise Violation(f"{actor.name} reported {outcome} and committed after all")
        for job in self.scenario.jobs:
            finished = bool(self.committed[job.batch.key]) and job.adds and job.batch.named
            got = run_alone(job, "run")
            if got != ("BatchFinished" if finished else SUCCESS):
                raise Violation(f"a plain run after all reported {got}, finished is {finished}")
            self._whole(job)
        self._nothing_left()
        for job in self.scenario.jobs:
            got = run_alone(job, "rerun" if job.batch.named else "run")
            if got != SUCCESS:
                raise Violation(f"a rerun after all reported {got}")
            self._whole(job)
            self._log_is_bare(job)
        self._nothing_left()

    def _nothing_left(self) -> None:
        # A run that wakes after it was taken over, makes its staging anew and is killed then, leaves it: no log
        # knows of it. Nothing of it can land and no reader sees it.
        known = tuple(staging_name(run) for run in self.late)
        debris = [p for p in self.disk.nodes if STAGING_PREFIX in p and not any(k in p for k in known)]
        if debris:
            raise Violation(f"left behind: {debris}")

    def killed(self, actor: Actor) -> None:
        """An actor was killed."""
        state = self.state_of(actor.job)
        if state.holder is None or state.holder.run != actor.run:
            self.late.add(actor.run)

    def _whole(self, job: Job) -> None:
        """This batch is exactly there; every other one is whole or, once overwritten, gone."""
        if self._alone:
            self._exact(job)
            return
        runs = self.committed[job.batch.key]
        for run in runs:
            there = self.claims[run] & self.visible
            replaced = run != runs[-1] or self._overwritten(job)
            if there and there != self.claims[run]:
                raise Violation(f"half of run {self._name(run)} is there: {sorted(there)}")
            if not there and not replaced:
                raise Violation(f"run {self._name(run)} committed and is gone")
        for path in self.visible:
            owner = self._owner(path)
            if owner is not None and owner.job == job and run_in(path) not in runs:
                raise Violation(f"{path} is of a run that did not commit")

    def _exact(self, job: Job) -> None:
        there = {p for p in self.visible if any(p.startswith(o.path + "/") for o in job.outputs)}
        runs = self.committed[job.batch.key]
        counted = runs[-1:] if job.batch.named or not job.adds else runs
        wanted = {path for run in counted for path in self.claims[run]}
        if job.adds or not runs:
            wanted |= {s for s in self._strangers if any(s.startswith(o.path + "/") for o in job.outputs)}
        if there != wanted:
            raise Violation(f"the output holds {sorted(there)}, not {sorted(wanted)}")

    def _log_is_bare(self, job: Job) -> None:
        state = self.state_of(job)
        keys = [k for k in self.store.data if k.startswith(self.logs[job.batch.key].prefix + "/")]
        if keys != [self.logs[job.batch.key].entry_key(state.number)]:
            raise Violation(f"the log was not pruned: {keys}")

    # ── helpers ─────────────────────────────────────────────────────────────────────────────────

    def _may_go(self, path: str, by: Actor) -> None:
        run = run_in(path)
        owner = self._owner(path)
        mine = self.committed[by.job.batch.key]
        if owner is not None and owner.job == by.job:
            if run in mine and (run == mine[-1] or (by.job.adds and not by.job.batch.named)):
                raise Violation(f"{by.name} removed {path}, which is committed and not replaced")
            return
        if by.job.adds or self._before.issuperset(mine):
            raise Violation(f"{by.name} removed {path} of another batch before it committed")
        if owner is not None and run not in self.committed[owner.job.batch.key]:
            raise Violation(f"{by.name} removed {path} of a run that had not committed")

    def _overwritten(self, job: Job) -> bool:
        return any(self.committed[j.batch.key] for j in self.scenario.jobs if j != job and not j.adds)

    def _owner(self, path: str) -> Actor | None:
        run = run_in(path)
        return None if run is None else self.actors[run]

    def _name(self, run: str) -> str:
        return self.actors[run].name

    def _files_of(self, outputs: tuple[Written, ...]) -> list[str]:
        return [f"{self._places.path(o.place)}/{c.final}" for o in outputs for c in o.claims]

    def _visible(self) -> frozenset[str]:
        """Every data file that a reader of an output sees."""
        found = set()
        for job in self.scenario.jobs:
            for output in job.outputs:
                start = output.path + "/"
                for path, node in self.disk.nodes.items():
                    if node is None or not path.startswith(start):
                        continue
                    *folders, name = path[len(start) :].split("/")
                    if not hidden(name, folder=False) and not any(hidden(f, folder=True) for f in folders):
                        found.add(path)
        return frozenset(found)
