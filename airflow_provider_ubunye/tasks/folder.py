"""Where a task is: ``<usecase_dir>/<usecase>/<package>/<task>/``."""

from __future__ import annotations

import difflib
import os
from dataclasses import dataclass, field
from pathlib import Path

from airflow_provider_ubunye.core.batch import check_name
from airflow_provider_ubunye.core.errors import UsageError

CONFIG_FILE = "config.yaml"
TRANSFORMATIONS_FILE = "transformations.py"

_MOST_NAMES_SHOWN = 5


@dataclass(frozen=True)
class TaskFolder:
    """One task's folder. It need not exist: :meth:`require` says whether it does.

    :param usecase_dir: the folder of all use cases; made absolute without following symlinks.
    :param usecase: name of the use case, one path segment, as are ``package`` and ``task``.
    :raises UsageError: a name that is not one plain path segment. Nothing was opened by then.
    """

    usecase_dir: Path
    usecase: str
    package: str
    task: str
    path: Path = field(init=False)

    def __post_init__(self) -> None:
        check_name("use case", self.usecase)
        check_name("package", self.package)
        check_name("task", self.task)
        usecase_dir = Path(os.path.abspath(self.usecase_dir))
        object.__setattr__(self, "usecase_dir", usecase_dir)
        object.__setattr__(self, "path", usecase_dir / self.usecase / self.package / self.task)

    @property
    def name(self) -> str:
        """``usecase/package/task``."""
        return f"{self.usecase}/{self.package}/{self.task}"

    @property
    def config_path(self) -> Path:
        """The task's ``config.yaml``."""
        return self.path / CONFIG_FILE

    @property
    def transformations_path(self) -> Path:
        """The task's ``transformations.py``."""
        return self.path / TRANSFORMATIONS_FILE

    def require(self) -> TaskFolder:
        """Check that the folder exists and return it.

        :raises UsageError: the first level that is missing, with the names near to it.
        """
        parent = _require_usecase_dir(self.usecase_dir)
        for what, name in (("use case", self.usecase), ("package", self.package), ("task", self.task)):
            parent = _require_level(parent, what, name)
        return self


def list_tasks(usecase_dir: Path, usecase: str, package: str) -> list[TaskFolder]:
    """Every task of a package, by name: the folders that hold a ``config.yaml``.

    :raises UsageError: a bad name, a missing folder, a package without tasks, or a task folder whose name
        could not be run: it is named, not left out.
    """
    check_name("use case", usecase)
    check_name("package", package)
    parent = _require_usecase_dir(Path(os.path.abspath(usecase_dir)))
    for what, name in (("use case", usecase), ("package", package)):
        parent = _require_level(parent, what, name)
    names = [name for name in _folders(parent) if os.path.lexists(parent / name / CONFIG_FILE)]
    if not names:
        raise UsageError(
            f"the package {usecase}/{package} has no task with a {CONFIG_FILE}", where=str(parent)
        )
    return [TaskFolder(usecase_dir, usecase, package, name) for name in names]


def _require_usecase_dir(usecase_dir: Path) -> Path:
    if not _is_folder(usecase_dir, "use case folder"):
        raise UsageError(
            f"the use case folder {str(usecase_dir)!r} does not exist", hint="name it with -d <folder>"
        )
    return usecase_dir


def _require_level(parent: Path, what: str, name: str) -> Path:
    folder = parent / name
    if not _is_folder(folder, what):
        near = near_names(name, _folders(parent))
        raise UsageError(f"there is no {what} {name!r}{near}", where=str(parent))
    return folder


def _is_folder(path: Path, what: str) -> bool:
    try:
        return path.is_dir()
    except OSError as error:
        # A path too long for the file system, or a folder that may not be entered.
        raise UsageError(f"the {what} {path.name!r} can't be opened: {error.strerror}") from error


def _folders(parent: Path) -> list[str]:
    """Names of the visible folders in ``parent``, sorted; none where it can't be listed."""
    try:
        with os.scandir(parent) as entries:
            return sorted(e.name for e in entries if e.is_dir() and not e.name.startswith((".", "__")))
    except OSError:
        return []


def near_names(name: str, known: list[str]) -> str:
    """The end of a sentence about an unknown name: ``; did you mean 'x'?``, or what there is, or nothing.

    Long lists are cut, and names are shown with their control characters escaped.
    """
    near = difflib.get_close_matches(name.lower(), [k.lower() for k in known], n=3, cutoff=0.6)
    close = [k for k in known if k.lower() in near]
    if close:
        return f"; did you mean {' or '.join(repr(k) for k in close)}?"
    if not known:
        return ""
    # "and 1 more" takes as much room as the name itself.
    count = len(known) if len(known) <= _MOST_NAMES_SHOWN + 1 else _MOST_NAMES_SHOWN
    shown = ", ".join(repr(k) for k in known[:count])
    more = f" and {len(known) - count} more" if len(known) > count else ""
    return f"; there is {shown}{more}"
