"""A folder to write into and the two calls that everything here is about."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import pytest

from airflow_provider_ubunye.core.specs import InputSpec, OutputSpec
from airflow_provider_ubunye.engines import engine


@dataclass(frozen=True)
class Folder:
    """The writer's side of a landing: a folder and names for part files."""

    folder: Path

    def part_name(self, index: int, suffix: str) -> str:
        return f"part-{index:05d}-0123456789ab{suffix}"

    def files(self) -> list[str]:
        return sorted(str(p.relative_to(self.folder)) for p in self.folder.rglob("*") if p.is_file())


def duckdb_rows(query: str) -> list[Any]:
    """What duckdb answers."""
    answer = duckdb.sql(query)
    assert answer is not None
    return answer.fetchall()


Write = Callable[..., Folder]
Read = Callable[..., pd.DataFrame]


@pytest.fixture
def write(tmp_path_factory: pytest.TempPathFactory) -> Write:
    """Write a frame into a new folder: ``write(frame, "csv", partition_by=["dt"], mode="append", sep=";")``."""

    def write_frame(
        frame: Any,
        file_format: str,
        *,
        partition_by: tuple[str, ...] = (),
        mode: str = "append",
        **options: Any,
    ) -> Folder:
        folder = Folder(tmp_path_factory.mktemp("out"))
        spec = OutputSpec("out", file_format, "/nowhere", mode, tuple(partition_by), options)
        rows = engine("pandas").stage(frame, spec, folder)
        assert rows == len(frame)
        return folder

    return write_frame


@pytest.fixture
def read() -> Read:
    """Read a path: ``read(folder, "csv", sep=";")``."""

    def read_path(path: Path | Folder, file_format: str, **options: Any) -> pd.DataFrame:
        where = path.folder if isinstance(path, Folder) else path
        return engine("pandas").read(InputSpec("in", file_format, str(where), options))

    return read_path


@pytest.fixture
def query() -> Callable[[str], list[Any]]:
    """``query("from 'x.csv'")``: the rows that duckdb gives."""
    return duckdb_rows
