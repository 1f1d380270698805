"""Where inputs and outputs are: absolute paths of local or shared disks, and outputs that get on together."""

from __future__ import annotations

import os
import re
import unicodedata
from collections.abc import Iterator, Sequence
from pathlib import Path

from airflow_provider_ubunye.core.errors import ConfigError
from airflow_provider_ubunye.core.globs import braces, is_glob, names
from airflow_provider_ubunye.core.specs import (
    APPEND,
    FILE_FORMATS,
    OVERWRITE,
    OVERWRITE_PARTITIONS,
    InputSpec,
    OutputSpec,
)
from airflow_provider_ubunye.tasks.folder import TaskFolder
from airflow_provider_ubunye.tasks.secrets import PREFIX

# Two letters at least: C:/data is a Windows drive.
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.\-]+):/")
_OBJECT_STORES = frozenset(
    {"s3", "s3a", "s3n", "gs", "gcs", "az", "adl", "abfs", "abfss", "wasb", "wasbs", "oss", "r2"}
)
_REPLACING = frozenset({OVERWRITE, OVERWRITE_PARTITIONS})

STATE_FOLDER = ".ubunye"
"""Where the state is kept below the use case folder: no output may lie in it."""


def resolve_path(text: str, base: Path, key: str) -> str:
    """An absolute, normalised path. Nothing is opened.

    :param text: as the config has it, rendered; ``file:`` URIs are read, ``~`` is not expanded.
    :param base: what a relative path is relative to: the task's folder.
    :param key: where it stands, for errors.
    :raises ConfigError: empty, padded, with control characters, or not on a disk.
    """
    if not text.strip():
        raise ConfigError(f"{key} is empty")
    if text != text.strip():
        raise ConfigError(f"{key} is padded with spaces")
    if any(unicodedata.category(c) in ("Cc", "Cs") for c in text):
        raise ConfigError(f"{key} has a control character")
    if PREFIX in text:
        raise ConfigError(f"{key}: a path can't be a secret: it stands in records and messages")
    if scheme := _SCHEME.match(text):
        text = _without_scheme(text, scheme[1].lower(), key)
    if text.startswith("~"):
        raise ConfigError(
            f"{key}: '~' is not expanded", hint="write the whole path; in a config, {{ env.HOME }}/… does it"
        )
    return os.path.abspath(base / text)


def _without_scheme(text: str, scheme: str, key: str) -> str:
    if scheme in _OBJECT_STORES:
        raise ConfigError(f"{key}: object storage ({scheme}://) isn't built yet; give a path of a disk")
    if scheme != "file":
        raise ConfigError(f"{key}: {scheme}:// isn't built yet; give a path of a disk")
    path = re.sub(r"(?i)\Afile:(//(localhost)?(?=/))?", "", text)
    if "%" in path or path.startswith("//"):
        raise ConfigError(f"{key}: this file: URI isn't a plain one; give the path itself")
    return path


def check_outputs(outputs: Sequence[OutputSpec], folder: TaskFolder) -> None:
    """Check that no output harms another one, the task's own files or the state.

    Symlinks are followed for the comparison, so two names of one folder are seen to be one.

    :raises ConfigError: the first pair or place that does not go together.
    """
    real = [(spec, Path(os.path.realpath(spec.path))) for spec in outputs]
    task = Path(os.path.realpath(folder.path))
    state = Path(os.path.realpath(folder.usecase_dir)) / STATE_FOLDER
    for spec, path in real:
        key = f"CONFIG.outputs.{spec.name}.path"
        if path == task or (spec.mode in _REPLACING and path in task.parents):
            raise ConfigError(
                f"{key}: {spec.path} holds the task itself; give the output a folder of its own"
            )
        if path == state or state in path.parents:
            raise ConfigError(f"{key}: {spec.path} lies in the folder of the state")
    for index, (spec, path) in enumerate(real):
        for other, there in real[index + 1 :]:
            both = f"CONFIG.outputs: {spec.name} and {other.name}"
            if path == there and not spec.mode == other.mode == APPEND:
                raise ConfigError(f"{both} write to one folder {spec.path}, and not both append")
            outer = spec if path in there.parents else other if there in path.parents else None
            if outer is not None and outer.mode in _REPLACING:
                raise ConfigError(f"{both}: one folder lies in the other, which {outer.mode} replaces")


def check_inputs(inputs: Sequence[InputSpec], outputs: Sequence[OutputSpec]) -> None:
    """Check that no output writes where an input reads, and none removes what an input reads.

    A run would read what earlier runs wrote, and a rerun what it is about to replace. A glob is taken for what
    it may find: the files of an output that match it. Registered formats are left out: what their paths mean
    is their own.

    :raises ConfigError: the first output that does.
    """
    for output in outputs:
        folder = Path(os.path.realpath(output.path))
        for source in inputs:
            if output.format not in FILE_FORMATS or source.format not in FILE_FORMATS:
                continue
            key = f"CONFIG.outputs.{output.name}.path"
            pattern = _real_parts(source.path)
            if any(names(one, part.parts) for one in _each(pattern) for part in _parts_of(output, folder)):
                raise ConfigError(
                    f"{key}: {output.path} lies in what the input {source.name!r} reads, {source.path}",
                    hint="give the output a folder of its own, or the input a path that does not find it",
                )
            if output.mode == OVERWRITE and names(folder.parts, pattern):
                raise ConfigError(
                    f"{key}: overwrite would remove what the input {source.name!r} reads, {source.path}",
                    hint="give the output a folder of its own",
                )


def _real_parts(path: str) -> tuple[str, ...]:
    """The segments of an input's path, links followed up to the first wildcard."""
    parts = Path(path).parts
    if os.path.lexists(path) or not is_glob(path):
        return Path(os.path.realpath(path)).parts
    first = next(index for index, part in enumerate(parts) if is_glob(part))
    return (*Path(os.path.realpath(os.path.join(*parts[:first]))).parts, *parts[first:])


def _each(pattern: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    for one in braces(os.path.join(*pattern)):
        yield Path(one).parts


def _parts_of(output: OutputSpec, folder: Path) -> Iterator[Path]:
    """Part files as the output may write them; no partition's value is known."""
    inside = folder.joinpath(*(f"{column}=" for column in output.partition_by))
    ending = "txt" if output.format == "text" else output.format
    for suffix in (f".{ending}", f".{ending}.gz"):
        yield inside / f"part-00000-{'0' * 32}{suffix}"
