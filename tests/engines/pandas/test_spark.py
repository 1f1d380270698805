"""The same folders on Spark: what this engine writes Spark reads, and the other way round."""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from airflow_provider_ubunye.engines.pandas.partitions import column_of, escape, folder_name

pytestmark = [pytest.mark.slow, pytest.mark.spark]

PARTITIONS = [
    "a/b",
    "a%2Fb",
    "a+b",
    "a=b",
    "2026-01-01 00:00",
    "trailing ",
    "😀",
    "Caf\u00e9",
    "Cafe\u0301",
    "~`!@#$^&*()-_[]{}|\\;:'\"<>,.?",
    "\x01\x1f\x7f\t",
    "x",
    None,
]


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    session = (
        SparkSession.builder.master("local[1]")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.shuffle.partitions", "1")
        .config("spark.sql.warehouse.dir", str(tmp_path_factory.mktemp("warehouse")))
        .getOrCreate()
    )
    yield session
    session.stop()


def test_partition_values_are_read_by_spark(spark: SparkSession, write: Any) -> None:
    frame = pa.table({"n": range(len(PARTITIONS)), "p": PARTITIONS})
    out = write(frame, "parquet", partition_by=("p",))
    found = {row.n: row.p for row in spark.read.parquet(str(out.folder)).collect()}
    assert found == dict(enumerate(PARTITIONS))


def test_partition_folders_are_named_as_spark_names_them(
    spark: SparkSession, write: Any, tmp_path: Path
) -> None:
    sql = (
        "select 1 n, true b, 7 i, 1.5D d, 1e20D big, -0.0D nz, double('nan') nan, 1.0E-5D sm, float(0.1) f, "
        "1e-7BD dec, date'2026-01-01' dt, timestamp'2026-01-01 00:00:00.1234' t, '' em, string(null) nu, 'a b' s"
    )
    columns = ("b", "i", "d", "big", "nz", "nan", "sm", "f", "dec", "dt", "t", "em", "nu", "s")
    spark.sql(sql).write.partitionBy(*columns).parquet(str(tmp_path / "o"))
    (theirs,) = [p.parent.relative_to(tmp_path / "o") for p in (tmp_path / "o").rglob("part-*.parquet")]
    frame = pa.table(
        {
            "n": [1],
            "b": [True],
            "i": [7],
            "d": [1.5],
            "big": [1e20],
            "nz": [-0.0],
            "nan": [float("nan")],
            "sm": [1e-5],
            "f": pa.array([0.1], pa.float32()),
            "dec": [Decimal("0.0000001")],
            "dt": [date(2026, 1, 1)],
            "t": [datetime(2026, 1, 1, 0, 0, 0, 123400, tzinfo=UTC)],
            "em": [""],
            "nu": pa.array([None], pa.string()),
            "s": ["a b"],
        }
    )
    out = write(frame, "parquet", partition_by=tuple(frame.column_names[1:]))
    assert Path(out.files()[0]).parent == theirs


INFERRED = [
    *(
        "1",
        "007",
        "-5",
        "+5",
        "-0",
        "99999999999",
        "99999999999999999999",
        "1_0",
        "٣",
        "0x10",
        "1L",
        "+",
        "-",
    ),
    *(
        "1.5",
        "1e5",
        "1E+2",
        "5.",
        ".5",
        "1e-3",
        "1d",
        "1f",
        " 1",
        "1 ",
        "0.0",
        "-1.5e-10",
        "1e400",
        ".",
        "e5",
        "1e",
    ),
    *("1e37", "1e38", "12345678901234567890123456789012345678", "100000000000000000000000000000000000000000"),
    *("NaN", "nan", "Infinity", "inf", "true", "a", "2026-01-01", "2026-1-1", "2026-02-30", "20260101"),
    *("0001-01-01", "9999-12-31", "10000-01-01", "2026-01-01T00:00:00", "2026-01-01 00:00"),
    *(
        "2026-01-01 00:00:00",
        "2026-01-01 00:00:00.1",
        "2026-01-01 00:00:00.123",
        "2026-01-01 00:00:00.123456",
    ),
    *("2026-01-01 24:00:00", "10:00:00", "10:00:00.5", "10:00:00.123456", "10:00", "1:00:00", "25:00:00"),
]


def test_partition_types_are_those_that_spark_infers(spark: SparkSession, tmp_path: Path) -> None:
    # Each value has a column of its own, all in one path.
    folder = tmp_path / "o"
    for position, text in enumerate(INFERRED):
        folder /= f"c{position}={escape(text)}"
    names = {
        pa.int32(): "int",
        pa.int64(): "bigint",
        pa.float64(): "double",
        pa.date32(): "date",
        pa.timestamp("us"): "timestamp",
        pa.time64("us"): "time(6)",
        pa.string(): "string",
        pa.large_string(): "string",
    }
    folder.mkdir(parents=True)
    (folder / "part.txt").write_text("row\n")
    frame = spark.read.text(str(tmp_path / "o"))
    theirs = {INFERRED[int(n[1:])]: kind for n, kind in frame.dtypes if n != "value"}
    ours = {}
    for text in INFERRED:
        kind = column_of([text]).type
        ours[text] = f"decimal({kind.precision},0)" if pa.types.is_decimal(kind) else names[kind]
    assert ours == theirs


@pytest.mark.parametrize("file_format", ["parquet", "orc", "csv", "json"])
def test_what_is_written_here_is_read_by_spark(spark: SparkSession, write: Any, file_format: str) -> None:
    frame = pd.DataFrame(
        {
            "i": pd.array([1, None, 2**62 + 1], "Int64"),
            "f": [1.0, None, 1.5],
            "s": ['a"b,\\ é', None, "c:\\temp\\"],
            "b": pd.array([True, None, False], "boolean"),
            "d": [date(2026, 1, 1), None, date(2026, 1, 2)],
            "t": pd.to_datetime(
                ["2026-01-01 10:00:00.123456", "NaT", "2026-01-01"], format="ISO8601"
            ).tz_localize("UTC"),
            "p": ["a/b", "x", "x"],
        }
    )
    out = write(frame, file_format, partition_by=("p",))
    reader = spark.read.option("header", True).option("inferSchema", True)
    rows = reader.load(str(out.folder), format=file_format).orderBy("i").collect()
    found = [[row[c] for c in ("i", "f", "s", "b", "p")] for row in rows]
    assert found == [
        [None, None, None, None, "x"],
        [1, 1.0, 'a"b,\\ é', True, "a/b"],
        [2**62 + 1, 1.5, "c:\\temp\\", False, "x"],
    ]
    assert str(rows[1]["d"]) == "2026-01-01"
    if file_format != "json":  # text there, without a schema
        assert rows[1]["t"].astimezone(UTC) == datetime(2026, 1, 1, 10, 0, 0, 123456, tzinfo=UTC)


@pytest.mark.parametrize("file_format", ["parquet", "orc", "csv", "json"])
def test_what_spark_writes_is_read_here(
    spark: SparkSession, read: Any, tmp_path: Path, file_format: str
) -> None:
    sql = (
        "select * from values "
        "(1L, 1.5D, 'a\"b,\\\\ \\'', true, date'2026-01-01', timestamp'2026-01-01 10:00:00', 'a/b'), "
        "(2L, null, null, null, null, null, null), "
        "(3L, 2.5D, 'x\\ny\\\\', false, null, null, '7') as t(i,f,s,b,d,t,p)"
    )
    spark.sql(sql).coalesce(1).write.option("header", True).partitionBy("p").format(file_format).save(
        str(tmp_path / "o")
    )
    found = read(tmp_path / "o", file_format).sort_values("i", ignore_index=True)
    assert found["i"].tolist() == [1, 2, 3]
    assert found["s"][0] == "a\"b,\\ '"
    assert found["s"][2] == "x\ny\\"
    assert found["f"].tolist()[::2] == [1.5, 2.5]
    assert found["b"].tolist() == [True, pd.NA, False]
    assert str(found["d"][0]) == "2026-01-01"
    assert pd.Timestamp(found["t"][0]).tz_localize(None) == pd.Timestamp("2026-01-01 10:00")
    assert found["p"].tolist()[::2] == ["a/b", "7"]
    assert pd.isna(found["p"][1])


def test_text_both_ways(spark: SparkSession, write: Any, read: Any, tmp_path: Path) -> None:
    out = write(pd.DataFrame({"value": ["x", "", "é"]}), "text", compression="gzip")
    assert [row.value for row in spark.read.text(str(out.folder)).collect()] == ["x", "", "é"]
    spark.createDataFrame([("x",), ("",), ("é",)], "value string").coalesce(1).write.text(str(tmp_path / "o"))
    assert read(tmp_path / "o", "text")["value"].tolist() == ["x", "", "é"]


@pytest.mark.parametrize("compression", ["gzip", "bzip2", "deflate"])
def test_compressed_text_is_read_by_spark(spark: SparkSession, write: Any, compression: str) -> None:
    out = write(pd.DataFrame({"n": range(1000)}), "csv", compression=compression)
    assert spark.read.csv(str(out.folder), header=True).count() == 1000


def test_an_empty_output_has_its_columns_on_spark(spark: SparkSession, write: Any) -> None:
    frame = pa.table(
        {"n": pa.array([], pa.int64()), "s": pa.array([], pa.string()), "p": pa.array([], pa.string())}
    )
    for file_format in ("parquet", "orc", "csv"):
        plain = write(frame, file_format, mode="overwrite")
        found = spark.read.option("header", True).load(str(plain.folder), format=file_format)
        assert found.columns == ["n", "s", "p"]
        split = write(frame, file_format, mode="overwrite", partition_by=("p",))
        found = spark.read.option("header", True).load(str(split.folder), format=file_format)
        assert found.columns == ["n", "s", "p"]
        if file_format != "orc":  # Spark can't read ORC, its own neither, whose only partition is null
            assert found.count() == 0


def test_a_folder_name_that_spark_made_is_ours(spark: SparkSession, tmp_path: Path) -> None:
    # Every ASCII character but NUL and the newline, which Spark's own commit can't rename.
    values = [f"x{chr(code)}y" for code in range(1, 128) if code != 10]
    rows = [(n, value) for n, value in enumerate(values)]
    spark.createDataFrame(rows, "n int, `c/%` string").coalesce(1).write.partitionBy("c/%").parquet(
        str(tmp_path / "o")
    )
    theirs = {name for name in os.listdir(tmp_path / "o") if not name.startswith(("_", "."))}
    assert theirs == {folder_name("c/%", value) for value in values}
