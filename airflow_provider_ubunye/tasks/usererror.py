"""A fault of the user's own code, said as the user needs it: one line, and the user's own frames."""

from __future__ import annotations

import os
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from airflow_provider_ubunye.core.errors import RunStopped, TransformFailed
from airflow_provider_ubunye.tasks.folder import TaskFolder
from airflow_provider_ubunye.tasks.secrets import Redactor

_LONGEST_MESSAGE = 500
# Of endless recursion, where it came in and where it ended.
_FIRST_FRAMES, _LAST_FRAMES = 5, 10


@contextmanager
def user_code(folder: TaskFolder, redactor: Redactor) -> Iterator[None]:
    """Whatever the user's code raises in here becomes a :class:`TransformFailed`, with the cause chained.

    ``SystemExit`` too; ``KeyboardInterrupt``, and what a scheduler raises beside ``Exception``, pass. So does
    a :class:`RunStopped`: the run was told to stop while the user's code worked.
    """
    try:
        yield
    except RunStopped:
        raise
    except (Exception, SystemExit) as error:
        frames = [redactor.mask(line) for line in own_frames(error, folder)]
        raise TransformFailed(redactor.mask(_said(error)), frames=frames) from error


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
