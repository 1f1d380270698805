r"""CSV files in Spark's dialect: a quote within quotes is ``\"``, null is an empty cell, ``""`` is empty text.

With the option ``escape: '"'`` they are those of RFC 4180. Read are both: a doubled quote within quotes is
one quote in either dialect.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv
import pyarrow.types as pt

from airflow_provider_ubunye.core.errors import LandingFailed, RunFailed
from airflow_provider_ubunye.engines.pandas import streams
from airflow_provider_ubunye.engines.pandas.render import TEXT, is_plain, plain_text

_TRUE = ["true", "True", "TRUE"]
_FALSE = ["false", "False", "FALSE"]


def read_files(paths: list[Path], options: Mapping[str, Any], where: str) -> list[pa.Table]:
    """One table a file; a column has one type in all of them: the one that fits the values of every file.

    :raises RunFailed: a header that names two columns alike.
    """
    with ThreadPoolExecutor() as pool:
        tables = list(pool.map(lambda path: _read(path, options, {}, where), paths))
    wanted = _common_types(tables)
    for position, path in enumerate(paths):
        table = tables[position]
        again = {
            name: TEXT
            for name in table.column_names
            if wanted[name] == TEXT and table.schema.field(name).type not in (TEXT, pa.null())
        }
        if again:
            # 007 in this file and x in another: the column is text, and this file's text is 007, not 7.
            table = _read(path, options, again, where)
        tables[position] = table.cast(pa.schema([(name, wanted[name]) for name in table.column_names]))
    return tables


def _common_types(tables: list[pa.Table]) -> dict[str, pa.DataType]:
    kinds: dict[str, set[pa.DataType]] = {}
    for table in tables:
        for field in table.schema:
            kinds.setdefault(field.name, set()).add(field.type)
    return {name: _common_type(found - {pa.null()}) for name, found in kinds.items()}


def _common_type(found: set[pa.DataType]) -> pa.DataType:
    if len(found) == 1:
        return next(iter(found))
    if found == {pa.int64(), pa.float64()}:
        return pa.float64()
    if found and all(pt.is_decimal(kind) or kind == pa.int64() for kind in found):
        return pa.decimal128(38, 0)
    naive = {pa.timestamp("us"), pa.timestamp("ns")}
    if found and found <= {pa.date32(), *naive}:
        return pa.timestamp("ns") if pa.timestamp("ns") in found else pa.timestamp("us")
    return TEXT


def _read(path: Path, options: Mapping[str, Any], types: Mapping[str, pa.DataType], where: str) -> pa.Table:
    data = _with_doubled_quotes(streams.read_utf8(path, options["encoding"]), options)
    names = _column_names(data, options)
    repeated = [name for name in names if names.count(name) > 1]
    if repeated:
        raise RunFailed(f"{where}: {path} has two columns called {repeated[0]!r}")
    types = dict(types) if options["inferSchema"] else dict.fromkeys(names, TEXT)
    table = _parse(data, names, options, types)
    again = {field.name: TEXT for field in table.schema if _needs_its_text(field, table)}
    if again:
        table = _parse(data, names, options, {**types, **again})
    for position, field in enumerate(table.schema):
        if pt.is_binary(field.type) or pt.is_large_binary(field.type):
            raise RunFailed(
                f"{where}: column {field.name!r} of {path} is not UTF-8",
                hint="name its encoding with the option encoding",
            )
        column = _settled(
            table.column(position), whole_number=field.name in again and field.name not in types
        )
        table = table.set_column(position, field.name, column)
    return table


def _with_doubled_quotes(data: bytes, options: Mapping[str, Any]) -> bytes:
    """The same CSV with quotes doubled instead of escaped, which is what the parser knows."""
    quote, escape = options["quote"].encode(), options["escape"].encode()
    if quote == escape or escape not in data or quote not in data:
        return data
    q, e, s = re.escape(quote), re.escape(escape), re.escape(options["sep"].encode())
    quoted = re.compile(
        rb"(?<![^\r\n" + s + rb"])" + q + rb"((?:[^" + q + e + rb"]++|" + e + rb".|" + q + q + rb")*+)" + q,
        re.DOTALL,
    )
    escaped = re.compile(e + rb"([" + q + e + rb"])")
    doubled: Callable[[re.Match[bytes]], bytes] = lambda m: quote * 2 if m.group(1) == quote else escape  # noqa: E731
    normal: bytes = quoted.sub(lambda m: quote + escaped.sub(doubled, m.group(1)) + quote, data)
    return normal


def _parse_options(data: bytes, options: Mapping[str, Any]) -> pacsv.ParseOptions:
    return pacsv.ParseOptions(
        delimiter=options["sep"],
        quote_char=options["quote"],
        # Looking for line ends within quotes costs threads, so only where there are quotes.
        newlines_in_values=options["quote"].encode() in data,
        invalid_row_handler=(lambda _: "skip") if options["mode"] == "dropmalformed" else None,
    )


def _column_names(data: bytes, options: Mapping[str, Any]) -> list[str]:
    """The header's names; ``_c0``, ``_c1``, … where it has none."""
    header = options["header"]
    read = pacsv.ReadOptions(use_threads=False, autogenerate_column_names=not header)
    with pacsv.open_csv(pa.BufferReader(data), read, _parse_options(data, options)) as stream:
        found = stream.schema.names
    return [name if header and name else f"_c{position}" for position, name in enumerate(found)]


def _parse(
    data: bytes, names: list[str], options: Mapping[str, Any], types: Mapping[str, pa.DataType]
) -> pa.Table:
    convert = pacsv.ConvertOptions(
        column_types=dict(types),
        null_values=[options["nullValue"]],
        strings_can_be_null=True,
        quoted_strings_can_be_null=False,
        true_values=_TRUE,
        false_values=_FALSE,
    )
    read = pacsv.ReadOptions(column_names=names, skip_rows_after_names=1 if options["header"] else 0)
    return pacsv.read_csv(pa.BufferReader(data), read, _parse_options(data, options), convert)


def _needs_its_text(field: pa.Field, table: pa.Table) -> bool:
    """Whether the parser's guess at a type is not Spark's: a time of day, or whole numbers beyond 64 bits."""
    if pt.is_time(field.type):
        return True
    if field.type != pa.float64():
        return False
    column = table.column(field.name)
    finite = column.filter(pc.is_finite(column))
    if not len(finite) or not pc.any(pc.greater_equal(pc.abs(finite), 2.0**63)).as_py():
        return False
    return bool(pc.all(pc.equal(pc.floor(finite), finite)).as_py())


def _settled(column: pa.ChunkedArray, *, whole_number: bool) -> pa.ChunkedArray:
    """A parsed column in the type that it keeps."""
    kind = column.type
    if pt.is_timestamp(kind):
        try:
            return column.cast(pa.timestamp("us", kind.tz))
        except pa.ArrowInvalid:
            return column
    if not pt.is_string(kind) and kind != TEXT:
        return column
    if whole_number:
        digits = pc.match_substring_regex(column, "^[+-]?[0-9]{1,38}$")
        if pc.all(digits).as_py():
            return column.cast(pa.decimal128(38, 0))
        try:
            return column.cast(pa.float64())
        except pa.ArrowInvalid:
            pass  # A time of day: text.
    return column.cast(TEXT)


def prepare(table: pa.Table, options: Mapping[str, Any], where: str) -> pa.Table:
    """The table, if every value has a text that is read back as the same.

    :raises LandingFailed: naming the column that has not.
    """
    for field in table.schema:
        if not is_plain(field.type):
            raise LandingFailed(f"{where}: column {field.name!r} is {field.type}, which csv can't hold")
    if table.num_columns == 1 and not options["nullValue"] and table.column(0).null_count:
        raise LandingFailed(
            f"{where}: column {table.column_names[0]!r} is the only one and has nulls, which would be blank lines",
            hint="say how null is written with the option nullValue",
        )
    streams.check_encodable(table, options, where)
    return table


def suffix(options: Mapping[str, Any]) -> str:
    """``.csv``, and the compression's ending."""
    return streams.suffix(".csv", options)


def write_file(table: pa.Table, path: Path, options: Mapping[str, Any]) -> None:
    """Write one file, with its own header."""
    with streams.text_writer(path, options) as writer:
        if options["header"]:
            names = [_cells(pa.array([name], TEXT), options) for name in table.column_names]
            writer.write_lines(_lines(names, options), options["lineSep"])
        for batch in table.to_batches(streams.BATCH_ROWS):
            cells = [_cells(plain_text(column, options), options) for column in batch.columns]
            writer.write_lines(_lines(cells, options), options["lineSep"])


def _lines(cells: list[pa.Array], options: Mapping[str, Any]) -> pa.Array:
    return pc.binary_join_element_wise(*cells, pa.scalar(options["sep"], TEXT))


def _cells(text: pa.Array, options: Mapping[str, Any]) -> pa.Array:
    """Texts as CSV cells, quoted where they would be read as something else."""
    quote, escape, null = options["quote"], options["escape"], options["nullValue"]
    special = re.escape(quote + options["sep"])
    needed = pc.or_(
        pc.match_substring_regex(text, rf"[{special}\r\n]|^\s|\s$|^$"),
        pc.equal(text, pa.scalar(null, TEXT)),
    )
    if options["quoteAll"]:
        needed = pc.is_valid(text)
    if pc.any(needed).as_py():
        inner = text if quote == escape else pc.replace_substring(text, escape, escape * 2)
        inner = pc.replace_substring(inner, quote, escape + quote)
        mark = pa.scalar(quote, TEXT)
        quoted = pc.binary_join_element_wise(mark, inner, mark, pa.scalar("", TEXT))
        text = pc.if_else(needed, quoted, text)
    return pc.fill_null(text, null)
