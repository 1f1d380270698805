"""Text files: one column ``value``, one row a line."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from airflow_provider_ubunye.core.errors import LandingFailed
from airflow_provider_ubunye.engines.pandas import streams
from airflow_provider_ubunye.engines.pandas.render import TEXT, is_text

SCHEMA = pa.schema([("value", TEXT)])


def read_files(paths: list[Path], options: Mapping[str, Any], where: str) -> list[pa.Table]:  # noqa: ARG001 - one shape for all formats
    """One table a file."""
    return [_read(path, options) for path in paths]


def _read(path: Path, options: Mapping[str, Any]) -> pa.Table:
    text = streams.read_utf8(path, options["encoding"]).decode()
    if options["wholetext"]:
        return pa.table({"value": pa.array([text], TEXT)})
    line_end = options["lineSep"]
    if line_end is None:
        text, line_end = text.replace("\r\n", "\n").replace("\r", "\n"), "\n"
    lines = text.split(line_end)
    if not lines[-1]:
        lines.pop()
    return pa.table({"value": pa.array(lines, TEXT)})


def prepare(table: pa.Table, options: Mapping[str, Any], where: str) -> pa.Table:
    """The table if it is one column of text, without line ends within a value.

    :raises LandingFailed: it is not, or a value could not be read back as one line.
    """
    if table.num_columns != 1 or not is_text(table.schema.field(0).type):
        found = ", ".join(f"{field.name} ({field.type})" for field in table.schema)
        raise LandingFailed(
            f"{where}: a text output has exactly one column of text besides its partitions, not {found}"
        )
    name, column = table.column_names[0], table.column(0).cast(TEXT)
    ends = ("\n", "\r") if options["lineSep"] in ("\n", "\r", "\r\n") else (options["lineSep"],)
    for end in ends:
        if pc.any(pc.match_substring(column, end)).as_py():
            raise LandingFailed(f"{where}: column {name!r} has a line end within a value")
    if column.null_count:
        raise LandingFailed(
            f"{where}: column {name!r} has nulls, which a text file can't tell from empty lines"
        )
    streams.check_encodable(table, options, where)
    return pa.table({name: column})


def suffix(options: Mapping[str, Any]) -> str:
    """``.txt``, and the compression's ending."""
    return streams.suffix(".txt", options)


def write_file(table: pa.Table, path: Path, options: Mapping[str, Any]) -> None:
    """Write one file."""
    with streams.text_writer(path, options) as writer:
        for batch in table.to_batches(streams.BATCH_ROWS):
            writer.write_lines(batch.column(0), options["lineSep"])
