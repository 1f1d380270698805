"""The file formats by name, in one shape that reading and writing share."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    import pyarrow as pa


class FileFormat(Protocol):
    """What a file format can do. Options are parsed ones."""

    def read_files(self, paths: list[Path], options: Mapping[str, Any], where: str) -> list[pa.Table]:
        """The content of each file, in the order of ``paths``."""

    def prepare(self, table: pa.Table, options: Mapping[str, Any], where: str) -> pa.Table:
        """The table as it will be written, or a refusal that names the column which can't be."""

    def suffix(self, options: Mapping[str, Any]) -> str:
        """What the name of a data file ends in."""

    def write_file(self, table: pa.Table, path: Path, options: Mapping[str, Any]) -> None:
        """Write a prepared table, or some rows of it, as one new file."""


def file_format(name: str) -> FileFormat:
    """The format called ``name``: one of ``FILE_FORMATS``. Only its own libraries are imported."""
    if name in ("parquet", "orc"):
        from airflow_provider_ubunye.engines.pandas.columnar import Orc, Parquet

        return Parquet() if name == "parquet" else Orc()
    from importlib import import_module

    module: Any = import_module(f"airflow_provider_ubunye.engines.pandas.{name}_files")
    found: FileFormat = module
    return found
