"""Writing an output: check the frame, split it by its partition columns, write the part files."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.types as pt

from airflow_provider_ubunye.core.errors import ConfigError, LandingFailed, UbunyeError
from airflow_provider_ubunye.core.specs import APPEND, OVERWRITE_PARTITIONS, OutputSpec
from airflow_provider_ubunye.engines.formats import did_you_mean
from airflow_provider_ubunye.engines.pandas.files import FileFormat, file_format
from airflow_provider_ubunye.engines.pandas.frames import first_line, to_table
from airflow_provider_ubunye.engines.pandas.options import WRITE, parse_options
from airflow_provider_ubunye.engines.pandas.partitions import DEFAULT_PARTITION, folder_name

if TYPE_CHECKING:
    from airflow_provider_ubunye.engines.pandas import Staging

# Sorting copies what it sorts; a larger frame is sorted in pieces of this size, each its own part files.
_SORTED_BYTES = 1 << 30
_PENDING_PARTS = 64
# Below this, handing a part to a thread takes longer than writing it (measured with Parquet).
_THREAD_BYTES = 1 << 16


@dataclass(frozen=True)
class _Part:
    """Rows for one folder, which exists."""

    folder: Path
    rows: pa.Table


def stage(frame: Any, spec: OutputSpec, staging: Staging) -> int:
    """Write a frame in a file format. See ``PandasEngine.stage``.

    A frame without rows writes no file in the modes ``append`` and ``overwrite_partitions``. In the others
    it writes one with the frame's columns, so that the new output can be read; a partitioned one in the
    folder of the null partition, so that the partition columns are there too.
    """
    where = f"output {spec.name!r}"
    options = parse_options(spec.format, WRITE, spec.options, where)
    writer = file_format(spec.format)
    table = to_table(frame, where)
    _check_partition_columns(table, spec.partition_by, where)
    body = [name for name in table.column_names if name not in spec.partition_by]
    prepared = writer.prepare(table.select(body) if spec.partition_by else table, options, where)
    if table.num_rows == 0:
        if spec.mode in (APPEND, OVERWRITE_PARTITIONS):
            return 0
        null = tuple(folder_name(name, None) for name in spec.partition_by)
        parts: Iterator[_Part] = iter([_Part(_Folders(staging.folder, where).made(null), prepared)])
    elif spec.partition_by:
        parts = _split(prepared, table.select(list(spec.partition_by)), staging.folder, where)
    else:
        parts = iter([_Part(staging.folder, prepared)])
    # A guess from the average: asking each part for its size takes a good part of a small one's time.
    thread_rows = _THREAD_BYTES * table.num_rows // max(1, prepared.nbytes)
    _write(parts, _Writer(writer, options, where), staging, thread_rows)
    return int(table.num_rows)


def _check_partition_columns(table: pa.Table, columns: tuple[str, ...], where: str) -> None:
    for name in columns:
        if name not in table.column_names:
            raise ConfigError(
                f"{where}: partition_by names column {name!r}, which the frame lacks"
                f"{did_you_mean(name, table.column_names)}",
            )
    if len(set(columns)) < len(columns):
        raise ConfigError(f"{where}: partition_by names a column twice")
    if columns and len(columns) == table.num_columns:
        raise ConfigError(f"{where}: partition_by names all columns: no column is left for the files")


@dataclass(frozen=True)
class _Writer:
    """Writes part files in one format with the output's options."""

    file_format: FileFormat
    options: Mapping[str, Any]
    where: str

    def write(self, rows: pa.Table, folder: Path, name: str) -> None:
        """Write one part file.

        :raises LandingFailed: whatever the format's library or the disk had against it.
        """
        try:
            self.file_format.write_file(rows, folder / name, self.options)
        except UbunyeError:
            raise
        except (OSError, ValueError, TypeError, ArithmeticError, pa.ArrowException) as error:
            raise LandingFailed(f"{self.where}: {name} could not be written: {first_line(error)}") from error


def _write(parts: Iterator[_Part], writer: _Writer, staging: Staging, thread_rows: int) -> None:
    """Write all parts, each in files of at most ``maxRecordsPerFile`` rows.

    :param thread_rows: a file of more rows than these is written by a thread.
    """
    suffix = writer.file_format.suffix(writer.options)
    indices = count()
    with ThreadPoolExecutor(min(8, os.cpu_count() or 1)) as pool:
        pending: deque[Future[None]] = deque()
        try:
            for part in parts:
                for rows in _files_of(part.rows, writer.options["maxRecordsPerFile"]):
                    name = staging.part_name(next(indices), suffix)
                    if rows.num_rows <= thread_rows:
                        writer.write(rows, part.folder, name)
                        continue
                    pending.append(pool.submit(writer.write, rows, part.folder, name))
                    # Parts are made as they are written, so that sorted pieces do not pile up in memory.
                    if len(pending) > _PENDING_PARTS:
                        pending.popleft().result()
            for future in pending:
                future.result()
        except BaseException:
            # Files that nobody will claim need not be written.
            pool.shutdown(cancel_futures=True)
            raise


def _files_of(rows: pa.Table, most: int) -> Iterator[pa.Table]:
    if not most or rows.num_rows <= most:
        yield rows
        return
    for start in range(0, rows.num_rows, most):
        yield rows.slice(start, most)


def _split(body: pa.Table, keys: pa.Table, staging: Path, where: str) -> Iterator[_Part]:
    """Rows by partition: one sort for all, then slices. The order of rows within a partition is kept."""
    folders = _Folders(staging, where)
    size = body.nbytes + keys.nbytes
    step = body.num_rows if size <= _SORTED_BYTES else max(1, body.num_rows * _SORTED_BYTES // size)
    for start in range(0, body.num_rows, step):
        rows = body.slice(start, step)
        columns = [_codes(keys.slice(start, step), name, where) for name in keys.column_names]
        group = np.zeros(rows.num_rows, dtype=np.int64)
        for codes, names in columns:
            group = group * len(names) + codes
            if len(names) > 1 and int(group.max(initial=0)) > 2**31:
                # Numbered anew, so that a product over many columns does not overflow.
                group = np.unique(group, return_inverse=True)[1].astype(np.int64)
        if (group[1:] < group[:-1]).any():
            small = group.astype(np.uint16) if int(group.max()) < 2**16 else group
            order = np.argsort(small, kind="stable")
            rows, group = rows.take(pa.array(order)), group[order]
        else:
            order = np.arange(len(group))
        starts = np.concatenate(([0], np.flatnonzero(np.diff(group)) + 1, [len(group)]))
        for first, end in zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True):
            row = order[first]
            folder = folders.made(tuple(names[codes[row]] for codes, names in columns))
            yield _Part(folder, rows.slice(first, end - first))


def _codes(keys: pa.Table, name: str, where: str) -> tuple[Any, list[str]]:
    """A partition column as numbers, and the folder's name that each number stands for.

    :raises LandingFailed: a value that can't be a folder's name, or two that would share one.
    """
    column = keys.column(name)
    kind = column.type
    if pt.is_dictionary(kind):
        column = column.cast(kind.value_type)
    elif (pt.is_timestamp(kind) and kind.unit == "ns") or kind == pa.time64("ns"):
        coarser = pa.timestamp("us", kind.tz) if pt.is_timestamp(kind) else pa.time64("us")
        try:
            column = column.cast(coarser)
        except pa.ArrowInvalid:
            raise LandingFailed(
                f"{where}: partition column {name!r} has nanoseconds, which Spark can't read back"
            ) from None
    elif pt.is_float16(kind) or pt.is_float32(kind):
        return _float32_codes(column, name, where)
    try:
        encoded = column.combine_chunks().dictionary_encode(null_encoding="encode")
        if isinstance(encoded, pa.ChunkedArray):
            encoded = encoded.combine_chunks()
        values = encoded.dictionary.to_pylist()
    except (pa.ArrowException, ValueError, OverflowError) as error:
        raise LandingFailed(
            f"{where}: column {name!r} ({kind}) can't be a partition: {first_line(error)}"
        ) from error
    return _named(encoded.indices.to_numpy(zero_copy_only=False), values, name, where)


def _float32_codes(column: pa.ChunkedArray, name: str, where: str) -> tuple[Any, list[str]]:
    """As :func:`_codes`; the shortest digits of a 32-bit float are not those of the same 64-bit one."""
    encoded = column.cast(pa.float32()).combine_chunks().dictionary_encode(null_encoding="encode")
    if isinstance(encoded, pa.ChunkedArray):
        encoded = encoded.combine_chunks()
    texts = encoded.dictionary.cast(pa.string()).to_pylist()
    values = [None if text is None else float(text) for text in texts]
    return _named(encoded.indices.to_numpy(zero_copy_only=False), values, name, where)


def _named(codes: Any, values: list[Any], column: str, where: str) -> tuple[Any, list[str]]:
    names: dict[str, Any] = {}
    for value in values:
        try:
            folder = folder_name(column, value)
        except ValueError as error:
            raise LandingFailed(
                f"{where}: partition column {column!r} has the value {_shown(value)}: {error}"
            ) from None
        if folder in names:
            raise LandingFailed(
                f"{where}: partition column {column!r} has {_shown(names[folder])} and {_shown(value)}, "
                f"which are one folder, {folder}: no reader could tell them apart",
                hint="replace one of them" if folder.endswith(DEFAULT_PARTITION) else None,
            )
        names[folder] = value
    return codes, list(names)


def _shown(value: Any) -> str:
    text = "null" if value is None else repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


class _Folders:
    """Makes the partition folders, and notices when the file system takes two names for one.

    A file system that folds case or normalises Unicode would put the rows of ``A`` and ``a`` together.
    """

    def __init__(self, staging: Path, where: str) -> None:
        self._staging = staging
        self._where = where
        self._made: set[Path] = set()

    def made(self, names: tuple[str, ...]) -> Path:
        """The folder of one partition."""
        folder = self._staging
        for name in names:
            folder = folder / name
            if folder in self._made:
                continue
            try:
                folder.mkdir()
            except FileExistsError:
                raise LandingFailed(
                    f"{self._where}: the partition folder {folder.relative_to(self._staging)} is another one's "
                    "too: this file system does not tell them apart",
                ) from None
            except OSError as error:
                raise LandingFailed(
                    f"{self._where}: the partition folder {folder.relative_to(self._staging)} could not be made: "
                    f"{first_line(error)}",
                ) from error
            self._made.add(folder)
        return folder
