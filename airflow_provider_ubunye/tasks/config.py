"""A task's ``config.yaml``: read, rendered, checked, and turned into what core and engines share.

::

    MODEL: etl
    VERSION: "0.1.0"
    CONFIG:
      inputs:    {name: {format, path, options}}
      transform: {params}
      outputs:   {name: {format, path, mode, partition_by, options}}
      batch:     [dt, region]

What an older Ubunye wrote is read too: ``format: s3`` with ``file_format``, ``partitionBy``, mode ``error``.
What this version can't do is refused by name; no key is ever passed over in silence.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from airflow_provider_ubunye.core.batch import Batch, check_name
from airflow_provider_ubunye.core.errors import ConfigError, UsageError
from airflow_provider_ubunye.core.specs import FILE_FORMATS, MODES, InputSpec, OutputSpec
from airflow_provider_ubunye.tasks import shape
from airflow_provider_ubunye.tasks.document import digest, read_document
from airflow_provider_ubunye.tasks.folder import TaskFolder, near_names
from airflow_provider_ubunye.tasks.paths import check_inputs, check_outputs, resolve_path
from airflow_provider_ubunye.tasks.secrets import PREFIX, REDACTOR, Redactor, check_reference
from airflow_provider_ubunye.tasks.template import Scope, render_tree

if TYPE_CHECKING:
    from airflow_provider_ubunye.tasks.model import Document

ENTRY_POINTS = "airflow_provider_ubunye.formats"
"""Entry point group of further output formats."""

_NOT_BUILT_FORMATS = frozenset(
    {"delta", "jdbc", "sql", "hive", "unity", "table", "iceberg", "hudi", "rest_api", "binary", "hdfs"}
)
_NOT_BUILT_KEYS = {
    "": {"ENGINE": "engine settings are", "ORCHESTRATION": "orchestration from the config is"},
    "CONFIG": {"expectations": "expectations are"},
    "inputs": {"schema": "an input's schema is"},
    "outputs": {"replace_where": "replace_where is", "merge_keys": "merge is"},
    "transform": {"type": "a named transform is"},
}
_MODE_SPELLINGS = {"error": "errorifexists"}


@dataclass(frozen=True)
class TaskConfig:
    """What one run of a task reads, does and writes. Secrets in it are references still.

    :param task: ``usecase/package/task``.
    :param inputs: in the order of the file, as are ``outputs``.
    :param transform: ``CONFIG.transform``; its ``params`` are the user's own.
    :param batch: the variables that name the batch; None: all of them.
    :param requires: upstream tasks; always empty until they can be checked.
    :param version: ``VERSION``.
    :param raw: the parsed document before rendering.
    :param digest: SHA-256 of ``raw``: two runs with one digest had one config.
    """

    task: str
    inputs: tuple[InputSpec, ...]
    outputs: tuple[OutputSpec, ...]
    transform: Mapping[str, Any] = field(default_factory=dict)
    batch: tuple[str, ...] | None = None
    requires: tuple[Any, ...] = ()
    version: str | None = None
    raw: Mapping[str, Any] = field(default_factory=dict)
    digest: str = ""

    @property
    def params(self) -> Mapping[str, Any]:
        """``CONFIG.transform.params``."""
        params: Mapping[str, Any] = self.transform.get("params", {})
        return params


def load_config(
    folder: TaskFolder,
    variables: Mapping[str, object],
    *,
    environ: Mapping[str, str] | None = None,
    redactor: Redactor = REDACTOR,
) -> TaskConfig:
    """Read and check a task's config for one set of variables.

    :param variables: ``dt``, ``dtf``, ``mode`` and all others; None counts as not given.
    :param environ: the environment for ``env``; the process' own where None.
    :param redactor: learns the values of the environment that must not be shown.
    :raises UsageError: the folder or a variable is wrong.
    :raises ConfigError: the config is wrong, in one line with the key.
    """
    texts = Batch.of(folder.name, variables).variables
    folder.require()
    where = str(folder.config_path)
    raw = read_document(folder.config_path)
    scope = Scope(
        variables=texts,
        environ=os.environ if environ is None else environ,
        task_dir=str(folder.path),
        usecase_dir=str(folder.usecase_dir),
        hide=redactor.add,
    )
    try:
        return _build(folder, raw, render_tree(raw, scope))
    except ConfigError as error:
        # "there is no format 'x'" must not show what came from the environment.
        seen = Redactor()
        for value in scope.seen:
            seen.add(value)
        raise ConfigError(seen.mask(error.what), where=error.where or where, hint=error.hint) from None


def config_digest(folder: TaskFolder) -> str:
    """The digest of the task's config as it stands now: what :attr:`TaskConfig.digest` would be.

    :raises ConfigError: it can't be read.
    """
    return digest(read_document(folder.config_path))


def _build(folder: TaskFolder, raw: Mapping[str, Any], rendered: Mapping[str, Any]) -> TaskConfig:
    document = _document(_current_spelling(rendered), str(folder.config_path))
    config = document.CONFIG
    base = folder.path
    inputs = []
    for name, entry in config.inputs.items():
        key = _named("inputs", "input", name)
        path = resolve_path(entry.path, base, f"{key}.path")
        _check_leaves(entry.options, f"{key}.options")
        inputs.append(InputSpec(name, check_format(entry.format, f"{key}.format"), path, entry.options))
    outputs = []
    for name, made in config.outputs.items():
        key = _named("outputs", "output", name)
        path = resolve_path(made.path, base, f"{key}.path")
        _check_leaves(made.options, f"{key}.options")
        for index, column in enumerate(made.partition_by):
            _no_secret(column, f"{key}.partition_by[{index}]")
        outputs.append(
            OutputSpec(
                name,
                check_format(made.format, f"{key}.format"),
                path,
                _mode(made.mode, key),
                tuple(made.partition_by),
                made.options,
            )
        )
    check_outputs(outputs, folder)
    check_inputs(inputs, outputs)
    _check_leaves(config.transform.params, "CONFIG.transform.params")
    return TaskConfig(
        task=folder.name,
        inputs=tuple(inputs),
        outputs=tuple(outputs),
        transform={"params": config.transform.params},
        batch=tuple(config.batch) if config.batch is not None else None,
        version=document.VERSION,
        raw=raw,
        digest=digest(raw),
    )


def _document(document: Mapping[str, Any], where: str) -> Document | shape.Document:
    found = shape.read(document)
    if found is not None:
        return found
    # Pydantic is not light: it is imported for a config with a fault.
    from airflow_provider_ubunye.tasks.model import validate

    return validate(document, where)


def _named(section: str, what: str, name: str) -> str:
    """The key of a named entry.

    :raises ConfigError: the name is not one path segment.
    """
    try:
        check_name(what, name)
    except UsageError as error:
        raise ConfigError(f"CONFIG.{section}: {error.what}") from None
    return f"CONFIG.{section}.{name}"


def _check_leaves(value: Any, key: str) -> None:
    """Check the form of every secret reference at any depth."""
    if isinstance(value, str):
        check_reference(key, value)
    elif isinstance(value, Mapping):
        for name, item in value.items():
            _check_leaves(item, f"{key}.{name}")
    elif isinstance(value, list):
        for index, item in enumerate(value):
            _check_leaves(item, f"{key}[{index}]")


def _no_secret(text: str, key: str) -> None:
    if PREFIX in text:
        raise ConfigError(f"{key}: a secret has no place here; options and params may hold one")


def check_format(text: str, key: str) -> str:
    """The format's name as the engines know it: in lower case, or as it is registered.

    :param key: where it stands, for errors.
    :raises ConfigError: there is no such format, or it isn't built yet.
    """
    name = text.strip().lower()
    if name in FILE_FORMATS:
        return name
    if not name:
        raise ConfigError(f"{key} is empty")
    _no_secret(name, key)
    # Only now: looking through the installed packages costs more than reading the config.
    from importlib.metadata import entry_points

    registered = sorted({point.name for point in entry_points(group=ENTRY_POINTS)})
    if text.strip() in registered:
        return text.strip()
    if name in _NOT_BUILT_FORMATS:
        raise ConfigError(f"{key}: the format {name!r} isn't built yet")
    near = near_names(name, [*FILE_FORMATS, *registered])
    raise ConfigError(f"{key}: there is no format {name[:80]!r}{near}")


def _mode(text: str, key: str) -> str:
    name = text.strip().lower()
    name = _MODE_SPELLINGS.get(name, name)
    if name in MODES:
        return name
    if name == "merge":
        raise ConfigError(f"{key}.mode: merge isn't built yet")
    raise ConfigError(f"{key}.mode: there is no mode {name[:80]!r}{near_names(name, list(MODES))}")


def _current_spelling(document: Mapping[str, Any]) -> dict[str, Any]:
    """The document with older spellings replaced; what isn't built yet is refused here, before the models.

    Whatever has another shape than expected is left for the models to say so.
    """
    done = _without_unbuilt(document, "", "")
    if str(done.get("MODEL", "etl")).lower() == "ml":
        raise ConfigError("MODEL: ml isn't built yet")
    config = done.get("CONFIG")
    if not isinstance(config, dict):
        return done
    config = done["CONFIG"] = _without_unbuilt(config, "CONFIG", "CONFIG")
    if config.pop("requires", None):
        raise ConfigError("CONFIG.requires: upstream checks are not built yet, so this task is not run")
    if isinstance(config.get("transform"), dict):
        config["transform"] = _without_unbuilt(config["transform"], "transform", "CONFIG.transform")
    for section in ("inputs", "outputs"):
        if isinstance(config.get(section), dict):
            config[section] = {
                name: _current_entry(entry, section, f"CONFIG.{section}.{name[:80]}")
                for name, entry in config[section].items()
            }
    return done


def _current_entry(entry: Any, section: str, key: str) -> Any:
    if not isinstance(entry, dict):
        return entry
    done = dict(entry)
    kind = done.get("format")
    if isinstance(kind, str) and kind.strip().lower() == "s3":
        # The older name for "files at a path", wherever the path leads.
        done["format"] = done.pop("file_format", None) or "parquet"
    elif "file_format" in done:
        raise ConfigError(f"{key}.file_format goes with format: s3; give the format itself under format")
    if isinstance(kind, str):
        # Before other keys are looked at: such a format brings keys of its own (url, table, …).
        check_format(str(done["format"]), f"{key}.format")
    done = _without_unbuilt(done, section, key)
    if "partitionBy" in done:
        if "partition_by" in done:
            raise ConfigError(f"{key} has both partition_by and partitionBy")
        done["partition_by"] = done.pop("partitionBy")
    columns = done.get("partition_by")
    if isinstance(columns, str):
        if "," in columns:
            listed = ", ".join(column.strip() for column in columns.split(","))
            raise ConfigError(f"{key}.partition_by is a list: [{listed}]")
        done["partition_by"] = [columns]
    return done


def _without_unbuilt(values: Mapping[str, Any], section: str, key: str) -> dict[str, Any]:
    """The values without the keys of what isn't built, which may stand there empty.

    :raises ConfigError: one of them holds something.
    """
    unbuilt = _NOT_BUILT_KEYS[section]
    for name, said in unbuilt.items():
        if values.get(name):
            raise ConfigError(f"{key}{'.' if key else ''}{name}: {said} not built yet")
    return {name: value for name, value in values.items() if name not in unbuilt}
