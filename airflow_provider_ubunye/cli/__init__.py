"""The command line, ``ubunye``. Each command's code is imported when the command is called."""

from __future__ import annotations

import sys


def main() -> int:
    """Run the command in ``sys.argv`` and return its exit code (contract, "Exit codes and refusals")."""
    import gc

    # What start-up makes lives to the end: looking through it for garbage is a tenth of a short call's time.
    # The command itself runs with the collector on (lazy.Command.invoke).
    gc.disable()
    from airflow_provider_ubunye.cli.app import run
    from airflow_provider_ubunye.cli.output import leave_quietly

    code = run(sys.argv[1:], last=True)
    leave_quietly()
    return code
