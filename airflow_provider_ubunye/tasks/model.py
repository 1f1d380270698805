"""The shape of a config, as pydantic models. Imported when a config is read: pydantic is not light.

A fault becomes one sentence with the key where it stands. The value at fault is never quoted, for it may have
been rendered from the environment.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from airflow_provider_ubunye.core.errors import ConfigError
from airflow_provider_ubunye.core.specs import OVERWRITE_PARTITIONS
from airflow_provider_ubunye.tasks.folder import near_names

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")

_MOST_FAULTS = 3

_SAID = {
    "string_type": "must be text: put it in quotes",
    "dict_type": "must be a mapping of names to values",
    "model_type": "must be a mapping",
    "list_type": "must be a list",
    "bool_type": "must be true or false",
}


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class Input(_Section):
    """One entry of ``CONFIG.inputs``."""

    format: str
    path: str
    options: dict[str, Any] = {}

    @field_validator("options", mode="before")
    @classmethod
    def _nothing_is_empty(cls, value: Any) -> Any:
        # ``options:`` with nothing after it.
        return {} if value is None else value


class Output(Input):
    """One entry of ``CONFIG.outputs``."""

    mode: str = "append"
    partition_by: list[str] = []

    @field_validator("mode", "partition_by", mode="before")
    @classmethod
    def _nothing_is_default(cls, value: Any, info: Any) -> Any:
        return cls.model_fields[info.field_name].default if value is None else value

    @field_validator("partition_by")
    @classmethod
    def _columns(cls, value: list[str]) -> list[str]:
        if any(not column.strip() for column in value):
            raise ValueError("has an empty column name")
        if len(set(value)) < len(value):
            raise ValueError("names a column twice")
        return value

    @model_validator(mode="after")
    def _partitions_to_replace(self) -> Output:
        if self.mode.strip().lower() == OVERWRITE_PARTITIONS and not self.partition_by:
            # Without them it would be the whole folder, with every other batch in it.
            raise ValueError(
                "overwrite_partitions needs partition_by: the columns whose partitions are replaced"
            )
        return self


class Transform(_Section):
    """``CONFIG.transform``."""

    params: dict[str, Any] = {}

    @field_validator("params", mode="before")
    @classmethod
    def _nothing_is_empty(cls, value: Any) -> Any:
        return {} if value is None else value


class Config(_Section):
    """``CONFIG``."""

    inputs: dict[str, Input] = {}
    transform: Transform = Transform()
    outputs: dict[str, Output] = Field(min_length=1)
    batch: list[str] | None = None

    @field_validator("inputs", "transform", mode="before")
    @classmethod
    def _nothing_is_empty(cls, value: Any) -> Any:
        return {} if value is None else value

    @field_validator("batch")
    @classmethod
    def _variables(cls, value: list[str] | None) -> list[str] | None:
        if value is not None:
            if not value:
                raise ValueError("names no variable: list some or leave it out")
            if any(not _VARIABLE.match(name) for name in value):
                raise ValueError("has something that is no variable's name")
            if len(set(value)) < len(value):
                raise ValueError("names a variable twice")
        return value


class Document(_Section):
    """The whole file."""

    MODEL: Literal["etl"] = "etl"
    VERSION: str | None = None
    CONFIG: Config


def validate(document: Mapping[str, Any], where: str) -> Document:
    """The rendered document as a model.

    :param where: the file, for errors.
    :raises ConfigError: one line: the first faults, keys that are not known before all others, and how many
        more there are.
    """
    try:
        return Document.model_validate(dict(document))
    except ValidationError as error:
        # Not chained: pydantic's own text quotes the values.
        faults = error.errors(include_url=False, include_context=True)
        # A key that is misspelt is the cause of the other that is missing.
        faults.sort(key=lambda fault: fault["type"] != "extra_forbidden")
        found = [_sentence(fault) for fault in faults]
        said = found[0][0]
        for sentence, _ in found[1:_MOST_FAULTS]:
            said += f"{'' if said.endswith('?') else ';'} {sentence}"
        more = len(found) - _MOST_FAULTS
        if more > 0:
            said += f" (and {more} more {'fault' if more == 1 else 'faults'})"
        hint = next((hint for _, hint in found[:_MOST_FAULTS] if hint), None)
        raise ConfigError(said, where=where, hint=hint) from None


def _sentence(fault: ErrorDetails) -> tuple[str, str | None]:
    loc = fault["loc"]
    key = _key(loc)
    kind = fault["type"]
    if kind == "extra_forbidden":
        near = near_names(str(loc[-1]), list(_model_at(loc[:-1]).model_fields))
        hint = None
        if len(loc) == 4:
            hint = "settings of the reader or writer stand under options:"
        return f"{key} is not a key of the config{near}", hint
    if kind == "missing":
        return f"{key} is missing", None
    if kind == "value_error":
        of_entry = len(loc) == 3 and loc[1] == "outputs"
        return f"{key}{':' if of_entry else ''} {fault['ctx']['error']}", None
    if kind == "too_short":
        return f"{key} names no output", None
    if kind == "literal_error":
        return f"{key} must be {fault['ctx']['expected']}", None
    return f"{key} {_SAID.get(kind, 'is not what belongs here')}", None


def _key(loc: Sequence[int | str]) -> str:
    key = ""
    for part in loc:
        shown = f"[{part}]" if isinstance(part, int) else part[:80]
        key += shown if isinstance(part, int) or not key else f".{shown}"
    return key


def _model_at(loc: Sequence[int | str]) -> type[BaseModel]:
    """The model whose keys stand at a place of the document."""
    sections: dict[str, type[BaseModel]] = {"inputs": Input, "outputs": Output, "transform": Transform}
    if not loc:
        return Document
    return sections[str(loc[1])] if len(loc) > 1 else Config
