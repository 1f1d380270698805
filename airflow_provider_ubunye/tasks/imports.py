"""Importing a task's own files, so that two tasks with files of the same name never mix.

A task's module has a name of its own; what it imports from beside itself stands in ``sys.modules`` only while
that task loads or works. Both ``sys.path`` and ``sys.modules`` belong to the whole process, so one task's code
works at a time: a second thread waits. A task started from within another one's code, in the same thread,
works; the outer one's files are out of sight meanwhile.

Not promised: a thread that a transform leaves running may find another task's sibling, or none, later. A
transform must not wait for another thread that loads or runs a task.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import linecache
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType

_ONE_AT_A_TIME = threading.RLock()
_OWN_PREFIX = "_ubunye_task_"


class _SourceLoader(SourceFileLoader):
    """Compiles the file anew each time: a cached one is taken for current when size and second agree."""

    def get_code(self, fullname: str) -> CodeType:  # noqa: ARG002 - the base's signature
        code: CodeType = self.source_to_code(self.get_data(self.path), self.path)
        return code


def import_file(path: Path) -> ModuleType:
    """Import one file under a name that no other file has. Whatever its code raises passes.

    The module stays in ``sys.modules``: dataclasses and pickle look it up by name. A later import of the same
    file takes its place.
    """
    name = _OWN_PREFIX + hashlib.sha256(os.fsencode(path)).hexdigest()[:16]
    # A traceback must show the file as it is now.
    linecache.checkcache(str(path))
    loader = _SourceLoader(name, str(path))
    spec = importlib.util.spec_from_loader(name, loader)
    assert spec is not None  # only a loader without get_filename would give none
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        loader.exec_module(module)
    except BaseException:
        sys.modules.pop(name, None)
        raise
    return module


class Siblings:
    """The modules that a task imports from its own folder.

    :param folder: the task's folder, absolute.
    """

    _active: list[Siblings] = []  # noqa: RUF012 - one stack for the process, under the lock

    def __init__(self, folder: Path) -> None:
        self.place = str(folder)
        self._folders = (self.place, os.path.realpath(folder))
        self._modules: dict[str, ModuleType] = {}
        self._foreign: set[str] = set()

    @contextmanager
    def importable(self) -> Iterator[None]:
        """The task's folder comes first on ``sys.path``; path and modules are as before afterwards."""
        with _ONE_AT_A_TIME:
            path = list(sys.path)
            outer = self._active[-1] if self._active else None
            if outer:
                outer.leave()
                sys.path[:] = [place for place in path if place != outer.place]
            # What has the name of one of our files steps aside.
            hidden = {name: sys.modules.pop(name) for name in self._shadowed()}
            sys.path.insert(0, self.place)
            importlib.invalidate_caches()
            self.enter()
            self._active.append(self)
            try:
                yield
            finally:
                self._active.pop()
                self.leave()
                sys.modules.update(hidden)
                sys.path[:] = path
                if outer:
                    outer.enter()

    def enter(self) -> None:
        """Put this task's modules into ``sys.modules``."""
        self._foreign = set(sys.modules)
        sys.modules.update(self._modules)

    def leave(self) -> None:
        """Take this task's modules out of ``sys.modules`` and keep them for its next call."""
        came = [(name, module) for name, module in sys.modules.items() if name not in self._foreign]
        self._modules = {name: module for name, module in came if self._is_own(name, module)}
        for name in self._modules:
            del sys.modules[name]

    def _shadowed(self) -> list[str]:
        """Loaded modules in whose stead a file of the folder is to be imported."""
        tops = set(self._modules)
        spaces = set()
        for entry in _entries(self.place):
            if entry.name.endswith(".py"):
                tops.add(entry.name.removesuffix(".py"))
            elif os.path.lexists(os.path.join(entry.path, "__init__.py")):
                tops.add(entry.name)
            elif entry.is_dir():
                spaces.add(entry.name)
        # A file beside the task never replaces the standard library, nor this package.
        tops -= sys.stdlib_module_names | {__name__.partition(".")[0]}
        return [
            name
            for name, module in sys.modules.items()
            if (top := name.partition(".")[0]) in tops
            # A folder without __init__.py gives way to any real package, as everywhere in Python.
            or (top in spaces and not _attributes(sys.modules.get(top, module)).get("__file__"))
        ]

    def _is_own(self, name: str, module: object) -> bool:
        if name.startswith(_OWN_PREFIX):
            return False
        attributes = _attributes(module)
        places = [attributes.get("__file__"), *_package_path(attributes.get("__path__"))]
        return any(
            isinstance(place, str) and place.startswith(tuple(f + os.sep for f in self._folders))
            for place in places
        )


def _entries(folder: str) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return list(entries)
    except OSError:
        # The folder went away while the task works: nothing more can be imported from it.
        return []


def _attributes(module: object) -> dict[str, object]:
    """A module's attributes, without waking one that loads itself when it is looked at."""
    try:
        attributes: dict[str, object] = object.__getattribute__(module, "__dict__")
    except AttributeError:
        return {}
    return attributes


def _package_path(path: object) -> list[object]:
    # A namespace package's path is no list, but a view that looks again at sys.path.
    try:
        return list(path) if path is not None else []  # type: ignore[call-overload]
    except (TypeError, KeyError):
        return []
