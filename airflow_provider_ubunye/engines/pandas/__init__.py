"""The pandas engine: pandas frames and Arrow tables, files by pyarrow and fastavro."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from airflow_provider_ubunye.core.specs import FILE_FORMATS, InputSpec, OutputSpec
from airflow_provider_ubunye.engines.formats import registered_format

if TYPE_CHECKING:
    import pandas


class Staging(Protocol):
    """Where an output's files are written before they land."""

    @property
    def folder(self) -> Path:
        """An existing, empty, local folder."""

    def part_name(self, index: int, suffix: str) -> str:
        """The name of data file number ``index``; ``suffix`` is like ``.parquet`` or ``.json.gz``."""


class PandasEngine:
    """Reads files into pandas frames, and writes frames into a staging folder."""

    name = "pandas"

    def check(self, spec: InputSpec | OutputSpec, where: str, *, later: Collection[str] = ()) -> None:
        """Check an input's or output's options before anything is read. Imports no library that is heavy.

        The options of a registered format are its own and not checked.

        :param where: where the options stand, for the error.
        :param later: options whose values are not known yet: only their names are checked.
        :raises ConfigError: an option that isn't understood, is given twice, or has a wrong value.
        """
        if spec.format not in FILE_FORMATS:
            return
        from airflow_provider_ubunye.engines.pandas.options import READ, WRITE, parse_options

        direction = WRITE if isinstance(spec, OutputSpec) else READ
        parse_options(spec.format, direction, spec.options, where, later=later)

    def read(self, spec: InputSpec) -> pandas.DataFrame:
        """All rows of an input.

        :raises ConfigError: an unknown format or option.
        :raises RunFailed: nothing is there, or it can't be read as that format.
        """
        if spec.format not in FILE_FORMATS:
            frame: pandas.DataFrame = registered_format(spec.format, "read").read(spec)
            return frame
        from airflow_provider_ubunye.engines.pandas.read import read

        return read(spec)

    def stage(self, frame: Any, spec: OutputSpec, staging: Staging) -> int:
        """Write a frame's data files below ``staging.folder``.

        Files are not synced, and after an error some may be left in the folder: nothing there counts
        before the run has claimed it.

        :param frame: a pandas DataFrame, a pyarrow Table, or a frame that gives an Arrow stream (polars).
        :returns: the number of rows written.
        :raises ConfigError: an unknown format or option, or partition columns that the frame lacks.
        :raises LandingFailed: the frame can't be written in that format without loss, or the disk failed.
        """
        if spec.format not in FILE_FORMATS:
            return int(registered_format(spec.format, "stage").stage(frame, spec, staging))
        from airflow_provider_ubunye.engines.pandas.write import stage

        return stage(frame, spec, staging)
