"""Between the user's frames and Arrow tables, without a silent loss on either way."""

from __future__ import annotations

import warnings
from collections.abc import Hashable
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.types as pt

from airflow_provider_ubunye.core.errors import LandingFailed

_NULLABLE = {
    pa.int8(): pd.Int8Dtype(),
    pa.int16(): pd.Int16Dtype(),
    pa.int32(): pd.Int32Dtype(),
    pa.int64(): pd.Int64Dtype(),
    pa.uint8(): pd.UInt8Dtype(),
    pa.uint16(): pd.UInt16Dtype(),
    pa.uint32(): pd.UInt32Dtype(),
    pa.uint64(): pd.UInt64Dtype(),
    pa.bool_(): pd.BooleanDtype(),
}


def to_table(frame: Any, where: str) -> pa.Table:
    """The frame as an Arrow table.

    A pandas index that has a name becomes columns, as after ``reset_index``; one without a name is the row
    number and is left out.

    :param frame: a pandas DataFrame, a pyarrow Table, or an object with an Arrow stream (polars).
    :param where: the output, for errors.
    :raises LandingFailed: it is none of these, or a column can't be an Arrow column without loss.
    """
    if isinstance(frame, pd.DataFrame):
        table = _from_pandas(frame, where)
    elif isinstance(frame, pa.Table):
        table = frame
    else:
        table = _from_stream(frame, where)
    repeated = sorted({name for name in table.column_names if table.column_names.count(name) > 1})
    if repeated:
        raise LandingFailed(f"{where}: column {repeated[0]!r} is in the frame more than once")
    if not table.column_names:
        raise LandingFailed(f"{where}: the frame has no columns")
    return table


def _from_stream(frame: Any, where: str) -> pa.Table:
    if not hasattr(frame, "__arrow_c_stream__"):
        raise LandingFailed(f"{where}: {_not_a_frame(frame)}")
    try:
        table = pa.table(frame)
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise LandingFailed(f"{where}: {_not_a_frame(frame)}: {first_line(error)}") from error
    for position, field in enumerate(table.schema):
        # Views are polars' own layout for text; few writers and no older reader know it.
        plain = {pa.string_view(): pa.large_string(), pa.binary_view(): pa.large_binary()}.get(field.type)
        if plain is not None:
            table = table.set_column(position, field.name, table.column(position).cast(plain))
    return table


def _not_a_frame(frame: Any) -> str:
    kind = type(frame)
    hint = "; call its collect() first" if kind.__name__ == "LazyFrame" else ""
    hint = "; that is for the Spark engine" if kind.__module__.startswith("pyspark") else hint
    return (
        "an output must be a pandas DataFrame, a pyarrow Table or a polars DataFrame, "
        f"not {kind.__module__}.{kind.__qualname__}{hint}"
    )


def _from_pandas(frame: pd.DataFrame, where: str) -> pa.Table:
    for column in frame.columns:
        if not isinstance(column, str):
            raise LandingFailed(f"{where}: column {column!r} has a name that is not text")
    named = [level for level in frame.index.names if level is not None]
    if named:
        taken = [level for level in named if level in frame.columns]
        if taken:
            raise LandingFailed(f"{where}: {taken[0]!r} is the name of a column and of the index")
        unnamed: list[Hashable] = [
            position for position, level in enumerate(frame.index.names) if level is None
        ]
        whole = frame.droplevel(unnamed) if unnamed else frame
        return _from_pandas(whole.reset_index(), where)
    if frame.columns.has_duplicates:
        repeated = frame.columns[frame.columns.duplicated()][0]
        raise LandingFailed(f"{where}: column {repeated!r} is in the frame more than once")
    for column in frame.columns:
        _check_one_kind(frame[column], where)
    try:
        return pa.Table.from_pandas(frame, preserve_index=False)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        column = _culprit(frame)
        raise LandingFailed(f"{where}: column {column!r} can't be written: {first_line(error)}") from error


def _check_one_kind(column: pd.Series[Any], where: str) -> None:
    """Refuse an object column of several kinds: Arrow would turn True into 1.0, or text into bytes."""
    if column.dtype != object:
        return
    kind = pd.api.types.infer_dtype(column, skipna=True)
    if not kind.startswith("mixed") or kind == "mixed-integer-float":
        return
    kinds = sorted({type(value).__name__ for value in column if not _is_missing(value)})
    scalars = {"bool", "int", "float", "str", "bytes"}
    if len(kinds) > 1 and scalars.intersection(kinds):
        raise LandingFailed(f"{where}: column {column.name!r} mixes {', '.join(kinds)}: make it one type")


def _is_missing(value: Any) -> bool:
    return value is None or value is pd.NA or value is pd.NaT or (isinstance(value, float) and value != value)


def _culprit(frame: pd.DataFrame) -> str:
    for column in frame.columns:
        try:
            pa.Table.from_pandas(frame[[column]], preserve_index=False)
        except (pa.ArrowException, TypeError, ValueError, OverflowError):
            return str(column)
    return ", ".join(map(str, frame.columns))


def to_pandas(table: pa.Table) -> pd.DataFrame:
    """The table as a pandas frame. Whole numbers and booleans with nulls get pandas' nullable types.

    Lists, structs and maps that hold such values with nulls become Python's own: pandas would make floats of
    the numbers. Others get pandas' own types: text is ``str``, a timestamp keeps its unit and zone, a date is a
    ``datetime.date``, a decimal is a ``Decimal``.
    """
    if not table.num_columns:
        return pd.DataFrame(index=pd.RangeIndex(table.num_rows))
    table = table.replace_schema_metadata(None)
    exact = [
        position
        for position, field in enumerate(table.schema)
        if any(_holds_exact_nulls(chunk) for chunk in table.column(position).chunks)
    ]
    rest = [position for position in range(table.num_columns) if position not in set(exact)]
    frame = table.select(rest).to_pandas() if rest else pd.DataFrame(index=pd.RangeIndex(table.num_rows))
    for position in exact:
        column = table.column(position)
        if column.type in _NULLABLE:
            series = column.to_pandas(types_mapper=_NULLABLE.get)
        else:
            series = pd.Series(column.to_pylist(), dtype=object)
        with warnings.catch_warnings():
            # Inserting many columns one by one fragments the frame; that costs less than the exact types win.
            warnings.simplefilter("ignore", pd.errors.PerformanceWarning)
            frame.insert(position, table.column_names[position], series)
    return frame


def _holds_exact_nulls(array: pa.Array) -> bool:
    """Whether whole numbers or booleans with nulls are in an array, however deep."""
    if array.type in _NULLABLE:
        return bool(array.null_count)
    if pt.is_struct(array.type):
        return any(_holds_exact_nulls(child) for child in array.flatten())
    if pt.is_map(array.type):
        return _holds_exact_nulls(array.items)
    if pt.is_list(array.type) or pt.is_large_list(array.type) or pt.is_fixed_size_list(array.type):
        return _holds_exact_nulls(array.flatten())
    return False


def first_line(error: BaseException) -> str:
    """An error of a library in one line, without its traceback or its list of internals."""
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__
