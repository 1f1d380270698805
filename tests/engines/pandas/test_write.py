"""What a frame becomes on disk, and what is refused."""

from __future__ import annotations

from datetime import date, datetime, time
from decimal import Decimal
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.orc as paorc
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings

from airflow_provider_ubunye.core.errors import LandingFailed
from airflow_provider_ubunye.core.specs import FILE_FORMATS

FORMATS = ("parquet", "orc", "avro", "csv", "json")


def plain() -> pd.DataFrame:
    return pd.DataFrame(
        {
            "i": pd.array([1, None, 2**62 + 1], "Int64"),
            "f": [1.0, None, 1.5],
            "s": ['a"b,\\ é', None, "two\nlines"],
            "b": pd.array([True, None, False], "boolean"),
            "d": [date(2026, 1, 1), None, date(1, 1, 1)],
            "t": np.array(["2026-01-01", "NaT", "2026-01-01T10:11:12.123456"], "M8[us]"),
        }
    )


@pytest.mark.parametrize("file_format", FORMATS)
def test_plain_columns_come_back(write: Any, read: Any, file_format: str) -> None:
    frame = plain()
    found = read(write(frame, file_format), file_format)
    if file_format == "json":  # dates are text there
        found["d"] = [None if pd.isna(v) else date.fromisoformat(v) for v in found["d"]]
        found["t"] = pd.to_datetime(found["t"], format="ISO8601")
    found["t"] = found["t"].astype("M8[us]")
    pd.testing.assert_frame_equal(found, frame)


@pytest.mark.parametrize("file_format", ["parquet", "orc", "avro"])
def test_rich_columns_come_back(write: Any, read: Any, file_format: str) -> None:
    table = pa.table(
        {
            "dec": pa.array([Decimal("1.50"), None], pa.decimal128(38, 2)),
            "l": [[1, None], None],
            "st": [{"a": {"b": ["x"]}, "c": 1}, None],
            "m": pa.array([[("k", 2**60 + 1), ("l", None)], None], pa.map_(pa.string(), pa.int64())),
            "by": [b"\x00\xff", None],
            "z": pa.array([datetime.fromisoformat("2026-01-01T00:00:00+00:00"), None]),
            "cat": pa.array(["x", None]).dictionary_encode(),
        }
    )
    found = read(write(table, file_format), file_format)
    row = found.iloc[0]
    assert row["dec"] == Decimal("1.50")
    assert list(row["l"]) == [1, None]
    assert row["st"]["a"]["b"][0] == "x"
    assert list(row["m"]) == [("k", 2**60 + 1), ("l", None)]
    assert row["by"] == b"\x00\xff"
    assert row["z"] == pd.Timestamp("2026-01-01", tz="UTC")
    assert row["cat"] == "x"
    assert found.iloc[1].isna().all()


def test_json_of_rich_columns(write: Any, query: Any) -> None:
    table = pa.table(
        {
            'q"\\': pa.array([Decimal("1.50"), None]),
            "l": pa.array([[1.0, None, float("nan")], []], pa.list_(pa.float64())),
            "fl": pa.array([[1, 2], None], pa.list_(pa.int8(), 2)),
            "st": [{"a": {"b": "\x01/é"}, "c": None}, {"a": None, "c": 1}],
            "m": pa.array([[("k", [True])], None], pa.map_(pa.string(), pa.list_(pa.bool_()))),
            "by": [b"ab", None],
            "ti": [time(1, 2, 3), None],
            "z": pa.array([datetime.fromisoformat("2026-01-01T00:00:00+01:00"), None]),
        }
    )
    # A slice: offsets of lists and maps do not begin at nought there.
    table = pa.concat_tables([table, table]).combine_chunks().slice(1, 3)
    out = write(table, "json")
    line = (
        r'{"q\"\\":1.50,"l":[1.0,null,"NaN"],"fl":[1,2],"st":{"a":{"b":"\u0001/é"}},"m":{"k":[true]},'
        r'"by":"YWI=","ti":"01:02:03.000000","z":"2025-12-31T23:00:00.000Z"}'
    )
    second = '{"l":[],"st":{"c":1}}'
    assert (out.folder / out.files()[0]).read_text() == f"{second}\n{line}\n{second}\n"
    assert query(f"select l[1] from read_json('{out.folder}/*.json')")[1] == ("1.0",)
    out = write(table.select(["fl", "st"]).slice(0, 1), "json", ignoreNullFields=False)
    assert (out.folder / out.files()[0]).read_text() == '{"fl":null,"st":{"a":null,"c":1}}\n'


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({}, 'n,s,t\n1,"a;\\"b",2026-01-01T00:00:00.000\n,,\n3,"",2026-01-01T10:00:00.500\n'),
        ({"escape": '"'}, 'n,s,t\n1,"a;""b",2026-01-01T00:00:00.000\n,,\n3,"",2026-01-01T10:00:00.500\n'),
        (
            {"header": False, "sep": ";", "nullValue": "3", "timestampFormat": "yyyy/MM/dd'T'HH:mm"},
            '1;"a;\\"b";2026/01/01T00:00\n3;3;3\n"3";"";2026/01/01T10:00\n',
        ),
        (
            {"quoteAll": True, "lineSep": "\\r\\n", "quote": "'"},
            "'n','s','t'\r\n'1','a;\"b','2026-01-01T00:00:00.000'\r\n,,\r\n'3','','2026-01-01T10:00:00.500'\r\n",
        ),
    ],
)
def test_csv_text(write: Any, options: dict[str, Any], text: str) -> None:
    frame = pd.DataFrame(
        {
            "n": pd.array([1, None, 3], "Int64"),
            "s": ['a;"b', None, ""],
            "t": np.array(["2026-01-01", "NaT", "2026-01-01T10:00:00.5"], "M8[ns]"),
        }
    )
    out = write(frame, "csv", **options)
    assert (out.folder / out.files()[0]).read_bytes().decode() == text


def test_csv_is_read_by_others(write: Any, query: Any) -> None:
    frame = pd.DataFrame({"n": [1, 2], "s": ["a,b", 'q"q']})
    out = write(frame, "csv", escape='"')
    path = out.folder / out.files()[0]
    assert pd.read_csv(path).equals(frame)
    assert query(f"from '{path}'") == [(1, "a,b"), (2, 'q"q')]


any_text = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
awkward = st.text(st.sampled_from("\\\"'\n\r,; \tax\0"), max_size=8)


@pytest.mark.parametrize(
    ("file_format", "both", "reading"),
    [
        ("csv", {}, {"inferSchema": False}),
        ("csv", {"escape": '"', "nullValue": "ax"}, {"inferSchema": False}),
        ("csv", {"sep": ";", "quote": "'", "escape": "x"}, {"inferSchema": False}),
        ("json", {}, {}),
        ("avro", {}, {}),
        ("orc", {}, {}),
        ("parquet", {}, {}),
    ],
)
@given(values=st.lists(st.none() | any_text | awkward, min_size=1, max_size=6))
@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_text_comes_back(
    write: Any,
    read: Any,
    file_format: str,
    both: dict[str, Any],
    reading: dict[str, Any],
    values: list[str | None],
) -> None:
    frame = pa.table({"n": range(len(values)), "s": pa.array(values, pa.string())})
    found = read(write(frame, file_format, **both), file_format, **both, **reading)
    if "s" not in found:
        assert not any(value is not None for value in values)
        return
    assert [None if pd.isna(value) else value for value in found["s"]] == values


@pytest.mark.parametrize("file_format", FILE_FORMATS)
@pytest.mark.parametrize(
    "compression", ["none", "gzip", "bzip2", "zstd", "deflate", "snappy", "xz", "zstandard"]
)
def test_compression(write: Any, read: Any, file_format: str, compression: str) -> None:
    from airflow_provider_ubunye.core.errors import ConfigError

    known = {
        "parquet": {"none": ".parquet", "gzip": ".parquet", "zstd": ".parquet", "snappy": ".parquet"},
        "orc": {"none": ".orc", "zstd": ".orc", "snappy": ".orc"},
        "avro": dict.fromkeys(["none", "bzip2", "deflate", "snappy", "xz", "zstandard"], ".avro"),
    }.get(file_format)
    kind = "txt" if file_format == "text" else file_format
    endings = {"none": "", "gzip": ".gz", "bzip2": ".bz2", "zstd": ".zst", "deflate": ".deflate"}
    known = known or {name: f".{kind}{ending}" for name, ending in endings.items()}
    frame = pd.DataFrame({"value": ["é", "x"] * 100})
    if compression not in known:
        with pytest.raises(
            ConfigError, match=f"'compression' for {file_format} is '{compression}', must be one of"
        ):
            write(frame, file_format, compression=compression)
        return
    out = write(frame, file_format, compression=compression)
    assert out.files() == ["part-00000-0123456789ab" + known[compression]]
    assert read(out, file_format).equals(frame)


def test_encodings(write: Any, read: Any) -> None:
    frame = pd.DataFrame({"value": ["é", "ü"]})
    for file_format in ("csv", "json", "text"):
        for encoding in ("latin-1", "utf-16"):
            out = write(frame, file_format, encoding=encoding)
            assert read(out, file_format, encoding=encoding).equals(frame)
            assert "é".encode(encoding.replace("16", "16-le")) in (out.folder / out.files()[0]).read_bytes()
        with pytest.raises(LandingFailed, match="column 'value' has '€', which iso8859-1 can't express"):
            write(pd.DataFrame({"value": ["€"]}), file_format, encoding="latin-1")


@pytest.mark.parametrize(
    ("file_format", "mode", "files"),
    [
        *((name, "append", []) for name in FILE_FORMATS),
        *((name, "overwrite_partitions", []) for name in FILE_FORMATS),
        *(
            (name, mode, ["one"])
            for name in FILE_FORMATS
            for mode in ("overwrite", "errorifexists", "ignore")
        ),
    ],
)
def test_an_empty_frame(write: Any, read: Any, file_format: str, mode: str, files: list[str]) -> None:
    frame = pa.table({"value": pa.array([], pa.string())})
    out = write(frame, file_format, mode=mode)
    assert len(out.files()) == len(files)
    if files:
        found = read(out, file_format)
        assert len(found) == 0
        assert found.columns.tolist() == ([] if file_format == "json" else ["value"])


@pytest.mark.parametrize("file_format", ["parquet", "csv"])
def test_an_empty_partitioned_frame_keeps_its_columns(write: Any, read: Any, file_format: str) -> None:
    frame = pd.DataFrame({"n": pd.array([], "int64"), "dt": pd.array([], "str")})
    assert write(frame, file_format, partition_by=("dt",), mode="append").files() == []
    out = write(frame, file_format, partition_by=("dt",), mode="overwrite")
    assert [name.split("/")[0] for name in out.files()] == ["dt=__HIVE_DEFAULT_PARTITION__"]
    assert read(out, file_format).columns.tolist() == ["n", "dt"]


def test_many_part_files(write: Any, read: Any) -> None:
    frame = pd.DataFrame({"n": range(10), "p": [1, 2] * 5})
    assert len(write(frame, "csv", maxRecordsPerFile=3).files()) == 4
    out = write(frame, "parquet", partition_by=("p",), maxRecordsPerFile=2)
    assert [pq.read_metadata(out.folder / name).num_rows for name in out.files()] == [2, 2, 1, 2, 2, 1]
    assert sorted(read(out, "parquet")["n"]) == list(range(10))
    assert len({Path(name).name for name in out.files()}) == 6


def test_large_frames_are_sorted_in_pieces(write: Any, read: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from airflow_provider_ubunye.engines.pandas import write as module

    monkeypatch.setattr(module, "_SORTED_BYTES", 400)
    frame = pd.DataFrame({"n": range(100), "p": [1, 2] * 50})
    out = write(frame, "parquet", partition_by=("p",))
    assert len(out.files()) == 8
    found = read(out, "parquet")
    assert found[found.p == 1].n.tolist() == list(range(0, 100, 2))


def test_row_groups_of_wide_rows_are_smaller(write: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from airflow_provider_ubunye.engines.pandas import columnar

    monkeypatch.setattr(columnar, "_GROUP_BYTES", 4_000)
    out = write(pd.DataFrame({"n": range(1000)}), "parquet")
    assert pq.read_metadata(out.folder / out.files()[0]).num_row_groups == 2


def test_frames_of_three_libraries(write: Any, read: Any) -> None:
    frame = pd.DataFrame({"n": [1, 2], "s": ["x", None]})
    for same in (frame, pa.Table.from_pandas(frame), pl.from_pandas(frame)):
        for file_format in FORMATS:
            assert read(write(same, file_format), file_format).equals(frame)
        assert read(write(same, "parquet", partition_by=("s",)), "parquet")["n"].tolist() == [2, 1]


def test_a_named_index_is_kept_and_a_row_number_is_not(write: Any, read: Any) -> None:
    frame = pd.DataFrame({"k": ["a", "b"], "n": [1, 2]})
    assert read(write(frame.set_index("k"), "parquet"), "parquet").equals(frame)
    assert read(write(frame[frame.n == 2], "parquet"), "parquet").equals(
        frame[frame.n == 2].reset_index(drop=True)
    )
    mixed = frame.set_index(["k", pd.Index([7, 8])])
    assert read(write(mixed, "parquet"), "parquet").equals(frame)


def test_text(write: Any, read: Any) -> None:
    frame = pd.DataFrame({"line": ["x", "", "é"], "p": [1, 1, 2]})
    out = write(frame, "text", partition_by=("p",), lineSep="|")
    assert (out.folder / out.files()[0]).read_text() == "x||"
    assert read(out, "text", lineSep="|")["value"].tolist() == ["x", "", "é"]


def test_nanoseconds_stay_where_they_say_something(write: Any) -> None:
    table = pa.table({"u": pa.array([1000], pa.timestamp("ns")), "n": pa.array([1001], pa.timestamp("ns"))})
    out = write(table, "parquet")
    schema = pq.read_schema(out.folder / out.files()[0])
    assert schema.field("u").type == pa.timestamp("us")
    assert schema.field("n").type == pa.timestamp("ns")


def test_orc_is_read_by_pyarrow(write: Any) -> None:
    out = write(plain(), "orc")
    assert paorc.read_table(out.folder / out.files()[0]).num_rows == 3


def test_large_parts_are_written_by_threads(write: Any, read: Any) -> None:
    frame = pd.DataFrame({"n": range(100_000), "p": np.arange(100_000) % 80})
    out = write(frame, "parquet", partition_by=("p",))
    assert len(out.files()) == 80
    out = write(frame, "parquet", maxRecordsPerFile=25_000)
    assert len(out.files()) == 4
    assert read(out, "parquet").equals(frame)
    assert len(write(frame, "parquet", maxRecordsPerFile=1000).files()) == 100


def test_more_large_parts_than_may_wait(write: Any, read: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from airflow_provider_ubunye.engines.pandas import write as module

    monkeypatch.setattr(module, "_THREAD_BYTES", 0)
    frame = pd.DataFrame({"n": range(200), "p": range(200)})
    assert read(write(frame, "parquet", partition_by=("p",)), "parquet")["n"].tolist() != []
    assert len(write(frame, "parquet", partition_by=("p",)).files()) == 200
