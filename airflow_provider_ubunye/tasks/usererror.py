"""A fault of the user's own code, said as the user needs it: one line, and the user's own frames."""

from __future__ import annotations

import difflib
import os
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from airflow_provider_ubunye.core.errors import RunStopped, TransformFailed
from airflow_provider_ubunye.tasks.folder import TaskFolder
from airflow_provider_ubunye.tasks.secrets import Redactor

_LONGEST_MESSAGE = 500
_MOST_COLUMNS = 20
# Of endless recursion, where it came in and where it ended.
_FIRST_FRAMES, _LAST_FRAMES = 5, 10


@contextmanager
def user_code(
    folder: TaskFolder, redactor: Redactor, sources: Mapping[str, Any] | None = None
) -> Iterator[None]:
    """Whatever the user's code raises in here becomes a :class:`TransformFailed`, with the cause chained.

    ``SystemExit`` too; ``KeyboardInterrupt``, and what a scheduler raises beside ``Exception``, pass. So does
    a :class:`RunStopped`: the run was told to stop while the user's code worked.

    :param sources: the frames that the code works on: a ``KeyError`` for what none of them has says what they
        have.
    """
    try:
        yield
    except RunStopped:
        raise
    except (Exception, SystemExit) as error:
        frames = [redactor.mask(line) for line in own_frames(error, folder)]
        hint = _missing(error, sources or {})
        raise TransformFailed(
            redactor.mask(_said(error)), frames=frames, hint=hint and redactor.mask(hint)
        ) from error


def _missing(error: BaseException, sources: Mapping[str, Any]) -> str | None:
    """What inputs there are, with their columns, for a key that is none of them."""
    if not isinstance(error, KeyError) or not sources:
        return None
    columns = {name: _columns(frame) for name, frame in sources.items()}
    known = {*columns, *(column for found in columns.values() for column in found)}
    key = error.args[0] if error.args else None
    if not isinstance(key, str) or key in known:
        return None
    near = difflib.get_close_matches(key, sorted(known), n=1)
    meant = f"did you mean {near[0]!r}? " if near else ""
    inputs = "; ".join(f"{name} ({_listed(found)})" for name, found in columns.items())
    return f"{meant}the inputs and their columns are: {inputs}"


def _columns(frame: Any) -> list[str]:
    """The names of a frame's columns, none where it does not say. Nothing is read or computed for it."""
    try:
        names = frame.column_names if hasattr(frame, "column_names") else frame.columns
        return [str(name) for name in names]
    except Exception:  # noqa: BLE001 - a frame of the user's own format
        return []


def _listed(names: list[str]) -> str:
    count = len(names) if len(names) <= _MOST_COLUMNS + 1 else _MOST_COLUMNS
    more = f" and {len(names) - count} more" if len(names) > count else ""
    return ", ".join(names[:count]) + more if names else "no columns"


def _said(error: BaseException) -> str:
    """``ValueError: its message``, on one line and not without end."""
    try:
        message = " ".join(str(error).split())
    except Exception:  # noqa: BLE001 - the user's own __str__
        message = "(its message can't be shown)"
    if len(message) > _LONGEST_MESSAGE:
        message = message[:_LONGEST_MESSAGE] + " …"
    if isinstance(error, SystemExit):
        return f"SystemExit: the task's code ended the program (status {message or '0'})"
    return f"{type(error).__name__}: {message}" if message else type(error).__name__


def own_frames(error: BaseException, folder: TaskFolder) -> list[str]:
    """The lines of the traceback that lie in the task's folder or in code shared below the use case folder.

    Written as Python writes them: file, line and function, then the line of source.
    """
    found = [
        (f'  File "{frame.filename}", line {frame.lineno}, in {frame.name}', frame.line)
        for frame in traceback.extract_tb(error.__traceback__)
        if _is_own(frame.filename, folder)
    ]
    if isinstance(error, SyntaxError) and error.filename and _is_own(error.filename, folder):
        # A file that does not compile has no frame.
        found.append((f'  File "{error.filename}", line {error.lineno}', (error.text or "").strip()))
    left_out = len(found) - _FIRST_FRAMES - _LAST_FRAMES
    if left_out > 0:
        more = (f"  … {left_out} more …", None)
        found = [*found[:_FIRST_FRAMES], more, *found[-_LAST_FRAMES:]]
    return [text for place, source in found for text in (place, f"    {source}" if source else "") if text]


def _is_own(filename: str, folder: TaskFolder) -> bool:
    if _lies_in(filename, folder.path):
        return True
    # An environment may stand below the use case folder.
    installed = {"site-packages", "dist-packages"} & set(Path(filename).parts)
    return not installed and _lies_in(filename, folder.usecase_dir)


def _lies_in(filename: str, folder: Path) -> bool:
    return filename.startswith((f"{folder}{os.sep}", f"{os.path.realpath(folder)}{os.sep}"))
