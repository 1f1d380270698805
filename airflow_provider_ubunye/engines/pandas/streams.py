"""Whole text files: compressed by what the name ends in, in any encoding."""

from __future__ import annotations

import bz2
import codecs
import gzip
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from airflow_provider_ubunye.core.errors import LandingFailed
from airflow_provider_ubunye.engines.pandas.render import is_text

ENDINGS = {"gzip": ".gz", "bzip2": ".bz2", "zstd": ".zst", "deflate": ".deflate"}
# Rows that are rendered at once: few enough that the text of a batch stays small beside the frame.
BATCH_ROWS = 65_536


def suffix(kind: str, options: Mapping[str, Any]) -> str:
    """What a text file's name ends in: ``.csv``, ``.json.gz``."""
    return kind + ENDINGS.get(options["compression"], "")


def read_utf8(path: Path, encoding: str) -> bytes:
    """A file's text, decompressed and as UTF-8. Text that says it is UTF-8 is not checked here.

    :raises ValueError: it is not text in that encoding.
    :raises OSError: it can't be read, or is damaged.
    """
    data = path.read_bytes()
    if path.suffix == ".gz":
        data = gzip.decompress(data)
    elif path.suffix == ".bz2":
        data = bz2.decompress(data)
    elif path.suffix == ".zst":
        with pa.CompressedInputStream(pa.BufferReader(data), "zstd") as stream:
            data = stream.read()
    elif path.suffix == ".deflate":
        try:
            data = zlib.decompress(data)
        except zlib.error as error:
            raise OSError(f"damaged: {error}") from error
    return data if encoding == "utf-8" else data.decode(encoding).encode()


class TextWriter:
    """Writes lines of an Arrow text array, encoded."""

    def __init__(self, stream: Any, encoding: str) -> None:
        self._stream = stream
        # One encoder for the whole file: UTF-16 marks its byte order once.
        self._encode = None if encoding == "utf-8" else codecs.getincrementalencoder(encoding)().encode

    def write(self, text: str) -> None:
        """A piece of text, as a header."""
        self._stream.write(text.encode() if self._encode is None else self._encode(text))

    def write_lines(self, lines: pa.Array, line_end: str) -> None:
        """Every value, each followed by ``line_end``. There is no null among them."""
        ended = pc.binary_join_element_wise(lines, pa.scalar(line_end, lines.type), pa.scalar("", lines.type))
        if len(ended) == 0:
            return
        # The values lie one behind the other in one buffer: the file's bytes as they are.
        _, offsets, data = ended.buffers()
        first, last = memoryview(offsets).cast("q")[ended.offset], memoryview(offsets).cast("q")[len(ended)]
        piece = data.slice(first, last - first)
        self._stream.write(piece if self._encode is None else self._encode(piece.to_pybytes().decode()))


@contextmanager
def text_writer(path: Path, options: Mapping[str, Any]) -> Iterator[TextWriter]:
    """A new text file, in the compression and encoding that the options name."""
    compression = options["compression"]
    with path.open("xb") as file:
        if compression == "gzip":
            with gzip.GzipFile(fileobj=file, mode="wb", compresslevel=6, mtime=0, filename="") as packed:
                yield TextWriter(packed, options["encoding"])
        elif compression == "bzip2":
            with bz2.BZ2File(file, "wb") as packed:
                yield TextWriter(packed, options["encoding"])
        elif compression == "zstd":
            with pa.CompressedOutputStream(file, "zstd") as packed:
                yield TextWriter(packed, options["encoding"])
        elif compression == "deflate":
            deflate = _Deflate(file)
            yield TextWriter(deflate, options["encoding"])
            deflate.finish()
        else:
            yield TextWriter(file, options["encoding"])


class _Deflate:
    """Hadoop's ``.deflate``: one zlib stream."""

    def __init__(self, file: Any) -> None:
        self._file = file
        self._packer = zlib.compressobj()

    def write(self, data: Any) -> None:
        self._file.write(self._packer.compress(data))

    def finish(self) -> None:
        self._file.write(self._packer.flush())


def check_encodable(table: pa.Table, options: Mapping[str, Any], where: str) -> None:
    """Refuse text that the encoding has no characters for.

    :raises LandingFailed: naming the column and the character.
    """
    if options["encoding"].startswith("utf"):
        return
    for name, column in zip(table.column_names, table.columns, strict=True):
        if not is_text(column.type):
            continue
        for value in pc.unique(column).to_pylist():
            try:
                (value or "").encode(options["encoding"])
            except UnicodeEncodeError as error:
                character = error.object[error.start]
                raise LandingFailed(
                    f"{where}: column {name!r} has {character!r}, which {options['encoding']} can't express"
                ) from None
