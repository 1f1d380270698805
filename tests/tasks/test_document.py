from __future__ import annotations

import os
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_ubunye.core.errors import ConfigError
from airflow_provider_ubunye.tasks.document import (
    DEEPEST,
    LARGEST_FILE,
    digest,
    parse_document,
    read_document,
)

LETTERS = "abcdefghi"


def lines_of(first: str, rest: str) -> str:
    """A chain of anchors, each used nine times by the next."""
    return first + "".join(
        f"{new}: &{new} " + rest.format(",".join(["*" + old] * 9)) + "\n" for old, new in pairwise(LETTERS)
    )


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a: 1\na: 2", "the key 'a' stands twice, line 2"),
        ("a:\n\tb: 1", "YAML takes no tabs; indent with spaces, line 2"),
        ("a: {x: 1, x: 2}", "the key 'x' stands twice"),
        ("a: !!python/object:os.system x", "could not determine a constructor"),
        ("a: !!python/object/apply:os.system [x]", "could not determine a constructor"),
        ("a: !!python/name:os.system", "could not determine a constructor"),
        ("a: !own x", "could not determine a constructor"),
        ("- 1", "not a mapping"),
        ("", "is empty"),
        ("# nothing", "is empty"),
        ("a: &x [*x]", "alias to itself"),
        ("a: &x {<<: *x}", "alias to itself"),
        (lines_of("a: &a [x,x,x,x,x,x,x,x,x]\n", "[{}]"), "unfolds to more than"),
        (lines_of("a: &a {x: 1, y: 2}\n", "{{<<: [{}]}}"), "unfolds to more than"),
        ("[" * 100_000, "nested deeper"),
        ("{" * 5_000, "nested deeper"),
        ("a: " + "[" * (DEEPEST + 1) + "]" * (DEEPEST + 1), "nested deeper"),
        ("a: !!binary aGk=", "type bytes has no place"),
        ("a: {b: [!!set {x}]}", "a.b[0]: a value of type set"),
        ("a: !!timestamp 2026-01-01", "type date has no place"),
        ("a: !!timestamp 2026-99-01", "not what its tag says"),
        ("a: !!timestamp x", "not what its tag says"),
        ("a: !!bool x", "not what its tag says"),
        ("a: " + "9" * 5000, "not what its tag says"),
        ("1: 2", "the key '1' is not text"),
        ("true: 2", "is not text"),
        ("? [a]\n: b", "is not text"),
        ("a: \x00", "not YAML"),
        ("a: 1\n---\nb: 2", "another document"),
        ("a: *nope", "undefined alias"),
        ("'{{ x }}': 1", "a key can't be a template"),
        ("a: {'{% x %}': 1}", "a: a key can't be a template"),
    ],
)
def test_hostile_documents_are_refused_in_one_line(text: str, said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_document(text, "config.yaml")
    assert said in caught.value.what
    assert "\n" not in caught.value.what
    assert len(caught.value.what) < 400
    assert caught.value.where == "config.yaml"


@pytest.mark.parametrize("text", ["a: {{ dt }}", "a: {{ dt }}/x"])
def test_a_template_without_quotes_gets_the_hint(text: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_document(text, "F")
    assert "in quotes" in (caught.value.hint or "")


def test_values_as_they_are_written() -> None:
    text = "d: 2026-11-01\nn: 3\nf: 1.5\nb: true\nz:\ns: 'x'\nl: [1, a]\nm: {k: v}\n"
    assert parse_document(text, "F") == {
        "d": "2026-11-01", "n": 3, "f": 1.5, "b": True, "z": None, "s": "x", "l": [1, "a"], "m": {"k": "v"}
    }  # fmt: skip


def test_merged_keys_may_be_overridden_again_and_again() -> None:
    text = "a: &a {x: 1, z: 0}\nb: &b {<<: *a, x: 2}\nc: &c {<<: *b}\nd: {<<: *c, x: 3}\n"
    document = parse_document(text, "F")
    assert [document[k]["x"] for k in "abcd"] == [1, 2, 2, 3]


@given(st.text(alphabet=st.sampled_from(list("ab:-[]{}&*!|>'\"#?,\n <%@`=~0.\t")), max_size=60))
def test_any_text_is_a_document_or_one_line(text: str) -> None:
    try:
        said = repr(parse_document(text, "F"))
    except ConfigError as error:
        said = error.what
    assert "\n" not in said


leaves = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8)
trees = st.recursive(
    leaves,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=10,
)


@given(st.dictionaries(st.text(max_size=4), trees, max_size=4))
def test_the_digest_does_not_depend_on_order(document: dict[str, object]) -> None:
    assert digest(document) == digest(dict(reversed(list(document.items()))))
    assert digest(document) != digest({**document, "one key more": 1})


def test_comments_and_layout_do_not_change_the_digest() -> None:
    one = parse_document("a: {b: 1, c: x}\n", "F")
    two = parse_document("# a comment\na:\n  c: x\n  b: 1\n", "F")
    assert digest(one) == digest(two)
    assert digest(one) != digest(parse_document("a: {b: 2, c: x}\n", "F"))


def test_files_that_are_none(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    with pytest.raises(ConfigError, match=r"has no config\.yaml"):
        read_document(path)
    os.mkfifo(path)
    with pytest.raises(ConfigError, match=r"has no config\.yaml"):
        read_document(path)
    path.unlink()
    path.write_bytes(b"a: 1\n#" + b"x" * LARGEST_FILE)
    with pytest.raises(ConfigError, match="larger than"):
        read_document(path)
    path.write_bytes(b"a: \xff")
    with pytest.raises(ConfigError, match="not UTF-8"):
        read_document(path)
    path.write_bytes(b"\xef\xbb\xbfa: 1\n")
    assert read_document(path) == {"a": 1}


def test_a_file_that_can_not_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "config.yaml"
    path.write_text("a: 1")

    def refused(*args: object, **kwargs: object) -> object:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", refused)
    with pytest.raises(ConfigError, match="can't be read: Permission denied"):
        read_document(path)
