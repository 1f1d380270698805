"""``config.yaml`` as plain values: mappings with text keys, lists, text, numbers, booleans and None.

YAML is loaded safely and within bounds. Refused in one line: tags that make objects, a key given twice, a
key that is no text, aliases that unfold into more than the bounds, a file that is too large or no UTF-8.
Dates stay text as they are written (``2026-11-01``), for that is what a variable is.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow_provider_ubunye.core.errors import ConfigError

if TYPE_CHECKING:
    import yaml

LARGEST_FILE = 256 * 1024
"""Bytes of a config file."""

MOST_NODES = 20_000
"""Values in a config after its aliases are unfolded."""

DEEPEST = 50
"""Levels of mappings and lists."""

_DATE = "tag:yaml.org,2002:timestamp"
_TEXT = "tag:yaml.org,2002:str"
_MERGE = "tag:yaml.org,2002:merge"


def read_document(path: Path) -> dict[str, Any]:
    """The file's mapping, nothing rendered.

    :raises ConfigError: the file is missing, unreadable, or not such a document; with its line where known.
    """
    return parse_document(_text(path), str(path))


def parse_document(text: str, where: str) -> dict[str, Any]:
    """As :func:`read_document`, for text.

    :param where: what to call it in errors.
    """
    import yaml

    try:
        loader = _loader_class()(text)
        try:
            node = loader.get_single_node()
            if node is None:
                raise ConfigError("the config is empty", where=where)
            _check_nodes(node, where)
            document = loader.construct_document(node)
        finally:
            loader.dispose()
    except yaml.MarkedYAMLError as error:
        raise _yaml_fault(error, text, where) from None
    except yaml.YAMLError as error:
        raise ConfigError(f"the config is not YAML: {' '.join(str(error).split())}", where=where) from None
    except RecursionError:
        raise ConfigError(f"the config is nested deeper than {DEEPEST} levels", where=where) from None
    except (ValueError, LookupError, AttributeError) as error:
        # A number with more digits than Python reads; ``!!bool x``, a date that is none under its tag.
        fault = type(error).__name__
        raise ConfigError(
            f"the config has a value that is not what its tag says ({fault})", where=where
        ) from None
    if not isinstance(document, dict):
        raise ConfigError("the config is not a mapping of keys", where=where)
    _check_plain(document, "", where)
    return document


def digest(document: Mapping[str, Any]) -> str:
    """SHA-256 over the parsed, unrendered document, in hex: comments, order and layout don't count."""
    text = json.dumps(document, sort_keys=True, ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()


def _text(path: Path) -> str:
    try:
        # Anything but a file (a named pipe) might block for ever.
        if not path.is_file():
            raise ConfigError(f"the task has no {path.name}", where=str(path))
        with path.open("rb") as file:
            data = file.read(LARGEST_FILE + 1)
    except OSError as error:
        raise ConfigError(f"{path.name} can't be read: {error.strerror}", where=str(path)) from error
    if len(data) > LARGEST_FILE:
        raise ConfigError(f"{path.name} is larger than {LARGEST_FILE} bytes", where=str(path))
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path.name} is not UTF-8 text (byte {error.start})", where=str(path)) from error


def _loader_class() -> type[yaml.SafeLoader]:
    import yaml

    # Not the C loader: it recurses without Python's limit, so that deep nesting ends the process.
    class Loader(yaml.SafeLoader):
        """The safe loader without dates."""

        yaml_implicit_resolvers = {  # noqa: RUF012 - the base class' own attribute
            first: [(tag, pattern) for tag, pattern in pairs if tag != _DATE]
            for first, pairs in yaml.SafeLoader.yaml_implicit_resolvers.items()
        }

        def flatten_mapping(self, node: yaml.MappingNode) -> None:
            super().flatten_mapping(node)
            # The last of a name counts. Left to the base, merging a merged mapping may bring the first back.
            node.value = list({key.value: (key, value) for key, value in node.value}.values())

    return Loader


def _yaml_fault(error: yaml.MarkedYAMLError, text: str, where: str) -> ConfigError:
    mark = error.problem_mark or error.context_mark
    line = mark.line + 1 if mark else 0
    what = " ".join(str(error.problem or error.context).split())
    lines = text.splitlines()
    if "'\\t'" in what:
        what = "YAML takes no tabs; indent with spaces"
    template = 0 < line <= len(lines) and "{{" in lines[line - 1]
    return ConfigError(
        f"the config is not valid: {what}, line {line}",
        where=where,
        hint='put a value that holds {{ … }} in quotes: path: "{{ … }}/orders"' if template else None,
    )


def _check_nodes(root: yaml.Node, where: str) -> None:
    """Check keys and size of the document, aliases unfolded, before anything is built from it.

    A shared node is measured once, so the check itself takes time in the size of the file.
    """
    import yaml

    measured: dict[int, tuple[int, int]] = {}
    open_nodes: set[int] = set()

    def measure(node: yaml.Node) -> tuple[int, int]:
        """How many values, and how many levels, the node unfolds to."""
        if id(node) in open_nodes:
            raise ConfigError("the config has an alias to itself", where=where)
        if id(node) not in measured:
            children: list[yaml.Node] = []
            if isinstance(node, yaml.MappingNode):
                _check_keys(node)
                children = [value for _, value in node.value]
            elif isinstance(node, yaml.SequenceNode):
                children = node.value
            open_nodes.add(id(node))
            sizes = [measure(child) for child in children]
            open_nodes.discard(id(node))
            count = 1 + sum(size for size, _ in sizes)
            measured[id(node)] = count, 1 + max((levels for _, levels in sizes), default=0)
        return measured[id(node)]

    count, levels = measure(root)
    if count > MOST_NODES:
        raise ConfigError(f"the config unfolds to more than {MOST_NODES} values", where=where)
    if levels > DEEPEST:
        raise ConfigError(f"the config is nested deeper than {DEEPEST} levels", where=where)


def _check_keys(node: yaml.MappingNode) -> None:
    """Every key is text and stands once. Before merging: what overrides a merged key is no duplicate."""
    import yaml
    from yaml.constructor import ConstructorError

    seen: set[str] = set()
    for key, _ in node.value:
        shown = repr(key.value[:80]) if isinstance(key.value, str) else "{…}"
        if not isinstance(key, yaml.ScalarNode) or key.tag not in (_TEXT, _MERGE):
            raise ConstructorError(None, None, f"the key {shown} is not text", key.start_mark)
        if key.value in seen:
            raise ConstructorError(None, None, f"the key {shown} stands twice", key.start_mark)
        seen.add(key.value)


def _check_plain(value: Any, key: str, where: str) -> None:
    """Refuse what no config needs: bytes, sets and pairs under explicit tags; templates in keys."""
    if isinstance(value, dict):
        for name, item in value.items():
            if "{{" in name or "{%" in name:
                at = key or "the config"
                raise ConfigError(f"{at}: a key can't be a template: {name[:80]!r}", where=where)
            _check_plain(item, f"{key}.{name}" if key else name, where)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            _check_plain(item, f"{key}[{index}]", where)
    elif value is not None and not isinstance(value, str | int | float):
        raise ConfigError(f"{key}: a value of type {type(value).__name__} has no place here", where=where)
