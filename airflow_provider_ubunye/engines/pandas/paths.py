"""The data files of an input: one file, a folder with its hive partitions, or a glob.

Hidden names (beginning with ``_`` or ``.``) are not data, below what the path names itself. A folder below
the root that is not ``column=value`` is looked into only with ``recursiveFileLookup``, as in Spark.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from airflow_provider_ubunye.core.errors import ConfigError, RunFailed
from airflow_provider_ubunye.core.globs import braces, is_glob
from airflow_provider_ubunye.engines.pandas.partitions import parse_folder


@dataclass(frozen=True)
class DataFile:
    """A file to read.

    :param partitions: the text of each partition column, outermost first; None for null.
    """

    path: Path
    partitions: tuple[tuple[str, str | None], ...] = ()


def data_files(path: str, options: Mapping[str, Any], where: str) -> list[DataFile]:
    """All data files that ``path`` names, in the order of their names.

    :param options: parsed reader options.
    :param where: the input, for errors.
    :raises ConfigError: no path, or a ``basePath`` that is not above it.
    :raises RunFailed: nothing is there, or folders disagree about the partition columns.
    """
    if not path or "\0" in path:
        what = "has no path" if not path else "has a path with a NUL character"
        raise ConfigError(f"{where} {what}")
    recursive = bool(options["recursiveFileLookup"])
    name_filter: str | None = options["pathGlobFilter"]
    patterns = None if name_filter is None else braces(name_filter)
    roots = [Path(path)] if os.path.lexists(path) else sorted(_matches(path))
    if not roots:
        what = "nothing matches" if is_glob(path) else "there is no file or folder"
        raise RunFailed(f"{where}: {what} {path}")
    files: list[DataFile] = []
    for root in roots:
        above = () if recursive else _partitions_above(root, options["basePath"], where)
        found = _walk(root, above, recursive, where) if root.is_dir() else [DataFile(root, above)]
        for file in found:
            if patterns is None or any(fnmatchcase(file.path.name, pattern) for pattern in patterns):
                files.append(file)
    if not files:
        hint = None if recursive else "files in sub-folders are read with the option recursiveFileLookup"
        raise RunFailed(f"{where}: there are no data files in {path}", hint=hint)
    _check_same_columns(files, where)
    return files


def _walk(
    folder: Path, partitions: tuple[tuple[str, str | None], ...], recursive: bool, where: str
) -> Iterator[DataFile]:
    with os.scandir(folder) as listing:
        entries = sorted(listing, key=lambda entry: entry.name)
    for entry in entries:
        partition = None if recursive else parse_folder(entry.name)
        if entry.is_dir():
            if entry.name.startswith(".") or (entry.name.startswith("_") and partition is None):
                continue
            if recursive:
                yield from _walk(Path(entry.path), (), recursive, where)
            elif partition is not None:
                yield from _walk(Path(entry.path), (*partitions, partition), recursive, where)
            elif "=" in entry.name:
                raise RunFailed(f"{where}: {entry.path} is a partition folder without a column or a value")
        elif not entry.name.startswith(("_", ".")):
            yield DataFile(Path(entry.path), partitions)


def _partitions_above(root: Path, base: str | None, where: str) -> tuple[tuple[str, str | None], ...]:
    """The partition folders between ``basePath`` and what the path names."""
    if base is None:
        return ()
    try:
        between = root.relative_to(base)
    except ValueError:
        raise ConfigError(f"{where}: option 'basePath' is {base!r}, which is not above {root}") from None
    parts = between.parts if root.is_dir() else between.parts[:-1]
    return tuple(found for part in parts if (found := parse_folder(part)) is not None)


def _matches(pattern: str) -> set[Path]:
    found: set[Path] = set()
    for one in braces(pattern):
        named = set(Path(one).parts)
        for match in glob.iglob(one, recursive=True, include_hidden=True):
            path = Path(match)
            # A wildcard does not find hidden names; a hidden name that the pattern spells out does.
            if not any(part.startswith(("_", ".")) and part not in named for part in path.parts):
                found.add(path)
    return found


def _check_same_columns(files: Iterable[DataFile], where: str) -> None:
    """Refuse folders that are partitioned differently: a value would be missing for some of the rows."""
    seen: dict[tuple[str, ...], Path] = {}
    for file in files:
        seen.setdefault(tuple(column for column, _ in file.partitions), file.path)
    partitioned = {columns: path for columns, path in seen.items() if columns}
    if len(seen) > 1:
        (one, first), (two, second) = list((partitioned if len(partitioned) > 1 else seen).items())[:2]
        raise RunFailed(
            f"{where}: files are partitioned by different columns: {first} by {_named(one)}, "
            f"{second} by {_named(two)}",
            hint="read them as they are with the option recursiveFileLookup, or give each its own input",
        )


def _named(columns: tuple[str, ...]) -> str:
    return "/".join(columns) or "none"
