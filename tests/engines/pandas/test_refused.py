"""Frames, columns and disks that can't be written: one line, naming the column or the file."""

from __future__ import annotations

import errno
import subprocess
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from airflow_provider_ubunye.core.errors import LandingFailed
from airflow_provider_ubunye.core.specs import FILE_FORMATS


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        ([1, 2], "must be a pandas DataFrame, a pyarrow Table or a polars DataFrame, not builtins.list"),
        (None, "not builtins.NoneType"),
        (pl.DataFrame({"a": [1]}).lazy(), "LazyFrame; call its collect() first"),
        (pa.chunked_array([[1]]), "not pyarrow.lib.ChunkedArray"),
        (pd.DataFrame({0: [1]}), "column 0 has a name that is not text"),
        (pd.DataFrame([[1, 2]], columns=["a", "a"]), "column 'a' is in the frame more than once"),
        (
            pa.Table.from_arrays([pa.array([1])] * 2, names=["a", "a"]),
            "column 'a' is in the frame more than once",
        ),
        (pd.DataFrame(), "the frame has no columns"),
        (pd.DataFrame({"a": [1, "x"]}), "column 'a' mixes int, str"),
        (pd.DataFrame({"a": [1, 2.5, True]}), "column 'a' mixes bool, float, int"),
        (pd.DataFrame({"a": [b"x", "y"]}), "column 'a' mixes bytes, str"),
        (pd.DataFrame({"b": [1], "a": [object()]}), "column 'a' can't be written: "),
        (pd.DataFrame({"b": [1], "a": [2**70]}), "column 'a' can't be written: "),
        (
            pd.DataFrame({"a": [1]}, index=pd.Index([1], name="a")),
            "'a' is the name of a column and of the index",
        ),
    ],
)
def test_what_is_no_frame_or_no_column_is_refused(write: Any, frame: Any, message: str) -> None:
    with pytest.raises(LandingFailed) as error:
        write(frame, "parquet")
    assert message in error.value.what
    assert "\n" not in error.value.what


@pytest.mark.parametrize(
    ("file_format", "column", "message"),
    [
        ("csv", pa.array([[1]]), "column 'c' is list<item: int64>, which csv can't hold"),
        ("csv", pa.array([b"x"]), "column 'c' is binary, which csv can't hold"),
        ("csv", pa.array([timedelta(1)]), "column 'c' is duration[us], which csv can't hold"),
        ("csv", pa.array([None], pa.string()), "column 'c' is the only one and has nulls"),
        ("json", pa.array([timedelta(1)]), "column 'c' is duration[us], which json can't hold"),
        ("orc", pa.array([1], pa.uint8()), "column 'c' is uint8, which orc can't hold"),
        ("orc", pa.nulls(1), "column 'c' is null, which orc can't hold"),
        (
            "orc",
            pa.array([[1]], pa.list_(pa.uint8())),
            "column 'c' is list<item: uint8>, which orc can't hold",
        ),
        ("avro", pa.array([1], pa.uint64()), "column 'c' can't be written to avro: avro has no uint64"),
        ("avro", pa.array([1], pa.timestamp("ns")), "column 'c' has nanoseconds, which avro can't hold"),
        ("avro", pa.array([{"a-b": 1}]), "column 'c' can't be written to avro: 'a-b' is not a name there"),
        ("text", pa.array([1]), "exactly one column of text besides its partitions, not c (int64)"),
        ("text", pa.array(["a\nb"]), "column 'c' has a line end within a value"),
        ("text", pa.array(["a", None]), "column 'c' has nulls"),
    ],
)
def test_what_a_format_can_not_hold_is_refused_naming_the_column(
    write: Any, file_format: str, column: pa.Array, message: str
) -> None:
    with pytest.raises(LandingFailed) as error:
        write(pa.table({"c": column}), file_format)
    assert message in error.value.what
    assert "\n" not in error.value.what


def test_a_full_disk_is_one_line(write: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any, **__: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(pq, "write_table", full)
    with pytest.raises(
        LandingFailed,
        match=r"^output 'out': part-0000\d-.*\.parquet could not be written: No space left on device$",
    ):
        write(pd.DataFrame({"n": range(200), "p": range(200)}), "parquet", partition_by=("p",))
    with pytest.raises(LandingFailed, match="No space left on device"):
        write(pd.DataFrame({"n": range(200_000)}), "parquet", maxRecordsPerFile=50_000)  # by threads
    mkdir = Path.mkdir
    monkeypatch.setattr(
        Path, "mkdir", lambda self, *a, **k: full() if self.name == "p=1" else mkdir(self, *a, **k)
    )
    with pytest.raises(LandingFailed, match="p=1 could not be made: No space left on device"):
        write(pd.DataFrame({"n": [1], "p": [1]}), "parquet", partition_by=("p",))


_NO_ROOM = """
import pathlib, resource, sys
import pandas as pd
from airflow_provider_ubunye.core.errors import LandingFailed
from airflow_provider_ubunye.core.specs import FILE_FORMATS, OutputSpec
from airflow_provider_ubunye.engines import engine

class Folder:
    folder = pathlib.Path(sys.argv[1])
    def part_name(self, index, suffix):
        return f"part-{index}{suffix}"

resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
frame = pd.DataFrame({"value": [str(n * n) for n in range(10_000)]})
for file_format in FILE_FORMATS:
    try:
        engine("pandas").stage(frame, OutputSpec("o", file_format, "/x"), Folder())
    except LandingFailed as error:
        print(error.what)
"""


def test_a_write_that_the_system_stops_is_an_error_in_every_format(tmp_path: Path) -> None:
    # In a process of its own: pyarrow's ORC writer, left to itself, aborts it.
    done = subprocess.run(
        [sys.executable, "-c", _NO_ROOM, str(tmp_path)], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert len(lines) == len(FILE_FORMATS)
    assert all("could not be written" in line and "File too large" in line for line in lines)
