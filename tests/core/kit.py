"""A use case folder with one task in it, driven through the core without an engine: rows are lines of text."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from airflow_provider_ubunye.core.batch import Batch
from airflow_provider_ubunye.core.landing import Staging
from airflow_provider_ubunye.core.outcome import Outcome
from airflow_provider_ubunye.core.owner import Owner, this_process
from airflow_provider_ubunye.core.places import Places
from airflow_provider_ubunye.core.records import FileRecords
from airflow_provider_ubunye.core.request import RUN, Request, Setting
from airflow_provider_ubunye.core.run import Run, open_run
from airflow_provider_ubunye.core.store import FileStore, open_store
from airflow_provider_ubunye.core.testing import Killed, KillPoints

TASK = "shop/daily/load_orders"
DAY = "2026-11-01"
OLD = 1_700_000_000
"""An mtime years ago."""

Rows = Mapping[str, str]
"""Folder inside the output to the text of the one part file in it."""


def dead_owner() -> Owner:
    """A process of this place that is gone: pid 1 with another start time."""
    return dataclasses.replace(this_process(), pid=1, started=7.0)


def elsewhere() -> Owner:
    """A process on another machine, with a pid that is alive here."""
    return dataclasses.replace(this_process(), host="other-machine")


def write(staging: Staging | None, rows: Rows, suffix: str = ".csv") -> None:
    assert staging is not None
    for folder, text in rows.items():
        inside = staging.folder / folder
        inside.mkdir(parents=True, exist_ok=True)
        (inside / staging.part_name(0, suffix)).write_text(text, encoding="utf-8")


class Shop:
    """The use case folder ``root`` and what may be done in it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        root.mkdir(parents=True, exist_ok=True)
        self.state = root / ".ubunye"

    def store(self) -> FileStore:
        store = open_store(str(self.state))
        assert isinstance(store, FileStore)
        return store

    def setting(self, **changes: Any) -> Setting:
        values: dict[str, Any] = {
            "store": changes.pop("store", None) or self.store(),
            "places": Places(self.root),
            "staging_root": str(self.state / "staging"),
            "records": FileRecords(self.state / "lineage"),
        }
        return Setting(**{**values, **changes})

    def batch(self, dt: str | None = DAY, **how: Any) -> Batch:
        named_by = how.pop("named_by", None)
        return Batch.of(how.pop("task", TASK), {"dt": dt, **how}, named_by=named_by)

    def path(self, out: str = "orders") -> Path:
        return self.root / "lake" / out

    def request(self, *, mode: str = "append", out: str = "orders", **how: Any) -> Request:
        values: dict[str, Any] = {
            "batch": how.pop("batch", None) or self.batch(),
            "outputs": {out: (mode, str(self.path(out)), "files")},
            "appends": mode == "append",
        }
        return Request(**{**values, **how})

    def open(self, setting: Setting | None = None, **how: Any) -> Run:
        run = open_run(setting or self.setting(), self.request(**how))
        assert run is not None
        return run

    def run(
        self,
        rows: Rows | None = None,
        *,
        setting: Setting | None = None,
        mode: str = "append",
        out: str = "orders",
        meanwhile: Callable[[Run], None] | None = None,
        purpose: str = RUN,
        **how: Any,
    ) -> Outcome | None:
        """One whole run of the batch with one output.

        :param meanwhile: called when the rows are staged, before the run commits.
        """
        request = self.request(mode=mode, out=out, purpose=purpose, **how)
        run = open_run(setting or self.setting(), request)
        if run is None:
            return None
        with run:
            staging = run.output(out, mode, str(self.path(out)))
            if staging is not None:
                write(staging, {"": "1"} if rows is None else rows)
            if meanwhile is not None:
                meanwhile(run)
        return run.outcome

    def die(self, at: int | str, rows: Rows | None = None, **how: Any) -> str:
        """A run that dies before its n-th changing act, or before the first act that begins with a text."""
        points = KillPoints(at if isinstance(at, int) else None)
        if isinstance(at, str):
            points = _KillAt(at)
        setting = self.setting(heartbeat=False, owner=how.pop("owner", None) or this_process())
        setting = dataclasses.replace(
            setting, store=points.around(setting.store), disk=points.around(setting.disk)
        )
        request = self.request(**{k: v for k, v in how.items() if k != "meanwhile"})
        try:
            run = open_run(setting, request)
            assert run is not None
            with run:
                name, (mode, path, _) = next(iter(request.outputs.items()))
                write(run.output(name, mode, path), {"": "dead"} if rows is None else rows)
        except Killed:
            return request.run
        raise AssertionError(f"the run did not die: {points.seen}")

    def files(self, out: str = "orders") -> list[str]:
        """The data files that readers see, relative to the output."""
        return sorted(_visible(self.path(out), self.path(out)))

    def rows(self, out: str = "orders") -> list[str]:
        """The content of the data files, sorted."""
        return sorted((self.path(out) / name).read_text(encoding="utf-8") for name in self.files(out))

    def debris(self) -> list[str]:
        """Staging folders, temporary files and empty folders that no run should leave."""
        found = []
        for folder, folders, files in os.walk(self.root):
            at = Path(folder).relative_to(self.root).as_posix()
            found += [f"{at}/{f}" for f in files if ".tmp" in f or f.startswith("self-test-")]
            found += [f"{at}/{f}" for f in folders if f.startswith("_ubunye-")]
        return sorted(found)

    def log_files(self, batch: Batch | None = None) -> list[Path]:
        batch = batch or self.batch()
        return sorted((self.state / "leases" / batch.task / batch.key).iterdir())

    def note(self, batch: Batch | None = None) -> Path:
        batch = batch or self.batch()
        return self.state / "leases" / batch.task / f"{batch.key}.finished.json"


class _KillAt(KillPoints):
    """Dies before the first act whose text begins with ``start``."""

    def __init__(self, start: str) -> None:
        super().__init__(None)
        self._start = start

    def _point(self, name: str, args: tuple[Any, ...], act: Callable[[], Any]) -> Any:
        if self.at is None and f"{name} {args[0] if args else ''}".startswith(self._start):
            self.at = len(self.seen) + 1
        return super()._point(name, args, act)


def _visible(folder: Path, root: Path) -> Iterator[str]:
    if not folder.is_dir():
        return
    for item in folder.iterdir():
        if item.name.startswith((".", "_")) and "=" not in item.name:
            continue
        if item.is_dir():
            yield from _visible(item, root)
        else:
            yield item.relative_to(root).as_posix()
