"""Reader and writer options in Spark's spelling.

Names are compared without case, as Spark does. An option that this engine does not understand for the
format and direction is an error, so that none is ignored in silence.

==================  ==========================================================================
all, reading        recursiveFileLookup, pathGlobFilter, basePath
all, writing        maxRecordsPerFile
parquet, orc, avro  reading: mergeSchema; writing: compression (codec)
csv                 header, inferSchema, sep (delimiter), quote, escape, nullValue, dateFormat,
                    timestampFormat, encoding (charset), lineSep; reading: multiLine, mode;
                    writing: quoteAll, compression (codec)
json                dateFormat, timestampFormat, encoding (charset), lineSep; reading: multiLine,
                    primitivesAsString; writing: ignoreNullFields, compression (codec)
text                encoding (charset), lineSep; reading: wholetext; writing: compression (codec)
==================  ==========================================================================
"""

from __future__ import annotations

import codecs
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

from airflow_provider_ubunye.core.errors import ConfigError
from airflow_provider_ubunye.engines.formats import did_you_mean
from airflow_provider_ubunye.engines.pandas.patterns import strptime_pattern

READ = "reading"
WRITE = "writing"

LINE_ENDS = ("\n", "\r\n", "\r")
_ALIASES = {"delimiter": "sep", "charset": "encoding", "codec": "compression"}
_ESCAPED = {"\\t": "\t", "\\n": "\n", "\\r": "\r", "\\r\\n": "\r\n", "\\\\": "\\", "\\0": "\0"}


def _flag(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    text = str(value).strip().lower()
    if text not in ("true", "false"):
        raise ValueError("true or false")
    return text == "true"


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError("text")
    return str(value)


def _character(value: Any) -> str:
    text = _ESCAPED.get(_text(value), _text(value))
    if len(text) != 1 or not text.isascii():
        raise ValueError("one ASCII character")
    return text


def _line_end(value: Any) -> str:
    text = _ESCAPED.get(_text(value), _text(value))
    if text not in LINE_ENDS:
        raise ValueError("\\n, \\r\\n or \\r")
    return text


def _any_line_end(value: Any) -> str:
    text = _ESCAPED.get(_text(value), _text(value))
    if not text:
        raise ValueError("text that is not empty")
    return text


def _encoding(value: Any) -> str:
    try:
        return codecs.lookup(_text(value)).name
    except LookupError:
        raise ValueError("the name of an encoding, as UTF-8") from None


def _pattern(value: Any) -> str:
    text = _text(value)
    try:
        strptime_pattern(text)
    except ValueError as error:
        raise ValueError(f"a date pattern: {error}") from None
    return text


def _whole_pattern(value: Any) -> str:
    text = _pattern(value)
    if strptime_pattern(text)[1] not in (None, "s"):
        raise ValueError("a date pattern without fractions of a second: these are understood in writing only")
    return text


def _count(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int | str):
        raise ValueError("a number of rows")
    try:
        return max(0, int(value))
    except ValueError:
        raise ValueError("a number of rows") from None


def _one_of(*words: str) -> Callable[[Any], str]:
    def parse(value: Any) -> str:
        # YAML reads an unquoted null as None, and Spark has a codec of that name's meaning.
        text = "none" if value is None else str(value).strip().lower()
        if text not in words:
            raise ValueError(f"one of {', '.join(words)}")
        return text

    return parse


@dataclass(frozen=True)
class _Option:
    parse: Callable[[Any], Any]
    default: Any = None


_FILES = {
    "recursiveFileLookup": _Option(_flag, False),
    "pathGlobFilter": _Option(_text),
    "basePath": _Option(_text),
}
_PARTS = {"maxRecordsPerFile": _Option(_count, 0)}
_MERGE = {"mergeSchema": _Option(_flag)}
_TIMES = {"dateFormat": _Option(_pattern), "timestampFormat": _Option(_pattern)}
_TIMES_READ = {"dateFormat": _Option(_whole_pattern), "timestampFormat": _Option(_whole_pattern)}
_ENCODED = {"encoding": _Option(_encoding, "utf-8")}
_LINES = {"lineSep": _Option(_line_end, "\n"), **_ENCODED}
_STREAM = {
    "compression": _Option(_one_of("none", "uncompressed", "gzip", "bzip2", "zstd", "deflate"), "none")
}
_CSV = {
    **_TIMES,
    **_LINES,
    "header": _Option(_flag, True),
    "sep": _Option(_character, ","),
    "quote": _Option(_character, '"'),
    "escape": _Option(_character, "\\"),
    "nullValue": _Option(_text, ""),
}
_PARQUET_CODECS = ("none", "uncompressed", "snappy", "gzip", "lz4", "lz4_raw", "zstd", "brotli")

_TABLES: dict[tuple[str, str], dict[str, _Option]] = {
    ("parquet", READ): {**_FILES, **_MERGE},
    ("parquet", WRITE): {**_PARTS, "compression": _Option(_one_of(*_PARQUET_CODECS), "snappy")},
    ("orc", READ): {**_FILES, **_MERGE},
    ("orc", WRITE): {
        **_PARTS,
        "compression": _Option(_one_of("none", "uncompressed", "snappy", "zlib", "lz4", "zstd"), "zstd"),
    },
    ("avro", READ): {**_FILES, **_MERGE},
    ("avro", WRITE): {
        **_PARTS,
        "compression": _Option(
            _one_of("none", "uncompressed", "snappy", "deflate", "bzip2", "xz", "zstandard"), "snappy"
        ),
    },
    ("csv", READ): {
        **_FILES,
        **_CSV,
        **_TIMES_READ,
        "inferSchema": _Option(_flag, True),
        "multiLine": _Option(_flag, True),
        "mode": _Option(_one_of("failfast", "dropmalformed"), "failfast"),
    },
    ("csv", WRITE): {**_PARTS, **_CSV, **_STREAM, "quoteAll": _Option(_flag, False)},
    ("json", READ): {
        **_FILES,
        **_TIMES_READ,
        **_LINES,
        "multiLine": _Option(_flag, False),
        "primitivesAsString": _Option(_flag, False),
    },
    ("json", WRITE): {**_PARTS, **_TIMES, **_LINES, **_STREAM, "ignoreNullFields": _Option(_flag, True)},
    ("text", READ): {
        **_FILES,
        **_ENCODED,
        "wholetext": _Option(_flag, False),
        "lineSep": _Option(_any_line_end),
    },
    ("text", WRITE): {**_PARTS, **_ENCODED, **_STREAM, "lineSep": _Option(_any_line_end, "\n")},
}


def parse_options(
    file_format: str,
    direction: str,
    options: Mapping[str, Any],
    where: str,
    *,
    later: Collection[str] = (),
) -> dict[str, Any]:
    """Every option of the format with its value or its default, keyed by Spark's spelling.

    :param direction: :data:`READ` or :data:`WRITE`.
    :param where: the input or output, for the error.
    :param later: options, as they are given, whose values are not known yet: only their names are checked.
    :raises ConfigError: an option that isn't understood, is given twice, or has a wrong value.
    """
    table = _TABLES[file_format, direction]
    by_lower = {name.lower(): name for name in table}
    parsed = {name: option.default for name, option in table.items()}
    given: dict[str, str] = {}
    for key, value in options.items():
        lowered = str(key).lower()
        name = by_lower.get(_ALIASES.get(lowered, lowered))
        if name is None:
            raise ConfigError(f"{where}: {_unknown(str(key), file_format, direction, table)}")
        if name in given:
            raise ConfigError(f"{where}: options {given[name]!r} and {key!r} are the same one, given twice")
        given[name] = str(key)
        if key in later:
            continue
        try:
            parsed[name] = table[name].parse(value)
        except ValueError as error:
            raise ConfigError(
                f"{where}: option {key!r} for {file_format} is {value!r}, must be {error}"
            ) from None
    return parsed


def _unknown(key: str, file_format: str, direction: str, table: Mapping[str, _Option]) -> str:
    other = WRITE if direction == READ else READ
    lowered = _ALIASES.get(key.lower(), key.lower())
    if lowered in (name.lower() for name in _TABLES[file_format, other]):
        return f"option {key!r} is for {other} {file_format}, not for {direction} it"
    known = {*table, *(alias for alias, name in _ALIASES.items() if name in table)}
    return f"option {key!r} is not understood for {direction} {file_format}{did_you_mean(key, known)}"
