"""JSON files: one object a line, as Spark writes them. A text that looks like a time stays text."""

from __future__ import annotations

import json
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pajson
import pyarrow.types as pt

from airflow_provider_ubunye.core.errors import LandingFailed
from airflow_provider_ubunye.engines.pandas import streams
from airflow_provider_ubunye.engines.pandas.render import is_json, json_objects


def read_files(
    paths: list[Path],
    options: Mapping[str, Any],
    where: str,  # noqa: ARG001 - one signature for every format
) -> list[pa.Table]:
    """One table a file."""
    with ThreadPoolExecutor() as pool:
        return list(pool.map(lambda path: _read(path, options), paths))


def _read(path: Path, options: Mapping[str, Any]) -> pa.Table:
    data = streams.read_utf8(path, options["encoding"])
    if options["multiLine"]:
        document = json.loads(data, **_as_text(options))
        return _from_objects(document if isinstance(document, list) else [document], options)
    if options["primitivesAsString"]:
        return _from_objects(
            [json.loads(line, **_as_text(options)) for line in data.splitlines() if line.strip()], options
        )
    if not data.strip():
        return pa.table({})
    # An object in several lines is not one object a line; the block is as large as the file, so that a
    # line of any length is read.
    read = pajson.ReadOptions(block_size=max(1 << 20, min(len(data) + 1, 1 << 30)))
    table = pajson.read_json(pa.BufferReader(data), read)
    if not table.num_columns:
        # Rows whose fields are all null are {}; without any column the parser does not count them.
        return _from_objects([json.loads(line) for line in data.splitlines() if line.strip()], options)
    exact = pa.schema([pa.field(f.name, _as_spark(f.type, table.column(f.name))) for f in table.schema])
    if exact.equals(table.schema):
        return table
    parse = pajson.ParseOptions(explicit_schema=exact)
    try:
        return pajson.read_json(pa.BufferReader(data), read, parse)
    except pa.ArrowInvalid:
        floats = [f.with_type(pa.float64()) if pt.is_decimal(f.type) else f for f in exact]
        parse = pajson.ParseOptions(explicit_schema=pa.schema(floats))
        return pajson.read_json(pa.BufferReader(data), read, parse)


def _as_text(options: Mapping[str, Any]) -> dict[str, Any]:
    return {"parse_int": str, "parse_float": str} if options["primitivesAsString"] else {}


def _from_objects(objects: list[Any], options: Mapping[str, Any]) -> pa.Table:
    for one in objects:
        if not isinstance(one, dict):
            raise ValueError(f"a row is {json.dumps(one)[:40]}, not an object")
    if not objects:
        return pa.table({})
    if options["primitivesAsString"]:
        objects = [_flags_as_text(one) for one in objects]
    rows = pa.array(objects)
    return pa.Table.from_batches([pa.RecordBatch.from_struct_array(rows)])


def _flags_as_text(value: Any) -> Any:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict):
        return {key: _flags_as_text(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_flags_as_text(inner) for inner in value]
    return value


def _as_spark(kind: pa.DataType, column: pa.ChunkedArray | None = None) -> pa.DataType:
    """The type that Spark infers: times are text, whole numbers beyond 64 bits are decimals."""
    if pt.is_timestamp(kind):
        return pa.string()
    if pt.is_struct(kind):
        return pa.struct([field.with_type(_as_spark(field.type)) for field in kind])
    if pt.is_list(kind):
        return pa.list_(_as_spark(kind.value_type))
    if kind == pa.float64() and column is not None:
        largest = pc.max(pc.abs(column)).as_py()
        if largest is not None and largest >= 2.0**63 and pc.all(pc.equal(pc.floor(column), column)).as_py():
            return pa.decimal128(38, 0)
    return kind


def prepare(table: pa.Table, options: Mapping[str, Any], where: str) -> pa.Table:
    """The table, if every column has a JSON form.

    :raises LandingFailed: naming the column that has none.
    """
    for field in table.schema:
        if not is_json(field.type):
            raise LandingFailed(f"{where}: column {field.name!r} is {field.type}, which json can't hold")
    streams.check_encodable(table, options, where)
    return table


def suffix(options: Mapping[str, Any]) -> str:
    """``.json``, and the compression's ending."""
    return streams.suffix(".json", options)


def write_file(table: pa.Table, path: Path, options: Mapping[str, Any]) -> None:
    """Write one file of JSON lines."""
    with streams.text_writer(path, options) as writer:
        for batch in table.to_batches(streams.BATCH_ROWS):
            writer.write_lines(json_objects(batch, options), options["lineSep"])
