"""What a task reads and writes, as plain values that config, engines and core share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

APPEND = "append"
OVERWRITE = "overwrite"
OVERWRITE_PARTITIONS = "overwrite_partitions"
ERROR_IF_EXISTS = "errorifexists"
IGNORE = "ignore"
MODES = (APPEND, OVERWRITE, OVERWRITE_PARTITIONS, ERROR_IF_EXISTS, IGNORE)

FILE_FORMATS = ("parquet", "csv", "json", "orc", "avro", "text")


@dataclass(frozen=True)
class InputSpec:
    """One input.

    :param name: its name in ``sources``.
    :param format: one of :data:`FILE_FORMATS`, or the name of a registered one.
    :param path: absolute path of a file or folder, or a glob.
    :param options: reader options in Spark's spelling (``header``, ``sep``, ``inferSchema``, …).
    """

    name: str
    format: str
    path: str
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class OutputSpec:
    """One output.

    :param name: its name in the dict that ``transform`` returns: one path segment.
    :param format: one of :data:`FILE_FORMATS`, or the name of a registered one.
    :param path: absolute path of the output folder.
    :param mode: one of :data:`MODES`; a missing mode is ``append``.
    :param partition_by: columns that become hive folders, outermost first.
    :param options: writer options in Spark's spelling.
    """

    name: str
    format: str
    path: str
    mode: str = APPEND
    partition_by: tuple[str, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)
