"""The shape of a config without a fault, read without pydantic.

Importing pydantic costs several times what reading a config costs, and nearly every config is right. So a
config is read here first. This module knows only what is right: at the first thing that is not, it gives up,
and :mod:`.model`, which has the last word, finds the faults and names them. A test holds the two together.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple, TypeVar

from airflow_provider_ubunye.core.specs import APPEND, OVERWRITE_PARTITIONS

T = TypeVar("T")

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")


class Input(NamedTuple):
    """One entry of ``CONFIG.inputs``."""

    format: str
    path: str
    options: dict[str, Any]


class Output(NamedTuple):
    """One entry of ``CONFIG.outputs``."""

    format: str
    path: str
    options: dict[str, Any]
    mode: str
    partition_by: list[str]


class Transform(NamedTuple):
    """``CONFIG.transform``."""

    params: dict[str, Any]


class Config(NamedTuple):
    """``CONFIG``."""

    inputs: dict[str, Input]
    transform: Transform
    outputs: dict[str, Output]
    batch: list[str] | None


class Document(NamedTuple):
    """The whole file."""

    MODEL: str
    VERSION: str | None
    CONFIG: Config


class _Odd(Exception):
    """Something is not as it should be, or not known here."""


def read(document: Mapping[str, Any]) -> Document | None:
    """The rendered document, None where it is not plainly right."""
    try:
        _known(document, {"MODEL", "VERSION", "CONFIG"})
        model, version = document.get("MODEL", "etl"), document.get("VERSION")
        if model != "etl":
            raise _Odd
        config = _of(dict, document.get("CONFIG"))
        return Document(model, None if version is None else _of(str, version), _config(config))
    except _Odd:
        return None


def _config(config: dict[str, Any]) -> Config:
    _known(config, {"inputs", "transform", "outputs", "batch"})
    transform = _mapping(config.get("transform"))
    _known(transform, {"params"})
    outputs = _mapping(config.get("outputs"))
    if not outputs:
        raise _Odd
    return Config(
        inputs={name: _input(_of(dict, entry)) for name, entry in _mapping(config.get("inputs")).items()},
        transform=Transform(_mapping(transform.get("params"))),
        outputs={name: _output(_of(dict, entry)) for name, entry in outputs.items()},
        batch=_variables(config.get("batch")),
    )


def _input(entry: dict[str, Any]) -> Input:
    _known(entry, {"format", "path", "options"})
    return Input(_of(str, entry.get("format")), _of(str, entry.get("path")), _mapping(entry.get("options")))


def _output(entry: dict[str, Any]) -> Output:
    own = {"mode", "partition_by"}
    common = _input({key: value for key, value in entry.items() if key not in own})
    given, columns = entry.get("mode"), entry.get("partition_by")
    mode = APPEND if given is None else _of(str, given)
    partition_by = [] if columns is None else _texts(columns)
    if not all(column.strip() for column in partition_by):
        raise _Odd
    if mode.strip().lower() == OVERWRITE_PARTITIONS and not partition_by:
        raise _Odd
    return Output(*common, mode=mode, partition_by=partition_by)


def _variables(batch: Any) -> list[str] | None:
    if batch is None:
        return None
    names = _texts(batch)
    if not names or not all(_VARIABLE.match(name) for name in names):
        raise _Odd
    return names


def _texts(value: Any) -> list[str]:
    texts = [_of(str, item) for item in _of(list, value)]
    if len(set(texts)) < len(texts):
        raise _Odd
    return texts


def _mapping(value: Any) -> dict[str, Any]:
    """A mapping with names as keys; nothing after a key is an empty one."""
    found: dict[str, Any] = {} if value is None else dict(_of(dict, value))
    if not all(type(key) is str for key in found):
        raise _Odd
    return found


def _known(section: Mapping[str, Any], keys: set[str]) -> None:
    if not section.keys() <= keys:
        raise _Odd


def _of(kind: type[T], value: Any) -> T:
    """The value if it is of exactly this type."""
    if type(value) is not kind:
        raise _Odd
    return value
