"""The options that several commands share, and the types of their values."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import click

from airflow_provider_ubunye.cli.lazy import Once
from airflow_provider_ubunye.core.errors import UsageError
from airflow_provider_ubunye.core.timespan import span

F = TypeVar("F", bound=Callable[..., Any])

# Compiled when first used: most calls do not need it.
_NAME = r"[A-Za-z_][A-Za-z0-9_]*\Z"
# Names that templates have for something else.
_RESERVED = ("env", "task_dir", "usecase_dir")


def seconds(given: Mapping[str, Any], name: str) -> float | None:
    """A time span, ``10m``, ``90s``, ``2h``, ``1h30m`` or a bare number of seconds, in seconds.

    :param name: the option's name in ``given``; None there gives None.
    :raises UsageError: it is no time span, or longer than a year.
    """
    text: str | None = given[name]
    if text is None:
        return None
    return span("--" + name.replace("_", "-"), text)


def variables(given: Mapping[str, Any]) -> dict[str, object]:
    """The variables of ``-dt``, ``-dtf``, ``-m`` and every ``--var``.

    :raises UsageError: a ``--var`` is not written NAME=VALUE, has a name that is taken, or is given twice
        with different values.
    """
    found: dict[str, object] = {n: given[n] for n in ("dt", "dtf", "mode") if given.get(n) is not None}
    for text in given["var"]:
        name, equals, value = text.partition("=")
        if not equals or not re.match(_NAME, name):
            raise UsageError(
                f"--var {text[:60]!r} is not written NAME=VALUE", hint="for example --var hour=13"
            )
        if name == "mode":
            raise UsageError("the mode is given with -m, not with --var")
        if name in _RESERVED:
            raise UsageError(f"--var {name}: that name has a meaning of its own; choose another")
        if found.get(name, value) != value:
            raise UsageError(f"{name} is given twice: {str(found[name])[:40]!r} and {value[:40]!r}")
        found[name] = value
    return found


def place_options(*, required: bool) -> Callable[[F], F]:
    """``-d`` and ``--state``.

    :param required: whether ``-d`` must be given.
    """

    def add(command: F) -> F:
        command = click.option(
            "--state",
            cls=Once,
            metavar="FOLDER",
            help="Where the state of batches is kept. Else UBUNYE_STATE, else .ubunye in the -d folder.",
        )(command)
        return click.option(
            "-d",
            "--usecase-dir",
            cls=Once,
            metavar="FOLDER",
            required=required,
            help="The folder of all use cases.",
        )(command)

    return add


def task_options(command: F) -> F:
    """``-u``, ``-p``, ``-t``, ``--all``."""
    for option in (
        click.option("--all", "every", is_flag=True, help="Every task of the package, by name."),
        click.option(
            "-t",
            "--task",
            "--task-list",
            "tasks",
            multiple=True,
            metavar="TASK",
            help="A task; give several to take them in this order.",
        ),
        click.option("-p", "--package", cls=Once, required=True, metavar="PACKAGE", help="The package."),
        click.option("-u", "--usecase", cls=Once, required=True, metavar="USECASE", help="The use case."),
    ):
        command = option(command)
    return command


def batch_options(command: F) -> F:
    """``-dt``, ``-dtf``, ``-m``, ``--var``."""
    for option in (
        click.option(
            "--var",
            "var",
            multiple=True,
            metavar="NAME=VALUE",
            help="A variable more; part of the batch. May be repeated.",
        ),
        click.option("-m", "--mode", cls=Once, metavar="MODE", help="DEV, PROD, …; DEV by default."),
        click.option(
            "-dtf",
            "--data-timestamp-format",
            "dtf",
            cls=Once,
            metavar="FORMAT",
            help="How the task is to read -dt; part of the batch.",
        ),
        click.option(
            "-dt", "--data-timestamp", "dt", cls=Once, metavar="DATE", help="The batch's date: 2026-11-01."
        ),
    ):
        command = option(command)
    return command


def output_options(command: F) -> F:
    """``--json`` and ``--debug``. Their values are taken from the whole call before it is parsed."""
    for option in (
        click.option(
            "--debug", is_flag=True, expose_value=False, help="Show the traceback of an error as well."
        ),
        click.option(
            "--json",
            is_flag=True,
            expose_value=False,
            help="One JSON document on stdout; lines go to stderr.",
        ),
    ):
        command = option(command)
    return command
