"""Entries as they are stored: what is written is read back, and what is damaged is refused, never absent."""

from __future__ import annotations

import json
from typing import Any

import pytest

from airflow_provider_ubunye.core.entries import CHECKPOINTS, FORMAT, KINDS, Entry, decode, encode, parse
from airflow_provider_ubunye.core.errors import StateUnreadable

ENTRY = Entry(3, "e3", "e2", "r" * 32, "2026-11-01T03:00:00Z", "claimed", {"outputs": [], "replaces": []})


def changed(**values: Any) -> bytes:
    document = {**json.loads(encode(ENTRY)), **values}
    return json.dumps({k: v for k, v in document.items() if v is not ...}).encode()


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_every_kind_is_read_back(kind: str) -> None:
    entry = Entry(
        1, "e1", None, "a" * 32, "2026-11-01T03:00:00Z", kind, {"outcome": "failed", "n": [1, None]}
    )
    assert decode(encode(entry), "log/1") == entry


def test_an_entry_is_one_line_that_a_person_can_read() -> None:
    entry = Entry(1, "e1", None, "a" * 32, "2026-11-01T03:00:00Z", "writing", {"path": "Größe/日"})
    text = encode(entry).decode()
    assert text.count("\n") == 1
    assert "Größe/日" in text


def test_a_name_that_is_no_utf8_survives() -> None:
    name = b"part-\xff.csv".decode("utf-8", "surrogateescape")
    entry = Entry(1, "e1", None, "a" * 32, "2026-11-01T03:00:00Z", "writing", {"path": name})
    assert decode(encode(entry), "log/1") == entry


def test_checkpoints_are_kinds() -> None:
    assert CHECKPOINTS < KINDS


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "not valid JSON"),
        (b'{"format": 1, "number"', "not valid JSON"),
        (b"[1]", "not an entry of this project"),
        (b"{}", "not an entry of this project"),
        (changed(format="1"), "not an entry of this project"),
        (changed(format=FORMAT + 1), f"has format {FORMAT + 1}"),
        (changed(number="3"), "damaged: number is not int"),
        (changed(number=...), "damaged"),
        (changed(id=3), "damaged: id is not str"),
        (changed(previous=2), "damaged: previous is not str"),
        (changed(previous=...), "damaged"),
        (changed(run=None), "damaged: run is not str"),
        (changed(at=0), "damaged: at is not str"),
        (changed(kind=["done"]), "damaged: kind is not str"),
        (changed(format=True), "not an entry of this project"),
        (changed(format=10**4000), r"has format 1[0]{19}, this"),
        (changed(number=True), "damaged: number is not int"),
        (changed(more=float("nan")), "NaN is no number"),
        (changed(more=float("-inf")), "-Infinity is no number"),
        (b'{"format": 1, "number": ' + b"9" * 5000 + b"}", "not valid JSON"),
        (b"[" * 200_000, "nested too deeply"),
        (b"[" * 60 + b"]" * 60, "nested too deeply"),
        (changed(more="\ud800"), "half a character"),
        (changed(kind="committed_all"), "unknown kind 'committed_all'"),
    ],
)
def test_what_is_no_entry_is_refused_and_named(data: bytes, says: str) -> None:
    with pytest.raises(StateUnreadable, match=says) as refused:
        decode(data, "log/3")
    assert refused.value.where == "log/3"


def test_a_later_format_says_what_to_do() -> None:
    with pytest.raises(StateUnreadable) as refused:
        decode(changed(format=99), "log/3")
    assert refused.value.hint == "upgrade airflow-provider-ubunye"


def test_what_is_nested_as_our_own_entries_are_is_read() -> None:
    deep: Any = {"claims": ["x", ["y", "y", [1, 2]]], "é": "\u0007", "odd": "\udcff"}
    for _ in range(30):
        deep = {"more": deep}
    assert parse(json.dumps(deep).encode()) == deep
