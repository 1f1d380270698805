"""Reading an input: find its files, read each, put them together with their partition columns."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from airflow_provider_ubunye.core.errors import RunFailed, UbunyeError
from airflow_provider_ubunye.core.specs import InputSpec
from airflow_provider_ubunye.engines.pandas.files import FileFormat, file_format
from airflow_provider_ubunye.engines.pandas.frames import first_line, to_pandas
from airflow_provider_ubunye.engines.pandas.options import READ, parse_options
from airflow_provider_ubunye.engines.pandas.partitions import column_of
from airflow_provider_ubunye.engines.pandas.paths import DataFile, data_files
from airflow_provider_ubunye.engines.pandas.patterns import strptime_pattern
from airflow_provider_ubunye.engines.pandas.render import is_text

if TYPE_CHECKING:
    import pandas as pd

_LINES = ("csv", "json", "text")


def read(spec: InputSpec) -> pd.DataFrame:
    """All rows of an input whose format is a file format. See ``PandasEngine.read``."""
    return to_pandas(read_table(spec))


def read_table(spec: InputSpec) -> pa.Table:
    """As :func:`read`, as an Arrow table: the files' columns, then the partition columns."""
    where = f"input {spec.name!r}"
    options = parse_options(spec.format, READ, spec.options, where)
    files = data_files(spec.path, options, where)
    if spec.format in _LINES:
        # A text file of no bytes has no rows and no header; it is what an empty json or text output is.
        found, files = files, [file for file in files if file.path.stat().st_size]
        if spec.format == "csv" and not files:
            # Every csv file has a header or a row: this one was cut off, or never filled.
            empty = str(found[0].path) if len(found) == 1 else f"every file in {spec.path}"
            raise RunFailed(f"{where}: {empty} is empty")
    tables = _read_each(file_format(spec.format), spec, files, options, where)
    table = _together(tables, options, where, keep_first=options.get("mergeSchema") is False)
    if spec.format == "text" and not files:
        table = pa.table({"value": pa.array([], pa.large_string())})
    if spec.format in ("csv", "json"):
        table = _with_times(table, options)
    return _with_partitions(table, files, [len(one) for one in tables])


def _read_each(
    reader: FileFormat, spec: InputSpec, files: list[DataFile], options: Mapping[str, Any], where: str
) -> list[pa.Table]:
    paths = [file.path for file in files]
    try:
        return [_large(table) for table in reader.read_files(paths, options, where)]
    except UbunyeError:
        raise
    except Exception as error:
        broken, reason = _culprit(reader, paths, options, where) or (spec.path, first_line(error))
        raise RunFailed(f"{where}: {broken} can't be read as {spec.format}: {reason}") from error


def _culprit(
    reader: FileFormat, paths: list[Path], options: Mapping[str, Any], where: str
) -> tuple[Path, str] | None:
    """Which file it was and what is wrong with it, found by reading each on its own."""
    for path in paths:
        try:
            reader.read_files([path], options, where)
        except Exception as error:  # noqa: BLE001 - libraries raise what they like for a damaged file
            return path, first_line(error)
    return None


def _large(table: pa.Table) -> pa.Table:
    """Text and bytes in one layout, for writers differ: pandas' is large, Spark's is not."""
    if not table.num_columns:
        return table  # Rows of {}: Arrow forgets their number when it makes such a table anew.
    table = table.replace_schema_metadata(None)
    for position, field in enumerate(table.schema):
        large = {pa.string(): pa.large_string(), pa.binary(): pa.large_binary()}.get(field.type)
        if large is not None:
            table = table.set_column(position, field.name, table.column(position).cast(large))
    return table


def _together(
    tables: list[pa.Table], options: Mapping[str, Any], where: str, *, keep_first: bool
) -> pa.Table:
    """All tables as one. A column that a file lacks is null for its rows.

    :param keep_first: only the first table's columns (``mergeSchema`` false), as Spark does.
    """
    if not tables:
        return pa.table({})
    if not any(table.num_columns for table in tables):
        rows = pa.array([{}] * sum(len(table) for table in tables), pa.struct([]))
        return pa.Table.from_batches([pa.RecordBatch.from_struct_array(rows)])
    if keep_first:
        names = tables[0].column_names
        tables = [table.select([name for name in names if name in table.column_names]) for table in tables]
    # Formats whose types are inferred have no types to disagree about: those are widened.
    wide = options.get("mergeSchema") or "mergeSchema" not in options
    promote = "permissive" if wide else "default"
    try:
        return pa.concat_tables(tables, promote_options=promote)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError) as error:
        raise RunFailed(
            f"{where}: {_disagreement(tables, first_line(error))}", hint=_hint(options)
        ) from error


def _hint(options: Mapping[str, Any]) -> str | None:
    if "primitivesAsString" in options:
        return "read all values as text with the option primitivesAsString"
    return (
        None if options.get("mergeSchema") else "types that fit into a wider one are merged with mergeSchema"
    )


def _disagreement(tables: list[pa.Table], otherwise: str) -> str:
    kinds: dict[str, list[pa.DataType]] = {}
    for table in tables:
        for field in table.schema:
            found = kinds.setdefault(field.name, [])
            if field.type not in found and field.type != pa.null():
                found.append(field.type)
    for name, found in kinds.items():
        if len(found) > 1:
            return f"column {name!r} is {found[0]} in one file and {found[1]} in another"
    return f"the files' columns do not go together: {otherwise}"


def _with_times(table: pa.Table, options: Mapping[str, Any]) -> pa.Table:
    """Text columns that follow ``timestampFormat`` or ``dateFormat`` throughout, as timestamps and dates."""
    for option, kind in (("timestampFormat", pa.timestamp("us")), ("dateFormat", pa.date32())):
        pattern = options[option]
        if pattern is None or options.get("inferSchema") is False:
            continue
        strptime, _ = strptime_pattern(pattern)
        for position, field in enumerate(table.schema):
            column = table.column(position)
            if not is_text(field.type) or column.null_count == len(column):
                continue
            try:
                times = pc.strptime(column, format=strptime, unit="s").cast(kind)
            except pa.ArrowInvalid:
                continue  # Some text does not follow the pattern: a column of text.
            table = table.set_column(position, field.name, times)
    return table


def _with_partitions(table: pa.Table, files: list[DataFile], rows: list[int]) -> pa.Table:
    """The partition columns, behind the others; where a file has such a column too, the folder's counts."""
    if not files:
        return table
    which = pa.array(np.repeat(np.arange(len(files)), rows))
    for at, (name, _) in enumerate(files[0].partitions):
        column = column_of([file.partitions[at][1] for file in files]).take(which)
        if name in table.column_names:
            table = table.set_column(table.column_names.index(name), name, column)
        else:
            table = table.append_column(name, column)
    return table
