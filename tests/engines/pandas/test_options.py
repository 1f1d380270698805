"""Options: understood, or refused by name."""

from __future__ import annotations

from typing import Any

import pytest

from airflow_provider_ubunye.core.errors import ConfigError
from airflow_provider_ubunye.core.specs import FILE_FORMATS
from airflow_provider_ubunye.engines.pandas.options import READ, WRITE, parse_options


def parse(file_format: str, direction: str, **options: Any) -> dict[str, Any]:
    return parse_options(file_format, direction, options, "input 'x'")


def test_header_and_schema_inference_are_on_unless_said_otherwise() -> None:
    parsed = parse("csv", READ)
    assert parsed["header"] is True
    assert parsed["inferSchema"] is True
    parsed = parse("csv", READ, HEADER="False", inferschema=False)
    assert parsed["header"] is False
    assert parsed["inferSchema"] is False
    assert parse("csv", WRITE)["header"] is True


def test_fractions_of_a_second_are_understood_in_writing() -> None:
    assert parse("json", WRITE, timestampFormat="ss.SSS")["timestampFormat"] == "ss.SSS"
    assert parse("json", READ, timestampFormat="HH:mm:ss")["timestampFormat"] == "HH:mm:ss"


def test_other_spellings_of_the_same_option() -> None:
    assert parse("csv", READ, delimiter="\\t")["sep"] == "\t"
    assert parse("csv", READ, charset="latin-1")["encoding"] == "iso8859-1"
    assert parse("parquet", WRITE, codec="ZSTD")["compression"] == "zstd"
    assert parse("parquet", WRITE, compression=None)["compression"] == "none"
    assert parse("parquet", WRITE, maxRecordsPerFile="10")["maxRecordsPerFile"] == 10


@pytest.mark.parametrize(
    ("file_format", "direction", "options", "message"),
    [
        ("csv", READ, {"hedaer": True}, "'hedaer' is not understood for reading csv; did you mean 'header'?"),
        ("parquet", READ, {"header": True}, "'header' is not understood for reading parquet"),
        ("csv", WRITE, {"inferSchema": True}, "'inferSchema' is for reading csv, not for writing it"),
        ("csv", READ, {"quoteAll": True}, "'quoteAll' is for writing csv, not for reading it"),
        ("csv", READ, {"sep": ",", "delimiter": ";"}, "'sep' and 'delimiter' are the same one, given twice"),
        ("csv", READ, {"header": "yes"}, "'header' for csv is 'yes', must be true or false"),
        ("csv", READ, {"sep": "||"}, "'sep' for csv is '||', must be one ASCII character"),
        ("csv", READ, {"sep": True}, "must be text"),
        ("csv", READ, {"encoding": "utf-9"}, "must be the name of an encoding"),
        ("csv", READ, {"lineSep": "|"}, "must be \\n, \\r\\n or \\r"),
        ("csv", READ, {"mode": "PERMISSIVE"}, "must be one of failfast, dropmalformed"),
        ("csv", READ, {"dateFormat": "QQ"}, "must be a date pattern: 'Q' is not understood"),
        ("csv", WRITE, {"dateFormat": "dd[MM]"}, "must be a date pattern: '[' is not understood"),
        ("json", READ, {"timestampFormat": "ss.SSS"}, "without fractions of a second"),
        ("text", WRITE, {"lineSep": ""}, "must be text that is not empty"),
        ("orc", WRITE, {"compression": "brotli"}, "must be one of none, uncompressed, snappy"),
        ("orc", WRITE, {"maxRecordsPerFile": "many"}, "must be a number of rows"),
        ("orc", WRITE, {"maxRecordsPerFile": True}, "must be a number of rows"),
    ],
)
def test_what_is_not_understood_is_refused_by_name(
    file_format: str, direction: str, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(ConfigError) as error:
        parse_options(file_format, direction, options, "input 'x'")
    assert message in error.value.what
    assert error.value.what.startswith("input 'x': option")


@pytest.mark.parametrize("file_format", FILE_FORMATS)
def test_every_format_takes_the_common_options(file_format: str) -> None:
    assert (
        parse(file_format, READ, recursiveFileLookup=True, pathGlobFilter="*.x")["recursiveFileLookup"]
        is True
    )
    assert parse(file_format, WRITE, maxRecordsPerFile=-1)["maxRecordsPerFile"] == 0
