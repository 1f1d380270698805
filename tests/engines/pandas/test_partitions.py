"""Partition folders: every value comes back, and no two share a folder."""

from __future__ import annotations

import unicodedata
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import pandas as pd
import pyarrow as pa
import pyarrow.dataset as ds
import pytest
from hypothesis import HealthCheck, example, given, settings

from airflow_provider_ubunye.core.errors import ConfigError, LandingFailed
from airflow_provider_ubunye.engines.pandas.partitions import (
    DEFAULT_PARTITION,
    column_of,
    escape,
    float_text,
    folder_name,
    infer,
    parse_folder,
    unescape,
)

FIELD_CASES = [
    "a/b",
    "a%2Fb",
    "a+b",
    "a=b",
    "2026-01-01 00:00",
    "trailing ",
    "😀",
    unicodedata.normalize("NFC", "Café"),
    unicodedata.normalize("NFD", "Café"),
    "~`!@#$^&*()-_[]{}|\\;:'\"<>,.?",
    "\x01\x1f\x7f\t\r\n",
    "..",
    "%",
    "%zz",
    "é/%C3%A9",
]
texts = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1, max_size=40)


@given(texts)
@settings(max_examples=300)
@example("a%2Fb")
@example("%C3%A9")
def test_text_comes_back(text: str) -> None:
    if text == DEFAULT_PARTITION:
        return
    name = folder_name("c/=%", text)
    assert "/" not in name
    assert parse_folder(name) == ("c/=%", text)


@given(st.lists(texts, min_size=1, max_size=8, unique=True))
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@example(FIELD_CASES)
def test_text_comes_back_from_files(write: Any, read: Any, values: list[str]) -> None:
    values = [value for value in values if len(escape(value).encode()) < 240]
    frame = pa.table({"n": range(len(values)), "p": pa.array(values, pa.string())})
    out = write(frame, "parquet", partition_by=("p",))
    partitioning = ds.HivePartitioning(pa.schema([("p", pa.string())]))
    found = ds.dataset(out.folder, partitioning=partitioning).to_table().to_pylist()
    assert {row["n"]: row["p"] for row in found} == dict(enumerate(values))
    by_folder = {
        n: parse_folder(p.parent.name)
        for p in out.folder.rglob("*.parquet")
        for n in ds.dataset(p).to_table()["n"].to_pylist()
    }
    assert by_folder == {n: ("p", value) for n, value in enumerate(values)}
    ours = read(out, "parquet")
    if ours["p"].dtype == "str":
        assert dict(zip(ours["n"], ours["p"], strict=True)) == dict(enumerate(values))


def test_field_cases_come_back_in_duckdb_and_here(write: Any, read: Any, query: Any) -> None:
    frame = pd.DataFrame({"n": range(len(FIELD_CASES)), "p": FIELD_CASES})
    out = write(frame, "parquet", partition_by=("p",))
    pd.testing.assert_frame_equal(
        read(out, "parquet").sort_values("n", ignore_index=True), frame, check_dtype=False
    )
    rows = query(
        f"select n, p from read_parquet('{out.folder}/*/*.parquet', "
        "hive_partitioning=true, hive_types_autocast=false)"
    )
    assert dict(rows) == dict(enumerate(FIELD_CASES))


def test_escaping_leaves_what_is_no_escape() -> None:
    assert unescape("100%") == "100%"
    assert unescape("%E9") == "é"  # Spark's rule, where the bytes are not UTF-8
    assert unescape("%C3%A9") == "é"  # pyarrow's
    assert parse_folder("plain") is None
    assert parse_folder("=x") is None
    assert parse_folder("x=") is None


@pytest.mark.parametrize(
    ("value", "folder"),
    [
        (None, f"p={DEFAULT_PARTITION}"),
        ("", f"p={DEFAULT_PARTITION}"),
        (True, "p=true"),
        (13, "p=13"),
        (1.5, "p=1.5"),
        (1e20, "p=1.0E20"),
        (Decimal("0.0000001"), "p=0.0000001"),
        (Decimal("1.50"), "p=1.50"),
        (date(2026, 1, 1), "p=2026-01-01"),
        (datetime.fromisoformat("2026-01-01"), "p=2026-01-01 00%3A00%3A00"),
        (datetime.fromisoformat("2026-01-01 00:00:00.123400"), "p=2026-01-01 00%3A00%3A00.1234"),
        (datetime(2026, 1, 1, 1, tzinfo=timezone(timedelta(hours=1))), "p=2026-01-01 00%3A00%3A00"),
        (time(10, 0), "p=10%3A00%3A00"),
    ],
)
def test_a_value_is_written_as_spark_does(value: Any, folder: str) -> None:
    assert folder_name("p", value) == folder


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (-0.0, "-0.0"),
        (1e-5, "1.0E-5"),
        (0.001, "0.001"),
        (12345678.0, "1.2345678E7"),
        (9999999.0, "9999999.0"),
        (-1.5e300, "-1.5E300"),
        (float("nan"), "NaN"),
        (float("-inf"), "-Infinity"),
        (float("inf"), "Infinity"),
    ],
)
def test_floats_are_spelled_as_java_does(number: float, text: str) -> None:
    assert float_text(repr(number)) == text


@given(st.floats(allow_nan=False))
def test_floats_come_back(number: float) -> None:
    assert float(float_text(repr(number)).replace("Infinity", "inf")) == number


@pytest.mark.parametrize("value", ["a\0b", "\ud800", "x" * 300, "😀" * 70, DEFAULT_PARTITION, [1], b"x"])
def test_a_value_that_can_not_be_a_folder_is_refused(value: Any) -> None:
    with pytest.raises(ValueError, match=r"."):
        folder_name("p", value)


@pytest.mark.parametrize(
    ("column", "message"),
    [
        (["x", DEFAULT_PARTITION], "'__HIVE_DEFAULT_PARTITION__': the text"),
        (["", None], "'' and null, which are one folder"),
        (["x", "y" * 300], "folder's name would be 302 bytes long"),
        (pa.array([[1], [2]]), "list<"),
        (pa.array([1, 2], pa.timestamp("ns")), "nanoseconds"),
        (pa.array([b"a", b"b"]), "bytes can't be a folder's name"),
    ],
)
def test_a_frame_with_such_values_is_refused_naming_column_and_value(
    write: Any, column: Any, message: str
) -> None:
    with pytest.raises(LandingFailed) as error:
        write(pa.table({"n": [1, 2], "p": column}), "parquet", partition_by=("p",))
    assert message in error.value.what
    assert "'p'" in error.value.what


def test_a_file_system_that_takes_two_names_for_one_is_noticed(
    write: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    mkdir = Path.mkdir

    def without_case(self: Path, *rest: Any, **named: Any) -> None:
        mkdir(self.with_name(self.name.lower()), *rest, **named)
        if self.name != self.name.lower():
            self.symlink_to(self.name.lower())

    monkeypatch.setattr(Path, "mkdir", without_case)
    with pytest.raises(LandingFailed, match="does not tell them apart"):
        write(pd.DataFrame({"n": [1, 2], "p": ["A", "a"]}), "parquet", partition_by=("p",))


def test_columns_of_every_kind_are_grouped_once_and_whole(write: Any, read: Any) -> None:
    frame = pa.table(
        {
            "n": range(6),
            "c": pa.array(["x", "y", "x", None, "y", "x"]).dictionary_encode(),
            "f": pa.array([0.1, 0.5, 0.1, 0.1, float("nan"), 0.1], pa.float32()),
            "t": pa.array([datetime(2026, 1, 1, tzinfo=UTC)] * 6, pa.timestamp("ns", "Europe/Berlin")),
            "b": [True, False, True, None, False, True],
        }
    )
    out = write(frame, "parquet", partition_by=("c", "f", "t", "b"))
    assert [Path(name).parent.as_posix() for name in out.files()] == [
        f"c={DEFAULT_PARTITION}/f=0.1/t=2026-01-01 00%3A00%3A00/b={DEFAULT_PARTITION}",
        "c=x/f=0.1/t=2026-01-01 00%3A00%3A00/b=true",
        "c=y/f=0.5/t=2026-01-01 00%3A00%3A00/b=false",
        "c=y/f=NaN/t=2026-01-01 00%3A00%3A00/b=false",
    ]
    found = read(out, "parquet")
    assert found[found.c == "x"].n.tolist() == [0, 2, 5]
    assert sorted(found.n) == list(range(6))


@pytest.mark.parametrize(
    ("texts", "kind"),
    [
        (["1", "007", None], pa.int32()),
        (["1", "99999999999"], pa.int64()),
        (["1", "99999999999999999999"], pa.decimal128(20, 0)),
        (["1", "1.5"], pa.float64()),
        (["99999999999", "1.5"], pa.string()),
        (["99999999999999999999", "1.5"], pa.string()),
        (["2026-01-01", None], pa.date32()),
        (["2026-01-01", "2026-01-01 00:00:00"], pa.timestamp("us")),
        (["1", "2026-01-01"], pa.string()),
        (["true", "false"], pa.string()),
        ([None], pa.null()),
    ],
)
def test_a_partition_column_has_the_type_that_spark_gives_it(
    texts: list[str | None], kind: pa.DataType
) -> None:
    column = column_of(texts)
    assert column.type == kind
    if kind == pa.string():
        assert column.to_pylist() == texts


@given(st.one_of(texts, st.from_regex(r"[-+0-9.eEdf: ]{1,12}", fullmatch=True)))
@settings(max_examples=300)
def test_inference_never_fails(text: str) -> None:
    infer(text)
    assert len(column_of([text, None])) == 2


@pytest.mark.parametrize(
    ("partition_by", "message"),
    [
        (("dat",), "names column 'dat', which the frame lacks; did you mean 'date'?"),
        (("n", "date"), "names all columns"),
        (("date", "date"), "names a column twice"),
    ],
)
def test_partition_columns_that_can_not_be_are_configuration(
    write: Any, partition_by: tuple[str, ...], message: str
) -> None:
    with pytest.raises(ConfigError) as error:
        write(pd.DataFrame({"n": [1], "date": ["x"]}), "parquet", partition_by=partition_by)
    assert message in error.value.what
