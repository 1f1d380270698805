"""Secrets: ``secret://env/NAME``, ``secret://file/abs/path``, and others by entry point.

A reference stays a reference in the config, the records and the digest; :func:`resolve` fetches the value
where it is used, and every value fetched is masked from then on in what :func:`mask` and
:class:`RedactingFilter` see.

Not promised: a value that user code prints itself, changes (upper case, a slice, base64) or writes into a
frame is not found.
"""

from __future__ import annotations

import json
import logging
import os
import re
import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote, quote_plus

from airflow_provider_ubunye.core.errors import ConfigError, TransformFailed, UbunyeError
from airflow_provider_ubunye.core.specs import InputSpec, OutputSpec

PREFIX = "secret://"
ENTRY_POINTS = "airflow_provider_ubunye.secrets"
"""Entry point group: a callable that takes what follows ``secret://<name>/`` and returns the value."""

MASK = "***"

_LARGEST_FILE = 64 * 1024
# A shorter value is hidden only where it stands alone: replacing every "a" would leave nothing to read.
_SHORTEST_ANYWHERE = 4
# The lines of a longer secret (a private key) are hidden one by one too, for logs split at line ends.
_SHORTEST_LINE = 8

Spec = TypeVar("Spec", bound=InputSpec | OutputSpec)


class Redactor:
    """Hides every value it was given, in any text.

    It hides the value itself and the spellings in which it commonly leaks: Python's repr, JSON, and the
    two URL encodings. Safe to use from several threads.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._forms: set[str] = set()
        self._pattern: re.Pattern[str] | None = None

    def add(self, value: str) -> None:
        """Hide ``value`` from now on. Blank text is nothing to hide."""
        forms = {form for form in _spellings(value) if form.strip()}
        with self._lock:
            if forms <= self._forms:
                return
            self._forms |= forms
            # The longest first, so that no part of a longer one is left over beside the mask.
            ordered = sorted(self._forms, key=lambda form: (-len(form), form))
            self._pattern = re.compile("|".join(map(_form_pattern, ordered)))

    def mask(self, text: str) -> str:
        """``text`` with every known value replaced by ``***``."""
        pattern = self._pattern
        return pattern.sub(MASK, text) if pattern else text


def _spellings(value: str) -> set[str]:
    parts = [value, value.strip()]
    lines = value.splitlines()
    if len(lines) > 1:
        parts += [line.strip() for line in lines if len(line.strip()) >= _SHORTEST_LINE]
    forms: set[str] = set()
    for part in parts:
        # A lone surrogate (an undecodable byte of the environment) has no URL form without this.
        url = {quote(part, safe="", errors="replace"), quote(part, errors="replace")}
        url.add(quote_plus(part, errors="replace"))
        forms |= {part, repr(part)[1:-1], json.dumps(part)[1:-1], *url}
        forms.add(json.dumps(part, ensure_ascii=False)[1:-1])
    return forms


def _form_pattern(form: str) -> str:
    escaped = re.escape(form)
    return escaped if len(form) >= _SHORTEST_ANYWHERE else rf"(?<!\w){escaped}(?!\w)"


REDACTOR = Redactor()
"""The process' own: every secret resolved anywhere in it is known here."""


def mask(text: str) -> str:
    """``text`` with every secret that this process resolved replaced by ``***``."""
    return REDACTOR.mask(text)


def mask_error(error: UbunyeError) -> None:
    """Mask what an error says, and what the project's own errors say from which it came.

    The user's own exception, chained as the cause, stays as it was raised.
    """
    seen: set[int] = set()
    said: BaseException | None = error
    while said is not None and id(said) not in seen:
        seen.add(id(said))
        if isinstance(said, UbunyeError):
            said.what = mask(said.what)
            said.args = tuple(mask(arg) if isinstance(arg, str) else arg for arg in said.args)
            said.where = None if said.where is None else mask(said.where)
            said.hint = None if said.hint is None else mask(said.hint)
            if isinstance(said, TransformFailed):
                said.frames = [mask(line) for line in said.frames]
        said = said.__cause__ or said.__context__


class RedactingFilter(logging.Filter):
    """A filter for log *handlers* that masks message, traceback and stack.

    On a logger it would miss the records of that logger's children.
    """

    def __init__(self, redactor: Redactor = REDACTOR) -> None:
        super().__init__()
        self._redactor = redactor

    def filter(self, record: logging.LogRecord) -> bool:
        try:
            text = record.getMessage()
        except Exception:  # noqa: BLE001 - a record with wrong arguments is still a record
            text = f"{record.msg} {record.args!r}"
        record.msg, record.args = self._redactor.mask(text), None
        if record.exc_info:
            text = record.exc_text or logging.Formatter().formatException(record.exc_info)
            # Without exc_info no handler can format the traceback again, unmasked.
            record.exc_text, record.exc_info = text, None
        if record.exc_text:
            record.exc_text = self._redactor.mask(record.exc_text)
        if record.stack_info:
            record.stack_info = self._redactor.mask(record.stack_info)
        return True


def is_secret(value: object) -> bool:
    """True for text that is a secret reference."""
    return isinstance(value, str) and value.startswith(PREFIX)


def check_reference(key: str, text: str) -> None:
    """Check the form of a secret reference; nothing is fetched.

    :param key: where it stands, for the message: ``CONFIG.inputs.orders.options.password``.
    :raises ConfigError: it is not ``secret://<where>/<name>``, or stands inside other text.
    """
    if PREFIX not in text:
        return
    if not text.startswith(PREFIX) or text.count(PREFIX) > 1:
        raise ConfigError(f"{key}: a {PREFIX}… reference must be the whole value")
    kind, _, rest = text.removeprefix(PREFIX).partition("/")
    if not kind or not rest:
        raise ConfigError(
            f"{key}: {text!r} is not a secret reference",
            hint=f"write {PREFIX}env/NAME or {PREFIX}file/absolute/path",
        )


def resolve(
    value: Any,
    key: str,
    *,
    environ: Mapping[str, str] | None = None,
    redactor: Redactor = REDACTOR,
) -> Any:
    """``value`` with every secret reference in it, at any depth, replaced by the secret.

    :param value: text, number, list, mapping or None.
    :param key: where it stands in the config, for messages.
    :param environ: the environment; the process' own where None.
    :param redactor: what learns each value, so that it is masked from here on.
    :raises ConfigError: one line with the key and the reference, never the value.
    """
    if isinstance(value, str):
        check_reference(key, value)
        if not is_secret(value):
            return value
        secret = _fetch(value, key, os.environ if environ is None else environ)
        redactor.add(secret)
        return secret
    if isinstance(value, Mapping):
        return {k: resolve(v, f"{key}.{k}", environ=environ, redactor=redactor) for k, v in value.items()}
    if isinstance(value, list | tuple):
        items = [resolve(v, f"{key}[{i}]", environ=environ, redactor=redactor) for i, v in enumerate(value)]
        return type(value)(items)
    return value


def resolve_spec(
    spec: Spec, *, environ: Mapping[str, str] | None = None, redactor: Redactor = REDACTOR
) -> Spec:
    """An input or output with the secrets of its options fetched: for the moment of reading or writing.

    :raises ConfigError: as :func:`resolve`.
    """
    section = "outputs" if isinstance(spec, OutputSpec) else "inputs"
    key = f"CONFIG.{section}.{spec.name}.options"
    return replace(spec, options=resolve(spec.options, key, environ=environ, redactor=redactor))


def _fetch(reference: str, key: str, environ: Mapping[str, str]) -> str:
    kind, _, rest = reference.removeprefix(PREFIX).partition("/")
    if kind == "env":
        value = environ.get(rest)
        if value is None:
            raise ConfigError(f"{key}: the environment variable {rest!r} of {reference} is not set")
    elif kind == "file":
        value = _read_file(rest, reference, key)
    else:
        value = _from_entry_point(kind, rest, reference, key)
    if not value.strip():
        raise ConfigError(f"{key}: {reference} is empty")
    return value


def _read_file(rest: str, reference: str, key: str) -> str:
    # secret://file/run/secrets/x is /run/secrets/x; a Windows drive stands for itself.
    text = rest if re.match(r"[A-Za-z]:[\\/]", rest) else f"/{rest.lstrip('/')}"
    path = Path(text)
    if ".." in path.parts or "\0" in text:
        raise ConfigError(f"{key}: {reference!r} is not a plain absolute path")
    try:
        # A named pipe would block for ever.
        if not path.is_file():
            raise ConfigError(f"{key}: {reference} is not a file")
        with path.open("rb") as file:
            data = file.read(_LARGEST_FILE + 1)
    except OSError as error:
        raise ConfigError(f"{key}: {reference} can't be read: {error.strerror}") from error
    if len(data) > _LARGEST_FILE:
        raise ConfigError(f"{key}: {reference} is larger than {_LARGEST_FILE} bytes")
    try:
        value = data.decode("utf-8")
    except UnicodeDecodeError:
        # Not chained: the decoder's message quotes bytes of the secret.
        raise ConfigError(f"{key}: {reference} is not UTF-8 text") from None
    return value.removesuffix("\n").removesuffix("\r")


def _from_entry_point(kind: str, rest: str, reference: str, key: str) -> str:
    from importlib.metadata import entry_points

    found = {point.name: point for point in entry_points(group=ENTRY_POINTS)}
    if kind not in found:
        known = ", ".join(sorted({"env", "file", *found}))
        raise ConfigError(f"{key}: {reference} names an unknown kind of secret {kind!r}; known: {known}")
    try:
        fetch: Callable[[str], object] = found[kind].load()
        value = fetch(rest)
    except Exception as error:  # noqa: BLE001 - somebody else's code
        # Only the type, and not chained: a provider's message may quote what it was sent or got.
        raise ConfigError(f"{key}: {reference} could not be fetched ({type(error).__name__})") from None
    if not isinstance(value, str):
        raise ConfigError(f"{key}: {reference} gave a {type(value).__name__}, not text")
    return value
