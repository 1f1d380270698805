"""Globs, on names only."""

from __future__ import annotations

import pytest

from airflow_provider_ubunye.core.globs import braces, is_glob, names


@pytest.mark.parametrize(
    ("pattern", "path", "found"),
    [
        ("a", "a", True),
        ("a", "a/b", True),
        ("a/b", "a", False),
        ("a*/b?", "ax/bc/d", True),
        ("**", "a/b", True),
        ("**/c", "a/b/c", True),
        ("**/c", "c", True),
        ("a/**/c", "a/b", False),
        ("*", "_a", False),
        ("*", ".a", False),
        ("_*", "_a", False),
        ("_a", "_a", True),
    ],
)
def test_a_glob_names_a_path_or_a_folder_above_it(pattern: str, path: str, found: bool) -> None:
    assert names(tuple(pattern.split("/")), tuple(path.split("/"))) is found


def test_braces() -> None:
    assert braces("a{b,c{d,e}}f") == ["abf", "acdf", "abf", "acef"]
    assert braces("plain") == ["plain"]
    assert (is_glob("a{b}"), is_glob("a[b]"), is_glob("ab=c")) == (True, True, False)
