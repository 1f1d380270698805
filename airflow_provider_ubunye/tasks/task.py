"""What a task's own code is given, and the class it may be written as."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any


@dataclass(frozen=True)
class TaskContext:
    """One run, as the user's transform sees it.

    :param task: ``usecase/package/task``.
    :param dt: the batch's date as text, or None.
    :param dtf: the format in which the task is to read ``dt``, or None.
    :param mode: ``DEV``, ``PROD``, …, in upper case.
    :param variables: every variable of the run as text, ``dt``, ``dtf`` and ``mode`` included.
    :param run: id of the run.
    :param params: ``CONFIG.transform.params``, rendered, secrets fetched.
    :param usecase_dir: the folder of all use cases.
    :param task_dir: the task's own folder.
    """

    task: str
    dt: str | None = None
    dtf: str | None = None
    mode: str = "DEV"
    variables: Mapping[str, str] = field(default_factory=dict)
    run: str = ""
    params: Mapping[str, Any] = field(default_factory=dict)
    usecase_dir: Path = Path()
    task_dir: Path = Path()

    def __post_init__(self) -> None:
        # Copies that can't be written to: a transform must not change what the run's record will say.
        object.__setattr__(self, "variables", MappingProxyType(dict(self.variables)))
        object.__setattr__(self, "params", MappingProxyType(dict(self.params)))


class Task(ABC):
    """Base of a task written as a class. ``transformations.py`` holds one subclass, made without arguments.

    The run's context is ``self.context`` while :meth:`transform` works; a method that takes a second
    parameter ``context`` is given it there as well. One object is made for each run.
    """

    context: TaskContext

    @abstractmethod
    def transform(self, sources: dict[str, Any]) -> dict[str, Any]:
        """Make the outputs from the inputs.

        :param sources: a frame by the name of each input.
        :returns: a frame by the name of each output of the config, no more and no fewer.
        """
