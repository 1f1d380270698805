"""Parquet and ORC files, by pyarrow."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.orc as paorc
import pyarrow.parquet as pq
import pyarrow.types as pt

from airflow_provider_ubunye.core.errors import LandingFailed

# pyarrow's own default of rows, and a size in memory above which a row group gets fewer of them: a reader
# holds at least one row group at once.
_GROUP_ROWS = 1 << 20
_GROUP_BYTES = 512 << 20
# Not worth asking for the size, which is a good part of a small file's time.
_FEW_ROWS = 512


class Parquet:
    """Parquet. Timestamps in nanoseconds become microseconds where no digit is lost: Spark reads no others."""

    @staticmethod
    def read_files(paths: list[Path], options: Mapping[str, Any], where: str) -> list[pa.Table]:  # noqa: ARG004 - one shape for all formats
        """One table a file."""
        return _each(paths, _read_parquet)

    @staticmethod
    def prepare(table: pa.Table, options: Mapping[str, Any], where: str) -> pa.Table:  # noqa: ARG004 - as above
        """The table as it is written."""
        for position, field in enumerate(table.schema):
            if pt.is_timestamp(field.type) and field.type.unit == "ns":
                coarser = pa.timestamp("us", field.type.tz)
                try:
                    column = table.column(position).cast(coarser)
                except pa.ArrowInvalid:
                    continue  # The nanoseconds say something, and Parquet can hold them.
                table = table.set_column(position, field.with_type(coarser), column)
        return table

    @staticmethod
    def suffix(options: Mapping[str, Any]) -> str:  # noqa: ARG004 - as above
        """``.parquet``, whatever the compression."""
        return ".parquet"

    @staticmethod
    def write_file(table: pa.Table, path: Path, options: Mapping[str, Any]) -> None:
        """Write one file."""
        codec = options["compression"]
        pq.write_table(
            table,
            path,
            compression="none" if codec == "uncompressed" else codec.replace("lz4_raw", "lz4"),
            row_group_size=_group_rows(table),
        )


def _group_rows(table: pa.Table) -> int:
    if table.num_rows < _FEW_ROWS or table.nbytes <= _GROUP_BYTES:
        return _GROUP_ROWS
    return max(1, min(_GROUP_ROWS, int(table.num_rows * _GROUP_BYTES // table.nbytes)))


def _read_parquet(path: Path) -> pa.Table:
    with pq.ParquetFile(path, coerce_int96_timestamp_unit="us") as file:
        return file.read()


def _each(paths: list[Path], read: Any) -> list[pa.Table]:
    if len(paths) == 1:
        return [read(paths[0])]
    with ThreadPoolExecutor() as pool:
        return list(pool.map(read, paths))


class Orc:
    """ORC."""

    @staticmethod
    def read_files(paths: list[Path], options: Mapping[str, Any], where: str) -> list[pa.Table]:  # noqa: ARG004 - as above
        """One table a file."""
        return _each(paths, paorc.read_table)

    @staticmethod
    def prepare(table: pa.Table, options: Mapping[str, Any], where: str) -> pa.Table:  # noqa: ARG004 - as above
        """The table as it is written: a category's texts instead of their numbers.

        :raises LandingFailed: naming a column whose type ORC has not.
        """
        for position, field in enumerate(table.schema):
            if pt.is_dictionary(field.type):
                column = table.column(position).cast(field.type.value_type)
                table = table.set_column(position, field.name, column)
        for field in table.schema:
            if not _orc_has(field.type):
                hint = "give the column a type: all its values are null" if pt.is_null(field.type) else None
                raise LandingFailed(
                    f"{where}: column {field.name!r} is {field.type}, which orc can't hold", hint=hint
                )
        return table

    @staticmethod
    def suffix(options: Mapping[str, Any]) -> str:  # noqa: ARG004 - as above
        """``.orc``, whatever the compression."""
        return ".orc"

    @staticmethod
    def write_file(table: pa.Table, path: Path, options: Mapping[str, Any]) -> None:
        """Write one file."""
        codec = options["compression"]
        # By way of memory: where the ORC library can't write, as on a full disk, it aborts the process.
        memory = pa.BufferOutputStream()
        paorc.write_table(table, memory, compression="uncompressed" if codec == "none" else codec)
        with path.open("xb") as file:
            file.write(memory.getvalue())


def _orc_has(kind: pa.DataType) -> bool:
    if pt.is_struct(kind):
        return all(_orc_has(field.type) for field in kind)
    if pt.is_map(kind):
        return _orc_has(kind.key_type) and _orc_has(kind.item_type)
    if pt.is_list(kind) or pt.is_large_list(kind) or pt.is_fixed_size_list(kind):
        return _orc_has(kind.value_type)
    return bool(
        pt.is_boolean(kind)
        or pt.is_signed_integer(kind)
        or pt.is_float32(kind)
        or pt.is_float64(kind)
        or pt.is_decimal128(kind)
        or pt.is_date(kind)
        or pt.is_timestamp(kind)
        or pt.is_string(kind)
        or pt.is_large_string(kind)
        or pt.is_binary(kind)
        or pt.is_large_binary(kind)
        or pt.is_fixed_size_binary(kind)
    )
