"""Arrow columns as text: the values of CSV files, and whole JSON objects, built column by column.

The spelling is Spark's: dates and times in ISO 8601, a moment in UTC with ``Z``, ``NaN`` and ``Infinity``
by name. Unlike Spark, no digit of a fraction of a second is cut off.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from airflow_provider_ubunye.engines.pandas.patterns import strptime_pattern

TEXT = pa.large_string()
_CONTROLS = {chr(code): json.dumps(chr(code))[1:-1] for code in range(0x20)}


def is_plain(kind: pa.DataType) -> bool:
    """Whether :func:`plain_text` knows the type: no list, struct, map, binary or duration."""
    if pt.is_dictionary(kind):
        return is_plain(kind.value_type)
    return (
        is_text(kind)
        or pt.is_boolean(kind)
        or pt.is_integer(kind)
        or pt.is_floating(kind)
        or pt.is_decimal(kind)
        or pt.is_date(kind)
        or pt.is_timestamp(kind)
        or pt.is_time(kind)
        or pt.is_null(kind)
    )


def is_text(kind: pa.DataType) -> bool:
    """Whether a column of the type holds text."""
    return bool(pt.is_string(kind) or pt.is_large_string(kind))


def plain_text(array: pa.Array, options: Mapping[str, Any]) -> pa.Array:
    """One column's values as text, null for null. The type is one that :func:`is_plain` knows."""
    kind = array.type
    if pt.is_dictionary(kind):
        return plain_text(array.dictionary_decode(), options)
    if pt.is_floating(kind):
        return _floats(array)
    if pt.is_date(kind):
        return _dates(array.cast(pa.date32()), options["dateFormat"])
    if pt.is_timestamp(kind):
        return _timestamps(array, options["timestampFormat"])
    return array.cast(TEXT)


def _floats(array: pa.Array) -> pa.Array:
    text = array.cast(pa.float32() if pt.is_float16(array.type) else array.type).cast(TEXT)
    # Arrow writes 1.0 as 1, and a reader that infers types would make whole numbers of it.
    whole = pc.match_substring_regex(text, "^-?[0-9]+$")
    text = pc.if_else(whole, pc.binary_join_element_wise(text, _text(".0"), _text("")), text)
    text = pc.if_else(pc.is_nan(array), _text("NaN"), text)
    return pc.if_else(pc.is_inf(array), pc.replace_substring(text, "inf", "Infinity"), text)


def _dates(array: pa.Array, pattern: str | None) -> pa.Array:
    if pattern is None:
        return array.cast(TEXT)
    strftime, _ = strptime_pattern(pattern)
    return pc.strftime(array.cast(pa.timestamp("s")), format=strftime).cast(TEXT)


def _timestamps(array: pa.Array, pattern: str | None) -> pa.Array:
    zone = array.type.tz
    if zone is not None:
        array = array.cast(pa.timestamp(array.type.unit, "UTC"))
    if pattern is not None:
        strftime, unit = strptime_pattern(pattern)
        # The pattern says how much of the fraction is wanted, so the rest is cut off.
        cut = array.cast(pa.timestamp(unit or "s", array.type.tz), safe=False)
        return pc.strftime(cut, format=strftime).cast(TEXT)
    for unit in ("ms", "us", "ns"):
        try:
            array = array.cast(pa.timestamp(unit, array.type.tz))
            break
        except pa.ArrowInvalid:
            continue  # Digits would be lost: the next finer unit.
    strftime = "%Y-%m-%dT%H:%M:%S" + ("Z" if zone is not None else "")
    return pc.strftime(array, format=strftime).cast(TEXT)


def _text(value: str | None) -> pa.Scalar:
    return pa.scalar(value, TEXT)


def _around(before: str, text: pa.Array, after: str) -> pa.Array:
    return pc.binary_join_element_wise(_text(before), text, _text(after), _text(""))


def json_objects(table: pa.RecordBatch, options: Mapping[str, Any]) -> pa.Array:
    """Each row as one JSON object. Null fields are left out, or written with ``ignoreNullFields`` false."""
    return _object(table.schema, table.columns, options, table.num_rows)


def is_json(kind: pa.DataType) -> bool:
    """Whether :func:`json_objects` knows a column's type, and the types within it."""
    if pt.is_struct(kind):
        return all(is_json(field.type) for field in kind)
    if pt.is_map(kind):
        return is_plain(kind.key_type) and is_json(kind.item_type)
    if pt.is_list(kind) or pt.is_large_list(kind) or pt.is_fixed_size_list(kind) or pt.is_dictionary(kind):
        return is_json(kind.value_type)
    return is_plain(kind) or _is_binary(kind)


def _is_binary(kind: pa.DataType) -> bool:
    return bool(pt.is_binary(kind) or pt.is_large_binary(kind) or pt.is_fixed_size_binary(kind))


def _json(array: pa.Array, options: Mapping[str, Any]) -> pa.Array:
    """The values as JSON, null for null."""
    kind = array.type
    if pt.is_dictionary(kind):
        return _json(array.dictionary_decode(), options)
    if pt.is_struct(kind):
        made = _object(kind, array.flatten(), options, len(array))
        return pc.if_else(array.is_valid(), made, _text(None))
    if pt.is_map(kind):
        entries = array.cast(pa.list_(pa.struct([("key", kind.key_type), ("value", kind.item_type)])))
        keys, values = entries.flatten().flatten()
        fields = pc.binary_join_element_wise(
            _quoted(plain_text(keys, options)), pc.fill_null(_json(values, options), "null"), _text(":")
        )
        return _joined(entries, fields, "{", "}")
    if pt.is_list(kind) or pt.is_large_list(kind) or pt.is_fixed_size_list(kind):
        return _joined(array, pc.fill_null(_json(array.flatten(), options), "null"), "[", "]")
    if _is_binary(kind):
        encoded = [None if v is None else base64.b64encode(v).decode() for v in array.to_pylist()]
        return _around('"', pa.array(encoded, TEXT), '"')
    text = plain_text(array, options)
    if pt.is_floating(kind):
        return pc.if_else(pc.is_finite(array), text, _around('"', text, '"'))
    if is_text(kind):
        return _quoted(text)
    bare = pt.is_integer(kind) or pt.is_boolean(kind) or pt.is_decimal(kind) or pt.is_null(kind)
    return text if bare else _around('"', text, '"')


def _object(fields: Any, columns: list[pa.Array], options: Mapping[str, Any], rows: int) -> pa.Array:
    parts = []
    for field, column in zip(fields, columns, strict=True):
        value = _json(column, options)
        if not options["ignoreNullFields"]:
            value = pc.fill_null(value, "null")
        name = json.dumps(field.name, ensure_ascii=False)
        parts.append(_around(name + ":", value, ""))
    if not parts:
        return pa.array(["{}"] * rows, TEXT)
    # The empty text in front is never null: Arrow's join drops a row in which it skips every argument.
    joined = pc.binary_join_element_wise(_text(""), *parts, _text(","), null_handling="skip")
    return _around("{", pc.replace_substring_regex(joined, "^,", ""), "}")


def _joined(lists: pa.Array, items: pa.Array, before: str, after: str) -> pa.Array:
    """Rendered items of all lists, put together list by list."""
    if pt.is_fixed_size_list(lists.type):
        lengths = pc.if_else(lists.is_valid(), lists.type.list_size, 0)
    else:
        lengths = pc.fill_null(pc.list_value_length(lists), 0)
    ends = pc.cumulative_sum(lengths.cast(pa.int32()))
    offsets = pa.concat_arrays([pa.array([0], pa.int32()), ends])
    joined = pc.binary_join(pa.ListArray.from_arrays(offsets, items), _text(","))
    return pc.if_else(lists.is_valid(), _around(before, joined, after), _text(None))


def _quoted(text: pa.Array) -> pa.Array:
    """JSON strings of texts."""
    text = pc.replace_substring(pc.replace_substring(text, "\\", "\\\\"), '"', '\\"')
    if pc.any(pc.match_substring_regex(text, "[\\x00-\\x1f]")).as_py():
        for control, escaped in _CONTROLS.items():
            text = pc.replace_substring(text, control, escaped)
    return _around('"', text, '"')
