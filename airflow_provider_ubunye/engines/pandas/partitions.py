"""Hive partition folders: ``column=value`` as Spark and Hive write it, and the types that Spark infers.

A value becomes text, then some ASCII characters become ``%XX``. Null and the empty string are both
``__HIVE_DEFAULT_PARTITION__``; every reader gives null back for it. All other text comes back as it was:
nothing is normalised, so NFC and NFD spellings of one word are two folders.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any
from urllib.parse import unquote_to_bytes

import pyarrow as pa

DEFAULT_PARTITION = "__HIVE_DEFAULT_PARTITION__"

# Spark's list (ExternalCatalogUtils). A space and a plus sign are not in it, and stay.
_ESCAPED = frozenset("\"#%'*/:=?\\{[]^\x7f") | {chr(code) for code in range(1, 0x20)}
_TO_ESCAPE = re.compile("[" + re.escape("".join(sorted(_ESCAPED))) + "]")
_ESCAPE = re.compile("%([0-9A-Fa-f]{2})")


def escape(text: str) -> str:
    """Text as part of a partition folder's name."""
    return _TO_ESCAPE.sub(lambda match: f"%{ord(match.group()):02X}", text)


def unescape(text: str) -> str:
    """The text that :func:`escape` was given; a ``%`` without two hex digits after it stays.

    pyarrow escapes every byte of a character beyond ASCII; Spark never does. Both are read.
    """
    try:
        return unquote_to_bytes(text).decode()
    except UnicodeError:
        pass  # Not UTF-8: then each escape is one character, as in Spark.
    return _ESCAPE.sub(lambda match: chr(int(match.group(1), 16)), text)


def folder_name(column: str, value: Any) -> str:
    """``column=value``, escaped.

    :param value: None, text, bool, int, float, Decimal, date, datetime or time.
    :raises ValueError: the value can't be a folder's name, or would be read back as another; the message
        says why.
    """
    text = value_text(value)
    if text == DEFAULT_PARTITION:
        raise ValueError(f"the text {DEFAULT_PARTITION} would be read back as null")
    name = f"{escape(column)}={escape(text) if text else DEFAULT_PARTITION}"
    if "\0" in name:
        raise ValueError("it has a NUL character, which no folder's name can have")
    try:
        length = len(name.encode())
    except UnicodeEncodeError:
        raise ValueError("it is not valid Unicode") from None
    if length > 255:
        raise ValueError(f"its folder's name would be {length} bytes long, and 255 is the most")
    return name


def value_text(value: Any) -> str | None:
    """A value as Spark casts it to text, None for null. A datetime with a zone is given in UTC."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return float_text(repr(value))
    if isinstance(value, Decimal):
        return format(value, "f")
    if isinstance(value, datetime):
        moment = value.astimezone(UTC) if value.tzinfo else value
        return f"{moment.date().isoformat()} {_time_text(moment.time())}"
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, time):
        return _time_text(value)
    if isinstance(value, int):
        return str(value)
    raise ValueError(f"a {type(value).__name__} can't be a folder's name")


def _time_text(value: time) -> str:
    text = value.replace(microsecond=0, tzinfo=None).isoformat()
    fraction = f".{value.microsecond:06d}".rstrip("0") if value.microsecond else ""
    return text + fraction


def float_text(shortest: str) -> str:
    """Java's spelling of a float, from its shortest digits as Python writes them."""
    number = float(shortest)
    if math.isnan(number):
        return "NaN"
    if math.isinf(number):
        return "Infinity" if number > 0 else "-Infinity"
    if number == 0 or 1e-3 <= abs(number) < 1e7:
        plain = format(Decimal(shortest), "f")
        return plain if "." in plain else plain + ".0"
    sign, digits, exponent = Decimal(shortest).normalize().as_tuple()
    assert isinstance(exponent, int)
    power = exponent + len(digits) - 1
    fraction = "".join(map(str, digits[1:])) or "0"
    return f"{'-' if sign else ''}{digits[0]}.{fraction}E{power}"


def parse_folder(name: str) -> tuple[str, str | None] | None:
    """Column and text of a partition folder, the text None for null; None if the name is of no such folder."""
    column, equals, text = name.partition("=")
    if not equals or not column or not text:
        return None
    return unescape(column), None if text == DEFAULT_PARTITION else unescape(text)


_INTEGER = re.compile(r"[+-]?\d+")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
_JAVA_DOUBLE = re.compile(r"[+-]?(?:(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?[dDfF]?|NaN|Infinity)")
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)
_TIMESTAMP = re.compile(r"\d{4}-\d{2}-\d{2} \d{2}:\d{2}:\d{2}(\.\d)?", re.ASCII)
_TIME = re.compile(r"\d{2}:\d{2}:\d{2}(\.\d{1,6})?", re.ASCII)
_JAVA_SPACE = "".join(map(chr, range(0x21)))


def infer(text: str) -> Any:
    """One value as Spark's partition inference reads it; the text itself where nothing else fits.

    int, Decimal (a whole number beyond 64 bits, or with an exponent), float, datetime, date, time or str.
    Hexadecimal floats, which Spark reads, stay text.
    """
    if _INTEGER.fullmatch(text) and -(2**63) <= int(text) < 2**63:
        return int(text)
    if _NUMBER.fullmatch(text):
        number = Decimal(text)
        exponent = number.as_tuple().exponent
        if isinstance(exponent, int) and 0 <= exponent <= 38 and len(format(number, "f").lstrip("-")) <= 38:
            return Decimal(int(number))
    stripped = text.strip(_JAVA_SPACE)
    if _JAVA_DOUBLE.fullmatch(stripped):
        return float(stripped.rstrip("dDfF"))
    for pattern, parse in (
        (_TIMESTAMP, datetime.fromisoformat),
        (_DATE, date.fromisoformat),
        (_TIME, time.fromisoformat),
    ):
        if pattern.fullmatch(text):
            try:
                return parse(text)
            except ValueError:
                return text
    return text


def column_of(texts: Sequence[str | None]) -> pa.Array:
    """A partition column's values with the narrowest type that Spark would give all of them.

    :param texts: the text of each folder, None for null.
    """
    values = [None if text is None else infer(text) for text in texts]
    kinds = {type(value) for value in values if value is not None}
    if not kinds:
        return pa.nulls(len(texts))
    wide = any(type(value) is int and not -(2**31) <= value < 2**31 for value in values)
    if kinds == {int}:
        return pa.array(values, pa.int64() if wide else pa.int32())
    if kinds == {float} or (kinds == {int, float} and not wide):
        return pa.array([None if value is None else float(value) for value in values], pa.float64())
    if kinds <= {int, Decimal}:
        return _decimals(values)
    if kinds == {date, datetime}:
        midnights = [datetime.combine(v, time()) if type(v) is date else v for v in values]
        return pa.array(midnights, pa.timestamp("us"))
    if len(kinds) == 1 and str not in kinds:
        return pa.array(values)
    return pa.array(texts, pa.string())


def _decimals(values: Sequence[Any]) -> pa.Array:
    digits = max(len(str(abs(int(value)))) for value in values if value is not None)
    return pa.array([None if v is None else Decimal(v) for v in values], pa.decimal128(digits, 0))
