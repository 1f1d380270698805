"""Entries as they are stored: what is written is read back, and what is damaged is refused, never absent."""

from __future__ import annotations

import json
from typing import Any

import pytest

from airflow_provider_ubunye.core.entries import CHECKPOINTS, FORMAT, KINDS, Entry, decode, encode
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
