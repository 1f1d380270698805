"""The world that is explored: the real core on a store and a disk in memory, each run a coroutine.

A run stops before every act on the store or the disk, and before it asks whether another process lives.
Nothing in the core is replaced but where ids and the time of day come from: an execution must depend on
nothing but the choices made in it.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import posixpath
from collections.abc import Callable
from typing import Any

from greenlet import GreenletExit, getcurrent, greenlet

from airflow_provider_ubunye.core.owner import Owner
from airflow_provider_ubunye.core.places import Places
from airflow_provider_ubunye.core.request import RELEASE, Setting
from airflow_provider_ubunye.core.state import BatchState
from airflow_provider_ubunye.core.testing import CHANGES, FakeClock, MemoryDisk, MemoryStore, intercepted
from tests.core.model.actor import line, outcome_of, run_as
from tests.core.model.coroutine import FREE, KILL, LOSE, MISJUDGE, OUTAGES, SWITCH, Act, Coroutine
from tests.core.model.determined import IDS
from tests.core.model.explore import Budget, Choice, Option
from tests.core.model.footprint import Footprint, life, of_disk, of_store
from tests.core.model.monitor import SUCCESS, Monitor, Violation
from tests.core.model.scenario import PIPE, Actor, Job, Scenario, hex_id


class Base:
    """What stands there before, and what executions share."""

    def __init__(self, scenario: Scenario) -> None:
        self.scenario = scenario
        self.states: dict[frozenset[tuple[str, bytes]], BatchState] = {}
        self.final: set[int] = set()
        self.store = MemoryStore(FakeClock())
        self.disk = MemoryDisk(FakeClock())
        self.disk.make_folders(PIPE)
        for name in scenario.strangers:
            path = f"{PIPE}/{name}"
            self.disk.make_folders(path.rpartition("/")[0])
            self.disk.write(path, b"stranger")
        self.monitor = Monitor(scenario, self.store, self.disk, self.states)
        world = World(self)
        world.store, world.disk, world.monitor = self.store, self.disk, self.monitor
        for actor in scenario.before:
            outcome = world.alone(actor)
            if outcome != SUCCESS:
                raise Violation(f"{actor.name}, before everything, reported {outcome}")


class World:
    """One execution."""

    def __init__(self, base: Base) -> None:
        self.base = base
        self.store = MemoryStore(FakeClock())
        self.store.data = dict(base.store.data)
        self.disk = MemoryDisk(FakeClock())
        self.disk.nodes = dict(base.disk.nodes)
        self.monitor = Monitor(base.scenario, self.store, self.disk, base.states)
        self.monitor.copy_from(base.monitor)
        self._trace: list[tuple[Any, ...]] = []
        self._coroutines: dict[str, Coroutine] = {}
        self._current: str | None = None
        self._running: Coroutine | None = None
        self._network: dict[str, tuple[Actor, str, bytes]] = {}
        self._main = getcurrent()
        self._afterwards = 0
        self._violation: Violation | None = None
        IDS.maker = self

    def begin(self) -> World:
        """Start every run, up to its first act."""
        for pid, actor in enumerate(self.base.scenario.actors, 1):
            coroutine = Coroutine(actor, pid)
            coroutine.greenlet = greenlet(self._body(coroutine), self._main)
            self._coroutines[actor.name] = coroutine
            self._resume(coroutine, None)
        return self

    def trace(self) -> list[str]:
        """What happened so far, a line for each act."""
        return [line(*happened) for happened in self._trace]

    # ── what can happen ─────────────────────────────────────────────────────────────────────────

    def options(self) -> list[Option]:
        found: list[Option] = []
        for name, (actor, key, _) in self._network.items():
            footprint = of_store(self.store, "create", (key,), f"{actor.name} late")
            found.append(Option(Choice("deliver", name), FREE, footprint, sleeps=True))
        live = [c for c in self._coroutines.values() if not c.ended and not c.killed]
        current = next((c for c in live if c.actor.name == self._current), None)
        if current is not None:
            found += self._options_of(current, FREE, sleeps=True)
        for other in live:
            if other is not current:
                found += self._options_of(other, FREE if current is None else SWITCH, sleeps=False)
        # What a killed run leaves is what it changed: before each further look it leaves the same.
        if current is not None and current.changed:
            name = current.actor.name
            found.append(
                Option(Choice("kill", name), KILL, Footprint(writes=frozenset({life(name)})), sleeps=False)
            )
        return found

    def _options_of(self, coroutine: Coroutine, cost: Budget, *, sleeps: bool) -> list[Option]:
        act = coroutine.act
        assert act is not None
        name = coroutine.actor.name
        footprint = self._footprint(act, name)

        def option(variant: str, price: Budget) -> Option:
            return Option(Choice("step", name, variant), cost.and_also(price), footprint, sleeps)

        found = [option("", FREE)]
        if act.side == "life" and self._lives(act.args[0]):
            found.append(option("dead", MISJUDGE))
        if act.side == "store" and act.name == "create" and not coroutine.outage:
            found += [option(loss, LOSE) for loss in self.base.scenario.losses]
        return found

    def _footprint(self, act: Act, actor: str) -> Footprint:
        if act.side == "life":
            other = self._of_pid(act.args[0])
            reads = frozenset() if other is None else frozenset({life(other.actor.name)})
            return Footprint(reads=reads, writes=frozenset({life(actor)}))
        if act.side == "store":
            return of_store(self.store, act.name, act.args, actor)
        return of_disk(self.disk, act.name, act.args, actor)

    def do(self, choice: Choice) -> None:
        if choice.act == "deliver":
            actor, key, data = self._network.pop(choice.actor)
            made = self.store.create(key, data)
            self._trace.append((actor.name, "create", (key,), "late", made))
            if made:
                self.monitor.stored(key)
            return
        coroutine = self._coroutines[choice.actor]
        if choice.act == "kill":
            coroutine.killed = True
            self.monitor.killed(coroutine.actor)
            self._current = None
            self._trace.append((choice.actor, "killed"))
            return
        self._current = choice.actor
        act = coroutine.act
        assert act is not None
        coroutine.changed = act.name in CHANGES and bool(self._footprint(act, choice.actor).adds)
        self._resume(coroutine, choice.variant)
        if self._violation is not None:
            raise self._violation

    def state(self) -> int:
        runs = tuple("killed" if c.killed else (c.seen, c.outage, c.ended) for c in self._coroutines.values())
        return hash(
            (
                frozenset(self.store.data.items()),
                frozenset(self.disk.nodes.items()),
                runs,
                self._current,
                frozenset(self._network),
                self.monitor.memory(),
            )
        )

    def finish(self) -> None:
        state = self.state()
        if state in self.base.final:
            return
        self.base.final.add(state)
        self.monitor.settled(self._alone_for)

    def drop(self) -> None:
        for coroutine in self._coroutines.values():
            assert coroutine.greenlet is not None
            coroutine.dropped = True
            if not coroutine.greenlet.dead:
                coroutine.greenlet.throw(GreenletExit())

    # ── runs ────────────────────────────────────────────────────────────────────────────────────

    def alone(self, actor: Actor) -> str:
        """Run with nobody else there, and everybody else dead."""
        coroutine = Coroutine(actor, 99)
        self.monitor.actors[actor.run] = actor

        def watch(side: str) -> Callable[[str, tuple[Any, ...], Callable[[], Any]], Any]:
            def act(name: str, args: tuple[Any, ...], call: Callable[[], Any]) -> Any:
                result = call()
                self._trace.append((actor.name, name, args, "", result))
                if name in CHANGES:
                    if side == "disk":
                        self.monitor.moved(actor)
                    else:
                        for key in [args[0]] if isinstance(args[0], str) else args[0]:
                            self.monitor.stored(key)
                return result

            return act

        self._running = coroutine
        outcome = outcome_of(
            lambda: self._run(
                coroutine,
                intercepted(self.store, watch("store")),
                intercepted(self.disk, watch("disk")),
                lambda _: False,
            )
        )
        self.monitor.ended(actor, outcome)
        return outcome

    def _alone_for(self, job: Job, purpose: str) -> str:
        self._afterwards += 1
        return self.alone(Actor(f"{purpose} {self._afterwards} afterwards", job, purpose))

    def _body(self, coroutine: Coroutine) -> Callable[[str | None], None]:
        def body(_: str | None) -> None:
            actor = coroutine.actor
            outcome = outcome_of(
                lambda: self._run(
                    coroutine,
                    intercepted(self.store, self._stop_before("store", coroutine)),
                    intercepted(self.disk, self._stop_before("disk", coroutine)),
                    lambda owner: bool(self._stop(coroutine, "life", "lives", (owner.pid,), lambda: None)),
                )
            )
            coroutine.ended = True
            coroutine.act = None
            self._trace.append((actor.name, f"ended, {outcome}"))
            try:
                self.monitor.ended(actor, outcome)
            except Violation as violation:
                self._violation = violation

        return body

    def _run(
        self, coroutine: Coroutine, store: MemoryStore, disk: MemoryDisk, is_alive: Callable[[Owner], bool]
    ) -> str:
        setting = Setting(
            store,
            Places(PIPE),
            disk,
            staging_root=f"{PIPE}/.ubunye/staging" if self.base.scenario.shared_disk else None,
            owner=coroutine.owner,
            is_alive=is_alive,
            heartbeat=False,
        )
        if coroutine.actor.purpose != RELEASE:
            # The first id is the run's, which is asked for by name; a release makes its own.
            coroutine.ids = max(coroutine.ids, 1)
        return run_as(coroutine.actor, setting, disk)

    # ── one act ─────────────────────────────────────────────────────────────────────────────────

    def _stop_before(
        self, side: str, coroutine: Coroutine
    ) -> Callable[[str, tuple[Any, ...], Callable[[], Any]], Any]:
        def act(name: str, args: tuple[Any, ...], call: Callable[[], Any]) -> Any:
            if name == "delete":
                for key in list(args[0]):
                    self._stop(coroutine, side, name, (key,), functools.partial(self.store.delete, [key]))
                return None
            if name == "put":
                # The store asks ``check`` itself, just before the content gets its name.
                key, data, check = args
                check()
                args, call = (key, data), functools.partial(self.store.put, key, data)
            if name == "make_folders":
                return self._make_folders(coroutine, args[0].rstrip("/"))
            if name.startswith("sync_"):
                args = (tuple(args[0]),)
            elif side == "disk":
                args = tuple(a.rstrip("/") if isinstance(a, str) else a for a in args)
            return self._stop(coroutine, side, name, args, call)

        return act

    def _make_folders(self, coroutine: Coroutine, path: str) -> None:
        """One step for each folder that is missing, as the operating system does it."""
        while not self._stop(coroutine, "disk", "look", (path,), lambda: path in self.disk.nodes):
            missing = []
            at = path
            while at not in self.disk.nodes:
                missing.append(at)
                at = posixpath.dirname(at)
            for folder in reversed(missing):
                make = functools.partial(self.disk.make_folder, folder)
                with contextlib.suppress(FileExistsError, FileNotFoundError):
                    self._stop(coroutine, "disk", "make_folder", (folder,), make)

    def _stop(
        self, coroutine: Coroutine, side: str, name: str, args: tuple[Any, ...], call: Callable[[], Any]
    ) -> Any:
        if coroutine.dropped:
            raise GreenletExit
        assert not coroutine.inside, f"{name} inside another act: what is explored would not be every step"
        coroutine.act = Act(side, name, args)
        variant = self._main.switch()
        coroutine.inside = True
        try:
            if side == "life":
                result = self._lives(args[0]) and variant != "dead"
            else:
                result = self._carry_out(coroutine, variant, name, args, call)
        except OSError as error:
            self._note(coroutine, name, args, (type(error).__name__, error.errno), variant)
            raise
        finally:
            coroutine.inside = False
        seen = tuple(result) if isinstance(result, list) else result
        self._note(coroutine, name, args, seen, variant)
        if name in CHANGES:
            self._look(side, coroutine.actor, args)
        return result

    def _look(self, side: str, actor: Actor, args: tuple[Any, ...]) -> None:
        # Raised by the scheduler: inside a run the core would take it for a failure of its own.
        try:
            if side == "store":
                self.monitor.stored(args[0])
            else:
                self.monitor.moved(actor)
        except Violation as violation:
            self._violation = violation

    def _carry_out(
        self, coroutine: Coroutine, variant: str, name: str, args: tuple[Any, ...], call: Callable[[], Any]
    ) -> Any:
        if coroutine.outage and name in ("create", "read"):
            coroutine.outage -= 1
            raise OSError(errno.EIO, "no answer")
        if name != "create" or not variant:
            return call()
        fate, _, outage = variant.partition(", ")
        coroutine.outage = OUTAGES[outage]
        self.monitor.unanswered.add(coroutine.actor.run)
        key, data = args
        if fate == "made":
            call()
            self._look("store", coroutine.actor, args)
        elif fate == "made later":
            self._network[f"{coroutine.actor.name} {coroutine.ids}"] = (coroutine.actor, key, data)
        raise OSError(errno.EIO, "no answer")

    def _note(self, coroutine: Coroutine, name: str, args: tuple[Any, ...], seen: Any, variant: str) -> None:
        coroutine.seen = hash((coroutine.seen, name, seen, variant))
        self._trace.append((coroutine.actor.name, name, args, variant, seen))

    def _resume(self, coroutine: Coroutine, variant: str | None) -> None:
        assert coroutine.greenlet is not None
        self._running = coroutine
        coroutine.greenlet.switch(variant)

    def _lives(self, pid: int) -> bool:
        other = self._of_pid(pid)
        return other is not None and not other.killed and not other.ended

    def _of_pid(self, pid: int) -> Coroutine | None:
        return next((c for c in self._coroutines.values() if c.owner.pid == pid), None)

    def next_id(self) -> str:
        """The next id that the running coroutine makes: the first is its run's."""
        coroutine = self._running
        assert coroutine is not None
        coroutine.ids += 1
        return hex_id(coroutine.actor.name, coroutine.ids - 1)
