"""Where outputs are, and which paths may be acted on (contract, "Safety of the machine it runs on").

Nothing read from a log, note or record is a path to act on until it is shown here to be a plain relative
name inside the recorded output.
"""

from __future__ import annotations

import os
import posixpath
import re
from collections.abc import Iterable

from airflow_provider_ubunye.core.errors import NotTakenBack, UsageError
from airflow_provider_ubunye.core.state import Place

RUN_LENGTH = 32
STAGING_PREFIX = "_ubunye-"
# Compiled when first used: looking at leases needs none of them.
_RUN = r"(?<![0-9a-f])([0-9a-f]{32})(?![0-9a-f])"
_SPARK_PART = r"part-(\d+)-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}(.*)\Z"


class Places:
    """Turns paths into places and back.

    :param usecase_dir: the use case folder; outputs beneath it are recorded relative to it, so that another
        mount point finds them. None where there is none.
    :param home: tells this use case folder from others that share the state; None where none can.
    """

    def __init__(self, usecase_dir: str | os.PathLike[str] | None = None, home: str | None = None) -> None:
        self.home = home
        self.usecase_dir = None if usecase_dir is None else os.path.realpath(usecase_dir)

    def place(self, path: str | os.PathLike[str]) -> Place:
        """The place of an output.

        :raises UsageError: an empty path, one with a NUL, or the root of a file system.
        """
        text = os.fspath(path)
        if not text or "\0" in text:
            raise UsageError(f"the output path {text!r} is not a path")
        full = os.path.realpath(os.path.abspath(text))
        if os.path.dirname(full) == full:
            raise UsageError(f"the output path {text!r} is the root of a file system")
        if self.usecase_dir is not None:
            inside = os.path.relpath(full, self.usecase_dir) if _same_drive(full, self.usecase_dir) else ".."
            if inside != os.curdir and inside.split(os.sep)[0] != os.pardir:
                return Place("usecase", inside.replace(os.sep, "/"), self.home)
        return Place("root", full.replace(os.sep, "/"))

    def path(self, place: Place) -> str:
        """The path of a recorded place.

        :raises NotTakenBack: it is not a clean path, or it needs a use case folder that is not given.
        """
        if place.base == "usecase":
            if self.usecase_dir is None:
                raise NotTakenBack(
                    f"the output {place.path!r} is recorded below the use case folder, and none is given",
                    hint="run it from where the use case folder is known",
                )
            if place.home is not None and self.home is not None and place.home != self.home:
                raise NotTakenBack(
                    f"the output {place.path!r} was written below another use case folder than this one, which "
                    "shares its state",
                    hint="run the batch from the use case folder that wrote it; give outputs absolute paths "
                    "where several share a state",
                )
            if not is_plain(place.path):
                raise NotTakenBack(f"the recorded output {place.path!r} leaves the use case folder")
            return posixpath.join(self.usecase_dir.replace(os.sep, "/"), place.path)
        clean = os.path.isabs(place.path) and posixpath.normpath(place.path) == place.path
        if not clean or "\0" in place.path or os.path.dirname(place.path) == place.path:
            raise NotTakenBack(f"the recorded output {place.path!r} is not a clean absolute path")
        return place.path


def refuse_shared_ground(path: str, mode: str, replaces: bool, roots: Iterable[str]) -> None:
    """Refuse an output where state or run records are, or whose overwrite would take them along.

    :param replaces: whether the mode replaces what its folder holds. What lies in a hidden folder it leaves.
    :raises UsageError: naming both.
    """
    for root in roots:
        if path == root or path.startswith(root + "/"):
            raise UsageError(f"the output {path} lies in {root}, which holds state or run records")
        inside = root.removeprefix(path + "/")
        if replaces and inside != root and not any(hidden(part, True) for part in inside.split("/")):
            raise UsageError(f"the output {path} holds {root}, and mode {mode} would remove what is there")


def _same_drive(a: str, b: str) -> bool:
    return os.path.splitdrive(a)[0].lower() == os.path.splitdrive(b)[0].lower()


def is_plain(name: str) -> bool:
    """Whether a recorded name is relative, goes nowhere but down, and has no odd segment."""
    if not name or "\0" in name or (os.sep == "\\" and "\\" in name):
        return False
    return all(part not in ("", ".", "..") for part in name.split("/"))


def staging_name(run: str) -> str:
    """The staging folder's name: ``_ubunye-`` and the first 12 hex digits of the run's id."""
    return STAGING_PREFIX + run[:12]


def run_in(name: str) -> str | None:
    """The id of the run that a file's name carries, None when it carries none."""
    found = re.search(_RUN, posixpath.basename(name))
    return found.group(1) if found else None


def landed_name(staged: str, run: str, tag: str = "") -> str:
    """The name under which a staged file lands: its own when it carries the run's id, else one that does.

    Spark's ``part-00007-<uuid>.c000.snappy.parquet`` becomes ``part-00007-<run>.c000.snappy.parquet``.
    """
    folder, name = posixpath.split(staged)
    if run_in(name) == run:
        return staged
    part = re.match(_SPARK_PART, name)
    name = f"part-{part.group(1)}-{run}{tag}{part.group(2)}" if part else f"part-{run}{tag}-{name}"
    return posixpath.join(folder, name)


def folders_of(names: Iterable[str]) -> list[str]:
    """Every folder on the way to some relative names, the outermost first."""
    found: set[str] = set()
    for name in names:
        at = posixpath.dirname(name)
        while at and at not in found:
            found.add(at)
            at = posixpath.dirname(at)
    return sorted(found, key=lambda f: (f.count("/"), f))


def is_run_id(text: str) -> bool:
    """Whether a text is a run id: 32 lower-case hex digits."""
    return re.fullmatch(r"[0-9a-f]{32}", text) is not None


def hidden(name: str, folder: bool) -> bool:
    """Whether readers skip a name: ``_…`` or ``.…``, unless it is a partition folder (``_c=1``)."""
    return name.startswith((".", "_")) and not (folder and "=" in name)
