"""Avro files, by fastavro."""

from __future__ import annotations

import re
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.types as pt

from airflow_provider_ubunye.core.errors import LandingFailed

_BATCH_ROWS = 65_536
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_PRIMITIVES = {
    "null": pa.null(),
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "bytes": pa.binary(),
}
_LOGICAL = {
    "date": pa.date32(),
    "time-millis": pa.time32("ms"),
    "time-micros": pa.time64("us"),
    "timestamp-millis": pa.timestamp("ms", "UTC"),
    "timestamp-micros": pa.timestamp("us", "UTC"),
    "local-timestamp-millis": pa.timestamp("ms"),
    "local-timestamp-micros": pa.timestamp("us"),
    "uuid": pa.string(),
}


def read_files(paths: list[Path], options: Mapping[str, Any], where: str) -> list[pa.Table]:  # noqa: ARG001 - one shape for all formats
    """One table a file."""
    with ThreadPoolExecutor() as pool:
        return list(pool.map(_read, paths))


def _read(path: Path) -> pa.Table:
    with path.open("rb") as file:
        rows = fastavro.reader(file)
        written: Any = rows.writer_schema
        kind = _arrow_type(written, {})
        if not pt.is_struct(kind):
            raise ValueError(f"its rows are {kind}, not records")
        batches = []
        while True:
            some = list(islice(rows, _BATCH_ROWS))
            batches.append(pa.RecordBatch.from_struct_array(pa.array(some, kind)))
            if len(some) < _BATCH_ROWS:
                return pa.Table.from_batches(batches)


def _arrow_type(schema: Any, named: dict[str, pa.DataType]) -> pa.DataType:
    """The Arrow type of an Avro schema.

    :raises ValueError: a union of several types, or a record within itself.
    """
    if isinstance(schema, list):
        kinds = [one for one in schema if one != "null"]
        if len(kinds) > 1:
            raise ValueError(f"it has a union of {len(kinds)} types, which is not read")
        return _arrow_type(kinds[0], named) if kinds else pa.null()
    if isinstance(schema, str):
        kind = _PRIMITIVES.get(schema, named.get(schema))
        if kind is None:
            raise ValueError(f"it has the type {schema!r} within itself, which is not read")
        return kind
    if schema.get("logicalType") in _LOGICAL:
        return _LOGICAL[schema["logicalType"]]
    if schema.get("logicalType") == "decimal":
        make = pa.decimal128 if schema["precision"] <= 38 else pa.decimal256
        return make(schema["precision"], schema.get("scale", 0))
    return _complex_type(schema, named)


def _complex_type(schema: Mapping[str, Any], named: dict[str, pa.DataType]) -> pa.DataType:
    kind = schema["type"]
    if kind == "array":
        return pa.list_(_arrow_type(schema["items"], named))
    if kind == "map":
        return pa.map_(pa.string(), _arrow_type(schema["values"], named))
    if kind == "record":
        fields = [(field["name"], _arrow_type(field["type"], named)) for field in schema["fields"]]
        made = pa.struct(fields)
    elif kind == "enum":
        made = pa.string()
    elif kind == "fixed":
        made = pa.binary(schema["size"])
    else:
        return _arrow_type(kind, named)
    named[schema["name"]] = made
    return made


def prepare(table: pa.Table, options: Mapping[str, Any], where: str) -> pa.Table:  # noqa: ARG001 - as above
    """The table as it is written: categories as their texts, timestamps in micro- or milliseconds.

    :raises LandingFailed: naming a column whose name, type or nanoseconds Avro can't hold.
    """
    for position, field in enumerate(table.schema):
        name, kind, column = field.name, field.type, table.column(position)
        if pt.is_dictionary(kind):
            column = column.cast(kind.value_type)
        elif (pt.is_timestamp(kind) and kind.unit == "ns") or kind == pa.time64("ns"):
            coarser = pa.timestamp("us", kind.tz) if pt.is_timestamp(kind) else pa.time64("us")
            try:
                column = column.cast(coarser)
            except pa.ArrowInvalid:
                raise LandingFailed(
                    f"{where}: column {name!r} has nanoseconds, which avro can't hold",
                    hint="round it to microseconds",
                ) from None
        table = table.set_column(position, name, column)
        try:
            _avro_field(name, column.type, "row")
        except ValueError as error:
            raise LandingFailed(f"{where}: column {name!r} can't be written to avro: {error}") from None
    return table


def suffix(options: Mapping[str, Any]) -> str:  # noqa: ARG001 - as above
    """``.avro``, whatever the compression."""
    return ".avro"


def write_file(table: pa.Table, path: Path, options: Mapping[str, Any]) -> None:
    """Write one file."""
    codec = {"none": "null", "uncompressed": "null"}.get(options["compression"], options["compression"])
    schema = {
        "type": "record",
        "name": "row",
        "fields": [_avro_field(f.name, f.type, "row") for f in table.schema],
    }
    with path.open("xb") as file:
        fastavro.writer(file, schema, _rows(table), codec)


def _rows(table: pa.Table) -> Any:
    maps = [field.name for field in table.schema if _has_map(field.type)]
    for batch in table.to_batches(_BATCH_ROWS):
        for row in batch.to_pylist():
            for name in maps:
                row[name] = _with_dicts(row[name], batch.schema.field(name).type)
            yield row


def _has_map(kind: pa.DataType) -> bool:
    return bool(pt.is_map(kind)) or any(_has_map(kind.field(at).type) for at in range(kind.num_fields))


def _with_dicts(value: Any, kind: pa.DataType) -> Any:
    """A value with its maps, which Arrow gives as lists of pairs, as dicts."""
    if value is None or not _has_map(kind):
        return value
    if pt.is_map(kind):
        return {key: _with_dicts(inner, kind.item_type) for key, inner in value}
    if pt.is_struct(kind):
        return {field.name: _with_dicts(value[field.name], field.type) for field in kind}
    return [_with_dicts(inner, kind.value_type) for inner in value]


def _avro_field(name: str, kind: pa.DataType, within: str) -> dict[str, Any]:
    """A record's field: always nullable, for any column of a frame may have nulls tomorrow."""
    if not _NAME.fullmatch(name):
        raise ValueError(f"{name!r} is not a name there: letters, digits and _ only, no digit first")
    inner = _avro_type(kind, f"{within}_{name}")
    return {"name": name, "type": "null" if inner == "null" else ["null", inner], "default": None}


def _nullable(kind: pa.DataType, within: str) -> Any:
    inner = _avro_type(kind, within)
    return inner if inner == "null" else ["null", inner]


def _avro_type(kind: pa.DataType, within: str) -> Any:
    """The Avro schema of an Arrow type.

    :raises ValueError: Avro has no such type.
    """
    if pt.is_struct(kind):
        return {
            "type": "record",
            "name": within,
            "fields": [_avro_field(f.name, f.type, within) for f in kind],
        }
    if pt.is_map(kind) and (pt.is_string(kind.key_type) or pt.is_large_string(kind.key_type)):
        return {"type": "map", "values": _nullable(kind.item_type, within)}
    if pt.is_list(kind) or pt.is_large_list(kind) or pt.is_fixed_size_list(kind):
        return {"type": "array", "items": _nullable(kind.value_type, within)}
    if pt.is_decimal(kind) and kind.scale >= 0:
        return {"type": "bytes", "logicalType": "decimal", "precision": kind.precision, "scale": kind.scale}
    if pt.is_timestamp(kind):
        local = "" if kind.tz is not None else "local-"
        return {
            "type": "long",
            "logicalType": f"{local}timestamp-{'micros' if kind.unit == 'us' else 'millis'}",
        }
    if pt.is_date(kind):
        return {"type": "int", "logicalType": "date"}
    if pt.is_time(kind):
        micros = kind.unit == "us"
        return {
            "type": "long" if micros else "int",
            "logicalType": f"time-{'micros' if micros else 'millis'}",
        }
    for test, avro in _SIMPLE:
        if test(kind):
            return avro
    raise ValueError(f"avro has no {kind}")


_SIMPLE: tuple[tuple[Any, str], ...] = (
    (pt.is_null, "null"),
    (pt.is_boolean, "boolean"),
    (pt.is_float32, "float"),
    (pt.is_float64, "double"),
    (lambda kind: pt.is_integer(kind) and kind not in (pa.int64(), pa.uint32(), pa.uint64()), "int"),
    (lambda kind: kind in (pa.int64(), pa.uint32()), "long"),
    (lambda kind: pt.is_string(kind) or pt.is_large_string(kind), "string"),
    (lambda kind: pt.is_binary(kind) or pt.is_large_binary(kind) or pt.is_fixed_size_binary(kind), "bytes"),
)
