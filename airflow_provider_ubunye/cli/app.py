"""The program: its commands, and how whatever happens in them becomes lines and an exit code."""

from __future__ import annotations

from collections.abc import Sequence

import click

from airflow_provider_ubunye import __version__
from airflow_provider_ubunye.cli.lazy import SETTINGS, Group
from airflow_provider_ubunye.cli.output import Out, masked
from airflow_provider_ubunye.core.errors import RunFailed, RunInterrupted, UbunyeError, UsageError

_HERE = "airflow_provider_ubunye.cli"

COMMANDS = {
    "init": (f"{_HERE}.init", "Write a new task that runs at once."),
    "run": (f"{_HERE}.run", "Run tasks for one batch; safe to run again."),
    "plan": (f"{_HERE}.plan", "Say what a run would do now, and write nothing."),
    "validate": (f"{_HERE}.validate", "Check the config and code of tasks."),
    "leases": (f"{_HERE}.leases", "Who holds which batch; release one by hand."),
}

EPILOG = """\b
Environment:
  UBUNYE_STATE           where the state of batches is kept, unless --state says so
  UBUNYE_TAKEOVER_AFTER  how long without a heartbeat until a run elsewhere counts as dead (15m)
  UBUNYE_RUN_LEASE=off   run without any protection

\b
Exit codes:
  0 done, or found done under --resume     3 failed; safe to run again
  1 refused, nothing was written           4 lost its lease, or was interrupted
  2 wrong usage or configuration           5 a person must look"""

program = Group(
    "ubunye",
    late=COMMANDS,
    context_settings=SETTINGS,
    help="Batches of data that are safe to run again: refused when done, replaced on purpose, exact after a kill.",
    epilog=EPILOG,
)
program = click.version_option(__version__, "--version", prog_name="ubunye")(program)


def run(args: Sequence[str], *, last: bool = False) -> int:
    """Carry out one call.

    :param args: what stands behind ``ubunye``.
    :param last: whether the process ends with this call.
    :returns: the exit code. Nothing is raised, whatever happens; a traceback is shown with ``--debug`` only.
    """
    options = [*args[: args.index("--")]] if "--" in args else [*args]
    out = Out(json="--json" in options, debug="--debug" in options, last=last)
    try:
        code = program.main([*args], prog_name="ubunye", standalone_mode=False, obj=out)
        code = code if isinstance(code, int) else 0
    except SystemExit:
        # Click's answer when the reader of its help had gone.
        code = 0
    except BaseException as raised:  # noqa: BLE001 - the last place where anything can be said in one line
        error = as_error(raised)
        out.error(error)
        if out.json and not out.told:
            out.document({"status": status_of(error.exit_code), **error_document(error)})
        code = error.exit_code
    if out.undelivered is not None and code == 0 and "run" not in options[:1]:
        out.error(RunFailed(f"the result could not be written: {out.undelivered}"))
        code = 3
    return code


def as_error(raised: BaseException) -> UbunyeError:
    """Whatever was raised, as an error that is said in one line."""
    if isinstance(raised, UbunyeError):
        return raised
    error: UbunyeError
    if isinstance(raised, click.ClickException):
        context = getattr(raised, "ctx", None)
        said = raised.format_message()
        error = UsageError(said, hint=f"{context.command_path if context else 'ubunye'} --help")
    elif isinstance(raised, KeyboardInterrupt | click.Abort):
        error = RunInterrupted("interrupted")
    elif isinstance(raised, MemoryError):
        error = RunFailed("there is not enough memory", hint="running it again is safe")
    elif isinstance(raised, OSError):
        name = f": {raised.filename}" if raised.filename else ""
        error = RunFailed(f"{raised.strerror or raised}{name}", hint="running it again is safe")
    else:
        said = str(raised) or "no message"
        error = RunFailed(
            f"an unexpected {type(raised).__name__}: {said}", hint="--debug shows where; please report it"
        )
    error.__cause__ = raised
    return error


_STATUS = {0: "ok", 1: "refused", 2: "invalid", 3: "failed", 4: "stopped", 5: "needs_person"}


def status_of(code: int) -> str:
    """The status word of an exit code."""
    return _STATUS[code]


def error_document(error: UbunyeError) -> dict[str, object]:
    """What a JSON document says of an error."""
    where, hint = (None if text is None else masked(text) for text in (error.where, error.hint))
    return {
        "reason": error.reason,
        "exit_code": error.exit_code,
        "error": {"what": masked(error.what), "where": where, "hint": hint},
    }
