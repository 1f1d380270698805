"""Write the reference pages that follow from the code: commands, config, exit codes.

usage: python docs/generate.py [--check]      --check writes nothing and fails if a page is out of date
"""

from __future__ import annotations

import argparse
import difflib
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import click
from pydantic import BaseModel

from airflow_provider_ubunye.core import errors
from airflow_provider_ubunye.core.specs import FILE_FORMATS, MODES
from airflow_provider_ubunye.tasks import model
from airflow_provider_ubunye.tasks.template import RESERVED

REFERENCE = Path(__file__).resolve().parent / "reference"
WRITTEN = "% Written by docs/generate.py: change the code and run it again.\n\n"

SECTIONS: dict[str, tuple[type[BaseModel], dict[str, str]]] = {
    "The file": (
        model.Document,
        {
            "MODEL": "the kind of task",
            "VERSION": "the task's version, for run records",
            "CONFIG": "everything else",
        },
    ),
    "`CONFIG`": (
        model.Config,
        {
            "inputs": "by name, what `transform` gets in `sources`",
            "transform": "settings of the task's own code",
            "outputs": "by name, what `transform` returns; at least one",
            "batch": "the variables that [name the batch](../how-to/batch.md); all of them where it is left out",
        },
    ),
    "`CONFIG.inputs.<name>`": (
        model.Input,
        {
            "format": f"one of {', '.join(f'`{name}`' for name in FILE_FORMATS)}, or a registered format",
            "path": "a file, a folder or a glob",
            "options": "[reader options](options.md) in Spark's spelling",
        },
    ),
    "`CONFIG.outputs.<name>`": (
        model.Output,
        {
            "format": "as for an input",
            "path": "the output folder",
            "options": "[writer options](options.md) in Spark's spelling",
            "mode": f"one of {', '.join(f'`{name}`' for name in MODES)}",
            "partition_by": "a list of columns that become folders `column=value/`, outermost first; needed for "
            "`overwrite_partitions`",
        },
    ),
    "`CONFIG.transform`": (
        model.Transform,
        {"params": "what the code finds in `context.params`; values may be secrets"},
    ),
}


def config_page() -> str:
    """The keys of ``config.yaml``, from the models that check them."""
    return WRITTEN + "\n".join(_config_lines()) + "\n"


def _config_lines() -> Iterator[str]:
    yield "# Config"
    yield ""
    yield "The keys of a task's `config.yaml`. A key that is not here is an error, never passed over."
    for title, (section, meanings) in SECTIONS.items():
        if meanings.keys() != section.model_fields.keys():
            wrong = meanings.keys() ^ section.model_fields.keys()
            raise SystemExit(
                f"docs/generate.py describes other keys of {title} than there are: {sorted(wrong)}"
            )
        yield from ("", f"## {title}", "", "| Key | Default | Meaning |", "|---|---|---|")
        for name, field in section.model_fields.items():
            default = "*needed*" if field.is_required() else _default(field.get_default())
            yield f"| `{name}` | {default} | {meanings[name]} |"
    yield from ("", "## Templates", "")
    yield (
        "A value may hold Jinja: `{{ dt }}`, `{{ dtf }}`, `{{ mode }}`, every `--var`, and "
        f"{', '.join(f'`{{{{ {name} }}}}`' for name in sorted(RESERVED - {'env'}))}. "
        "`{{ env.NAME }}` reads the environment, `{{ env.get('NAME', 'default') }}` with a default. A name that "
        "is not defined is an error. Keys are not templates. A relative path starts at the task's folder."
    )


def _default(value: object) -> str:
    if value is None or value in ({}, []) or isinstance(value, BaseModel):
        return ""
    return f"`{value}`"


def exit_codes_page() -> str:
    """The exit codes and reason words, from the errors that carry them."""
    # A run imports every module that has errors of its own.
    import_module("airflow_provider_ubunye.core.run")
    lines = ["# Exit codes", "", "| Code | Reason | Error | Meaning |", "|---|---|---|---|"]
    lines.append("| 0 | | | done; or found done, under `--resume` |")
    for error in sorted(_errors(errors.UbunyeError), key=lambda e: e.exit_code):
        said = (error.__doc__ or "").strip().split("\n")[0].replace("``", "`")
        lines.append(f"| {error.exit_code} | `{error.reason}` | `{error.__name__}` | {said} |")
    lines += ["", "`--json` gives the same, with the reason word.", ""]
    return WRITTEN + "\n".join(lines)


def _errors(root: type[errors.UbunyeError]) -> Iterator[type[errors.UbunyeError]]:
    for error in root.__subclasses__():
        # Elsewhere in the package, one without a reason of its own is known as what it derives from.
        if error.__module__ == errors.__name__ or "reason" in vars(error):
            yield error
        yield from _errors(error)


def cli_page() -> str:
    """Every command's own help."""
    from airflow_provider_ubunye.cli import app

    lines = ["# Command line", ""]
    for path, text in _helps(app.program, "ubunye", None):
        lines += [f"## `{path}`", "", "```text", *(line.rstrip() for line in text.splitlines()), "```", ""]
    return WRITTEN + "\n".join(lines)


def _helps(command: click.Command, name: str, parent: click.Context | None) -> Iterator[tuple[str, str]]:
    # As it looks in a terminal of 100 columns, whatever the one is in which this runs.
    width: dict[str, Any] = {"terminal_width": 100, "max_content_width": 100}
    context = click.Context(command, parent, name, **{**command.context_settings, **width})
    yield context.command_path, command.get_help(context)
    if isinstance(command, click.Group):
        for sub in command.list_commands(context):
            found = command.get_command(context, sub)
            if found is not None and not found.hidden:
                yield from _helps(found, sub, context)


def main() -> int:
    """Write the pages, or check them. Returns the exit code."""
    parser = argparse.ArgumentParser(prog="docs/generate.py")
    parser.add_argument("--check", action="store_true", help="write nothing; fail if a page is out of date")
    check = parser.parse_args().check
    wrong = 0
    for name, text in (
        ("cli.md", cli_page()),
        ("config.md", config_page()),
        ("exit-codes.md", exit_codes_page()),
    ):
        path = REFERENCE / name
        there = path.read_text(encoding="utf-8") if path.exists() else ""
        if there == text:
            continue
        wrong += 1
        if check:
            sys.stdout.writelines(
                difflib.unified_diff(
                    there.splitlines(True), text.splitlines(True), str(path), "from the code"
                )
            )
        else:
            path.write_text(text, encoding="utf-8")
            sys.stdout.write(f"wrote {path}\n")
    return 1 if check and wrong else 0


if __name__ == "__main__":
    sys.exit(main())
