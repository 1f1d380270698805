"""``ubunye leases show``."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import click

from airflow_provider_ubunye.cli.lazy import Command
from airflow_provider_ubunye.cli.leases import label_of, state_of, store_of
from airflow_provider_ubunye.cli.options import output_options, place_options
from airflow_provider_ubunye.cli.output import Out
from airflow_provider_ubunye.core import messages
from airflow_provider_ubunye.core.entries import Entry, decode
from airflow_provider_ubunye.core.errors import StateUnreadable
from airflow_provider_ubunye.core.leases import LeaseInfo, find
from airflow_provider_ubunye.core.setting import Setting

_MOST_NAMES = 20
_MOST_OTHERS = 5


def _span(said: str) -> Callable[[Any], str]:
    return lambda value: f"{said} {messages.seconds(value) if isinstance(value, int | float) else value}"


_WORDS: Mapping[str, Callable[[Any], str]] = {
    "purpose": lambda value: f"asked to {value}",
    "outcome": str,
    "ttl": _span("time to takeover"),
    "beat": _span("heartbeat every"),
    "over": lambda value: f"took over from run {messages.who(str(value))}",
    "output": lambda value: f"output {value}",
    "commits": lambda value: (
        f"committed {messages.count(value, 'time')}" if isinstance(value, int) else str(value)
    ),
    "runs": lambda value: messages.count(value, "run") if isinstance(value, int) else str(value),
}
"""What an entry's plain values say to a person."""

_NOT_SHOWN = frozenset({"task", "config", "recorded", "named"})
"""What is in the head line or only for programs; ``--json`` shows it."""


@click.command("show", cls=Command, short_help="One batch's log, entry by entry.")
@click.argument("given_id", metavar="ID")
@place_options(required=False)
@output_options
@click.pass_obj
def command(out: Out, /, **given: Any) -> int:
    """Show a batch's log: who did what, when, with which files. ID: a run's id, its first digits, or a key."""
    setting = store_of(out, given, looking=True)
    info = find(setting, given["given_id"])
    entries = list(_entries(setting, info))
    if out.json:
        shown = [{"key": key, "entry": _json(data), "problem": problem} for key, data, _, problem in entries]
        out.document({"task": info.task, "key": info.key, "state": state_of(info), "entries": shown})
    out.line(f"{label_of(info)}: {state_of(info)}")
    out.line(f"  Key: {info.key}")
    out.line(f"  Log: {setting.log(info.key, info.task).where}")
    if info.state.holder is not None:
        out.line(f"  Held by {messages.holder_line(info.state.holder, info.evidence)}")
    for key, _, entry, problem in entries:
        if entry is None:
            out.line(f"  {key.rpartition('/')[2]}  can't be read: {problem}")
            continue
        out.line(f"  {entry.number:>4}  {entry.at}  {messages.who(entry.run)}  {entry.kind}")
        for line in _lines(entry.body):
            out.line(f"        {line}")
    if info.problem is not None:
        raise StateUnreadable(f"{info.task} {info.key}: {info.problem}", where=info.where)
    return 0


def _entries(
    setting: Setting, info: LeaseInfo
) -> Iterator[tuple[str, bytes | None, Entry | None, str | None]]:
    """Every entry as it is stored, one that can't be read with the reason: a damaged log is what one looks at."""
    log = setting.log(info.key, info.task)
    for key in setting.store.list(log.prefix):
        if not key.startswith(log.prefix + "/"):
            continue
        data = setting.store.read(key)
        try:
            yield key, data, decode(data or b"", f"{setting.store.where}/{key}"), None
        except StateUnreadable as error:
            yield key, data, None, error.what


def _json(data: bytes | None) -> Any:
    try:
        return json.loads(data or b"null")
    except ValueError:
        return None


def _lines(body: Mapping[str, Any]) -> Iterator[str]:
    """An entry's body: plain values in one line, then outputs and debts with their files."""
    # A checkpoint holds the folded state.
    state = body.get("state")
    source = {**body, **(state if isinstance(state, Mapping) else {})}
    known = {k: v for k, v in source.items() if isinstance(v, str | int | float) and v not in ("", False)}
    plain = [words(known.pop(name)) for name, words in _WORDS.items() if name in known]
    if isinstance(source.get("variables"), Mapping):
        known.update({k: v for k, v in source["variables"].items() if isinstance(v, str)})
    plain += [f"{k}={str(v)[:80]}" for k, v in known.items() if k not in _NOT_SHOWN]
    if plain:
        yield ", ".join(plain)
    finished = source.get("finished")
    if isinstance(finished, Mapping):
        yield f"finished by run {str(finished.get('run'))[:8]} at {finished.get('at')}"
        yield from _outputs(finished.get("outputs"), "landed")
    yield from _outputs(source.get("outputs"), "output")
    for name, said in (("replaces", "replaces"), ("debts", "owes")):
        debts = source.get(name)
        for debt in debts if isinstance(debts, list) else []:
            if isinstance(debt, Mapping):
                yield from _outputs([debt.get("output")], f"{said} ({debt.get('why')})", _MOST_OTHERS)


def _outputs(outputs: Any, said: str, most: int = _MOST_NAMES) -> Iterator[str]:
    for output in outputs if isinstance(outputs, list) else []:
        if not isinstance(output, Mapping):
            continue
        place = output.get("place")
        path = place.get("path") if isinstance(place, Mapping) else "?"
        claims = output.get("claims")
        names = [str(c[0] if isinstance(c, list) and c else c) for c in claims or []]
        files = messages.count(len(names), "file")
        yield f"{said} {output.get('name')} ({output.get('mode')}) in {path}: {files}"
        for name in names[:most]:
            yield f"  {name}"
        if len(names) > most:
            yield f"  … {len(names) - most} more (--json shows them)"
