"""Which files are an input, and what their rows become."""

from __future__ import annotations

import gzip
import json
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import fastavro
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from airflow_provider_ubunye.core.errors import ConfigError, RunFailed


def put(path: Path, text: str | bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    root = tmp_path / "_in"  # a hidden root that the path names is read
    put(root / "b.csv", "n\n2\n")
    put(root / "a.csv", "n\n1\n")
    put(root / "a.txt", "n\n9\n")
    for hidden in ("_x.csv", ".x.csv", "_ubunye-0123/p.csv", ".tmp/p.csv", "_temporary/0/p.csv"):
        put(root / hidden, "n\n-1\n")
    put(root / "deep/c.csv", "n\n3\n")
    return root


def test_a_folder_is_its_visible_files(tree: Path, read: Any) -> None:
    assert read(tree, "csv", pathGlobFilter="*.csv")["n"].tolist() == [1, 2]
    assert read(tree, "csv", pathGlobFilter="{a,b}.{csv,txt}")["n"].tolist() == [1, 9, 2]
    assert read(tree, "csv", recursiveFileLookup="true", pathGlobFilter="*.csv")["n"].tolist() == [1, 2, 3]


def test_a_file_and_a_glob(tree: Path, read: Any) -> None:
    assert read(tree / "b.csv", "csv")["n"].tolist() == [2]
    assert read(tree / "*.csv", "csv")["n"].tolist() == [1, 2]
    assert read(tree / "**" / "*.csv", "csv")["n"].tolist() == [1, 2, 3]
    assert read(tree / "{a,b}.csv", "csv")["n"].tolist() == [1, 2]
    assert read(tree / "_x.csv", "csv")["n"].tolist() == [-1]


def test_a_path_that_exists_is_no_glob(tmp_path: Path, read: Any) -> None:
    put(tmp_path / "a[1].csv", "n\n1\n")
    put(tmp_path / "a1.csv", "n\n2\n")
    assert read(tmp_path / "a[1].csv", "csv")["n"].tolist() == [1]


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("nothing", "there is no file or folder"),
        ("no*", "nothing matches"),
        ("empty", "there are no data files in"),
    ],
)
def test_nothing_there_is_one_line(tmp_path: Path, read: Any, path: str, message: str) -> None:
    put(tmp_path / "empty/_SUCCESS", "")
    with pytest.raises(RunFailed, match=message):
        read(tmp_path / path, "parquet")


def test_no_path_is_configuration(read: Any) -> None:
    from airflow_provider_ubunye.core.specs import InputSpec
    from airflow_provider_ubunye.engines import engine

    for path in ("", "a\0b"):
        with pytest.raises(ConfigError, match="path"):
            engine("pandas").read(InputSpec("in", "csv", path))


def test_partition_columns_come_last_and_typed(tmp_path: Path, read: Any) -> None:
    put(tmp_path / "dt=2026-01-01/r=1/a.csv", "n,r\n1,overridden\n")
    put(tmp_path / "dt=2026-01-02/r=__HIVE_DEFAULT_PARTITION__/a.csv", "n\n2\n")
    put(tmp_path / "_dt=2026-01-03/a.txt", "")
    found = read(tmp_path, "csv", pathGlobFilter="*.csv")
    assert found.columns.tolist() == ["n", "r", "dt"]
    assert found["dt"].tolist() == [date(2026, 1, 1), date(2026, 1, 2)]
    assert found["r"].dtype == "Int32"
    assert found["r"].tolist() == [1, pd.NA]


def test_partition_columns_above_the_path_need_base_path(tmp_path: Path, read: Any) -> None:
    put(tmp_path / "dt=1/r=2/a.csv", "n\n1\n")
    assert read(tmp_path / "dt=1", "csv").columns.tolist() == ["n", "r"]
    assert read(tmp_path / "dt=1", "csv", basePath=str(tmp_path)).columns.tolist() == ["n", "dt", "r"]
    assert read(tmp_path / "dt=*" / "r=*" / "*.csv", "csv", basePath=str(tmp_path))["dt"].tolist() == [1]
    with pytest.raises(ConfigError, match="is not above"):
        read(tmp_path / "dt=1", "csv", basePath="/elsewhere")


def test_folders_that_are_partitioned_differently_are_refused(tmp_path: Path, read: Any) -> None:
    put(tmp_path / "dt=1/a.csv", "n\n1\n")
    put(tmp_path / "a.csv", "n\n1\n")
    with pytest.raises(RunFailed, match=r"partitioned by different columns: .* by none, .* by dt"):
        read(tmp_path, "csv")
    put(tmp_path / "dt=/a.csv", "n\n1\n")
    with pytest.raises(RunFailed, match="without a column or a value"):
        read(tmp_path, "csv")


def test_csv_types(tmp_path: Path, read: Any) -> None:
    text = (
        "i,big,f,b,d,t,z,s,hour,none\n"
        "007,99999999999999999999,1.5,true,2026-01-01,2026-01-01 10:00:00,2026-01-01T10:00:00.5Z,x,12:30,\n"
        ',1,,,,,,"",,\n'
    )
    found = read(put(tmp_path / "a.csv", text), "csv")
    assert found.iloc[0].tolist()[:4] == [7, Decimal(99999999999999999999), 1.5, True]
    assert found["d"][0] == date(2026, 1, 1)
    assert found["t"][0] == pd.Timestamp("2026-01-01 10:00")
    assert found["z"][0] == pd.Timestamp("2026-01-01 10:00:00.5", tz="UTC")
    assert found["hour"][0] == "12:30"
    assert found["i"].dtype == "Int64"
    assert found["s"].tolist() == ["x", ""]
    assert found["none"].isna().all()
    plain = read(tmp_path / "a.csv", "csv", inferSchema=False)
    assert plain["i"].tolist()[0] == "007"
    assert plain["d"].tolist()[0] == "2026-01-01"


def test_csv_columns_have_one_type_over_all_files(tmp_path: Path, read: Any) -> None:
    put(tmp_path / "a.csv", "s,f,t,n,d\n007,1,2026-01-01,,1\n")
    put(tmp_path / "b.csv", "f,s,t,n,d\n1.5,x,2026-01-01 10:00:00,,99999999999999999999\n")
    put(tmp_path / "c.csv", "")
    found = read(tmp_path, "csv")
    assert found["s"].tolist() == ["007", "x"]
    assert found["f"].tolist() == [1.0, 1.5]
    assert found["t"].tolist() == [pd.Timestamp("2026-01-01"), pd.Timestamp("2026-01-01 10:00")]
    assert found["d"].tolist() == [Decimal(1), Decimal(99999999999999999999)]


def test_csv_dialect(tmp_path: Path, read: Any) -> None:
    spark = r'"a\"b";"c:\\temp";c:\temp;"x;\"' + "\n" + '"two\nlines";"d""q"; sp ;NA\n'
    put(tmp_path / "a.csv", spark.replace(r'"x;\"', r'"x;\\"'))
    found = read(tmp_path, "csv", header=False, sep=";", nullValue="NA", multiLine=True)
    assert found.columns.tolist() == ["_c0", "_c1", "_c2", "_c3"]
    assert found.iloc[0].tolist() == ['a"b', "c:\\temp", "c:\\temp", "x;\\"]
    assert found.iloc[1].tolist()[:3] == ["two\nlines", 'd"q', " sp "]
    assert pd.isna(found.iloc[1, 3])
    put(tmp_path / "rfc/a.csv", 's,n\n"c:\\",1\n"a""b\\""",2\n')
    assert read(tmp_path / "rfc", "csv", escape='"')["s"].tolist() == ["c:\\", 'a"b\\"']


def test_csv_encoding_formats_and_broken_rows(tmp_path: Path, read: Any) -> None:
    put(tmp_path / "l.csv", "s,d,t\né,31/12/2026,31.12.2026 10:00:00\n".encode("latin-1"))
    found = read(
        tmp_path / "l.csv",
        "csv",
        encoding="latin-1",
        dateFormat="dd/MM/yyyy",
        timestampFormat="dd.MM.yyyy HH:mm:ss",
    )
    assert found.iloc[0].tolist() == ["é", date(2026, 12, 31), pd.Timestamp("2026-12-31 10:00")]
    with pytest.raises(RunFailed, match=r"column 's' of .*l\.csv is not UTF-8"):
        read(tmp_path / "l.csv", "csv")
    with pytest.raises(
        ConfigError,
        match="option 'dateFormat' for csv is 'QQ', must be a date pattern: 'Q' is not understood",
    ):
        read(tmp_path / "l.csv", "csv", encoding="latin-1", dateFormat="QQ")
    put(tmp_path / "r.csv", "a,b\n1,2\n3\n4,5\n")
    with pytest.raises(
        RunFailed, match=r"r\.csv can't be read as csv: CSV parse error: .*Expected 2 columns"
    ):
        read(tmp_path / "r.csv", "csv")
    assert read(tmp_path / "r.csv", "csv", mode="DROPMALFORMED")["a"].tolist() == [1, 4]
    put(tmp_path / "d.csv", "a,a\n1,2\n")
    with pytest.raises(RunFailed, match="two columns called 'a'"):
        read(tmp_path / "d.csv", "csv")


def test_an_empty_csv_is_named(tmp_path: Path, read: Any) -> None:
    """It has not even a header: without this, the task's code would miss its columns."""
    path = put(tmp_path / "a.csv", "")
    with pytest.raises(RunFailed) as error:
        read(path, "csv")
    assert error.value.what == f"input 'in': {path} is empty"
    put(tmp_path / "b.csv", "")
    with pytest.raises(RunFailed, match=f"input 'in': every file in {tmp_path} is empty"):
        read(tmp_path, "csv")
    put(tmp_path / "c.csv", "n\n1\n")
    assert read(tmp_path, "csv")["n"].tolist() == [1]


def test_json(tmp_path: Path, read: Any) -> None:
    rows: list[dict[str, Any]] = [
        {
            "n": 1,
            "t": "2026-01-01 00:00:00",
            "s": {"when": "2026-01-01T00:00:00Z"},
            "big": 99999999999999999999,
        },
        {},
        {"n": 2**60 + 1, "l": [1, None, 2**60 + 1], "late": True},
    ]
    put(tmp_path / "a.json.gz", gzip.compress("\n".join(map(json.dumps, rows)).encode()))
    put(tmp_path / "b.json", "{}\n{}\n")
    put(tmp_path / "c.json", "")
    assert read(tmp_path / "b.json", "json").shape == (2, 0)
    put(tmp_path / "p/x=1/a.json", "{}\n{}\n")
    assert read(tmp_path / "p", "json")["x"].tolist() == [1, 1]
    found = read(tmp_path, "json")
    assert len(found) == 5
    assert found["t"][0] == "2026-01-01 00:00:00"
    assert found["s"][0] == {"when": "2026-01-01T00:00:00Z"}
    assert found["big"][0] == Decimal(99999999999999999999)
    assert found["n"].tolist()[:3] == [1, pd.NA, 2**60 + 1]
    assert found["l"][2] == [1, None, 2**60 + 1]


def test_json_that_mixes_types_says_how_to_read_it(tmp_path: Path, read: Any) -> None:
    put(tmp_path / "a.json", '{"a": 1, "b": true, "c": [1.50]}\n')
    put(tmp_path / "b.json", '{"a": "x"}\n')
    with pytest.raises(
        RunFailed, match=r"column 'a' is int64 in one file and large_string in another"
    ) as error:
        read(tmp_path, "json")
    assert "primitivesAsString" in str(error.value.hint)
    found = read(tmp_path, "json", primitivesAsString=True)
    assert found["a"].tolist() == ["1", "x"]
    assert found["b"][0] == "true"
    assert list(found["c"][0]) == ["1.50"]
    put(tmp_path / "m/a.json", '[{"a": 1},\n {"a": 2}]')
    assert read(tmp_path / "m", "json", multiLine=True)["a"].tolist() == [1, 2]
    put(tmp_path / "n/a.json", "[1]")
    with pytest.raises(RunFailed, match="a row is 1, not an object"):
        read(tmp_path / "n", "json", multiLine=True)


def test_text(tmp_path: Path, read: Any) -> None:
    put(tmp_path / "a.txt", "one\r\n\ntwo\rthree")
    assert read(tmp_path, "text")["value"].tolist() == ["one", "", "two", "three"]
    assert read(tmp_path, "text", wholetext=True)["value"].tolist() == ["one\r\n\ntwo\rthree"]
    assert read(tmp_path, "text", lineSep="o")["value"].tolist() == ["", "ne\r\n\ntw", "\rthree"]
    put(tmp_path / "empty/a.txt", "")
    assert read(tmp_path / "empty", "text").columns.tolist() == ["value"]


def test_parquet_columns_are_merged_or_refused(tmp_path: Path, read: Any) -> None:
    pq.write_table(pa.table({"a": pa.array([1], pa.int32()), "b": ["x"]}), tmp_path / "1.parquet")
    pq.write_table(pa.table({"a": pa.array([2], pa.int64()), "c": [2.5]}), tmp_path / "2.parquet")
    with pytest.raises(RunFailed, match="column 'a' is int32 in one file and int64 in another") as error:
        read(tmp_path, "parquet")
    assert "mergeSchema" in str(error.value.hint)
    assert read(tmp_path, "parquet", mergeSchema=True)["a"].tolist() == [1, 2]
    pq.write_table(pa.table({"a": pa.array([2], pa.int32()), "c": [2.5]}), tmp_path / "2.parquet")
    assert read(tmp_path, "parquet").columns.tolist() == ["a", "b", "c"]
    assert read(tmp_path, "parquet", mergeSchema=False).columns.tolist() == ["a", "b"]


@pytest.mark.parametrize("file_format", ["parquet", "orc", "avro", "json"])
def test_a_damaged_file_is_named(tmp_path: Path, read: Any, file_format: str) -> None:
    path = put(tmp_path / f"bad.{file_format}", "PAR1 but no footer")
    with pytest.raises(RunFailed, match=f": {path} can't be read as {file_format}: ") as error:
        read(tmp_path, file_format)
    assert "\n" not in error.value.what


def test_moments_keep_their_zone(tmp_path: Path, read: Any) -> None:
    moments = pa.array([datetime(2026, 1, 1, tzinfo=UTC)], pa.timestamp("us", "Europe/Berlin"))
    pq.write_table(pa.table({"t": moments}), tmp_path / "1.parquet")
    assert str(read(tmp_path, "parquet")["t"].dtype) == "datetime64[us, Europe/Berlin]"


def avro(path: Path, kind: Any, rows: list[Any]) -> Path:
    with path.open("wb") as file:
        fastavro.writer(file, kind, rows)
    return path


def test_avro_of_another_writer(tmp_path: Path, read: Any) -> None:
    fixed = {"type": "fixed", "name": "two", "size": 2}
    fields = [
        {"name": "e", "type": {"type": "enum", "name": "colour", "symbols": ["red", "blue"]}},
        {"name": "x", "type": fixed},
        {"name": "again", "type": ["two", "null"]},
        {"name": "nothing", "type": ["null"]},
        {"name": "plain", "type": {"type": "long"}},
        {"name": "t", "type": {"type": "int", "logicalType": "time-millis"}},
    ]
    when = datetime.fromisoformat("2026-01-01T10:00").time()
    row = {"e": "red", "x": b"ab", "again": b"cd", "nothing": None, "plain": 1, "t": when}
    avro(tmp_path / "a.avro", {"type": "record", "name": "r", "fields": fields}, [row])
    assert read(tmp_path, "avro").iloc[0].to_dict() == row


@pytest.mark.parametrize(
    ("kind", "row", "message"),
    [
        ("long", 1, "its rows are int64, not records"),
        (
            {"type": "record", "name": "r", "fields": [{"name": "a", "type": ["int", "string"]}]},
            {"a": 1},
            "it has a union of 2 types, which is not read",
        ),
        (
            {"type": "record", "name": "r", "fields": [{"name": "a", "type": ["null", "r"]}]},
            {"a": None},
            "it has the type 'r' within itself, which is not read",
        ),
    ],
)
def test_avro_that_is_no_table_is_refused(
    tmp_path: Path, read: Any, kind: Any, row: Any, message: str
) -> None:
    path = avro(tmp_path / "a.avro", kind, [row])
    with pytest.raises(RunFailed) as error:
        read(path, "avro")
    assert error.value.what == f"input 'in': {path} can't be read as avro: {message}"


def test_json_numbers_that_are_large_and_not_whole_numbers(tmp_path: Path, read: Any) -> None:
    put(tmp_path / "a.json", '{"a": 1e30, "l": ["2026-01-01"]}\n{"a": 1e300}\n')
    found = read(tmp_path, "json")
    assert found["a"].tolist() == [1e30, 1e300]
    assert list(found["l"][0]) == ["2026-01-01"]


def test_csv_digits_beyond_microseconds_stay(tmp_path: Path, read: Any) -> None:
    put(tmp_path / "a.csv", "t,n,m\n2026-01-01 00:00:00.000000001,1e300,99999999999999999999\n,2e300,x\n")
    found = read(tmp_path, "csv")
    assert found["t"][0] == pd.Timestamp("2026-01-01 00:00:00.000000001")
    assert found["n"].tolist() == [1e300, 2e300]
    assert found["m"].tolist() == ["99999999999999999999", "x"]


@pytest.mark.parametrize("ending", ["gz", "bz2", "zst", "deflate"])
def test_a_damaged_compressed_file_is_named(tmp_path: Path, read: Any, ending: str) -> None:
    path = put(tmp_path / f"a.csv.{ending}", "not compressed")
    with pytest.raises(RunFailed, match=f": {path} can't be read as csv: "):
        read(path, "csv")
