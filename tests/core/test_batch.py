"""Batch identity: names, values as text, the key and the keys under which a batch may be found besides."""

from __future__ import annotations

import datetime
import decimal
import hashlib
import json

import pytest

from airflow_provider_ubunye.core.batch import Batch, batch_key, check_name, check_task, value_text
from airflow_provider_ubunye.core.errors import UsageError
from tests.core.kit import DAY, TASK


def test_the_key_of_the_reference_guide() -> None:
    assert Batch.of(TASK, {"dt": DAY}).key == "08e84f1b8a561918"
    assert Batch.of(TASK, {"dt": DAY, "mode": "DEV"}).key == "08e84f1b8a561918"
    text = json.dumps({"task": TASK, "variables": {"dt": DAY, "mode": "DEV"}}, sort_keys=True)
    assert batch_key(TASK, {"mode": "DEV", "dt": DAY}) == hashlib.sha256(text.encode()).hexdigest()[:16]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("2026-11-01", "2026-11-01"),
        (datetime.date(2026, 11, 1), "2026-11-01"),
        (datetime.datetime(2026, 11, 1, 13, tzinfo=datetime.UTC), "2026-11-01T13:00:00+00:00"),
        (13, "13"),
        (1.5, "1.5"),
        (decimal.Decimal("1.50"), "1.50"),
        (True, "true"),
        (False, "false"),
        (None, None),
        ("ø 🚲", "ø 🚲"),
    ],
)
def test_a_value_becomes_the_text_that_the_shell_writes(value: object, text: str | None) -> None:
    assert value_text("dt", value) == text


def test_the_shell_and_python_give_the_same_key() -> None:
    typed = Batch.of(TASK, {"dt": "2026-11-01", "hour": "13", "mode": "dev", "region": None})
    given = Batch.of(TASK, {"hour": 13, "dt": datetime.date(2026, 11, 1)})
    assert typed.key == given.key
    assert typed.variables == {"dt": "2026-11-01", "hour": "13", "mode": "DEV"}
    assert typed.typed_mode == "dev"


@pytest.mark.parametrize(
    "dt",
    ["{{ ds }}", "{% x %}", "None", "none", "null", "NULL", "", "   ", " 2026-11-01", "2026-11-01\n", "a\0b"],
)
def test_a_dt_that_is_no_value_is_refused_in_one_line(dt: str) -> None:
    """Field case 25."""
    with pytest.raises(UsageError) as error:
        Batch.of(TASK, {"dt": dt})
    assert error.value.exit_code == 2
    assert "dt" in error.value.what
    assert "\n" not in error.value.what


@pytest.mark.parametrize("value", [b"bytes", ["a"], {"a": 1}, object()])
def test_a_value_without_one_spelling_is_refused(value: object) -> None:
    with pytest.raises(UsageError, match=f"is a {type(value).__name__}"):
        Batch.of(TASK, {"dt": value})


def test_a_long_value_works_and_a_huge_one_is_refused_before_anything_is_written() -> None:
    """Field case 24."""
    batch = Batch.of(TASK, {"dt": DAY, "note": "x" * 4096})
    assert len(batch.key) == 16
    assert len(batch.label) < 200
    with pytest.raises(UsageError, match="longer than 65536 bytes"):
        Batch.of(TASK, {"dt": DAY, "note": "x" * 65537})
    with pytest.raises(UsageError, match="padded"):
        Batch.of(TASK, {"dt": "x" * 100 + " "})


def test_a_task_name_of_200_bytes_works_and_a_longer_one_is_refused() -> None:
    """Field case 24."""
    assert Batch.of("shop/daily/" + "t" * 200, {"dt": DAY}).named
    with pytest.raises(UsageError, match="longer than 200 bytes"):
        Batch.of("shop/daily/" + "t" * 201, {"dt": DAY})
    with pytest.raises(UsageError, match="longer than 200 bytes"):
        check_name("task", "é" * 101)


@pytest.mark.parametrize(
    ("task", "says"),
    [
        ("../../x", "dot"),
        ("shop/daily/../x", "not written"),
        ("/etc/passwd/x", "not written"),
        ("/shop/daily", "empty"),
        ("shop//x", "empty"),
        ("load_orders", "not written"),
        ("shop/daily/a\0b", "control"),
        ("shop/daily/a\nb", "control"),
        ("shop/daily/a\u2028b", "control"),
        ("shop/daily/a\u202eb", "control"),
        ("shop/daily/a\\b", "one path segment"),
        ("shop/daily/.hidden", "dot"),
        ("shop/daily/..", "dot"),
        ("shop/daily/ x", "padded"),
    ],
)
def test_a_hostile_task_name_is_refused_in_one_line(task: str, says: str) -> None:
    """Field case 35."""
    with pytest.raises(UsageError, match=says) as error:
        check_task(task)
    assert "\n" not in error.value.what
    assert "\0" not in error.value.what


@pytest.mark.parametrize("name", ["load orders", "ünï", "a-b_c.d", "a=b", "a'b"])
def test_a_plain_name_is_taken_as_it_is(name: str) -> None:
    assert check_name("output", name) == name


@pytest.mark.parametrize("name", ["", "a b", "1a", "a\n", "a-b", "x" * 100 + "!"])
def test_a_variable_name_is_an_identifier(name: str) -> None:
    with pytest.raises(UsageError, match="identifier"):
        Batch.of(TASK, {name: "1"})


@pytest.mark.parametrize(
    ("variables", "named_by", "named"),
    [
        ({}, None, False),
        ({"mode": "prod"}, None, False),
        ({"dtf": "%Y"}, None, False),
        ({"mode": "prod", "dtf": "%Y"}, None, False),
        ({"dt": DAY}, None, True),
        ({"hour": "13"}, None, True),
        ({"dt": DAY, "hour": "13"}, ["dt"], True),
        ({"dt": DAY, "hour": "13"}, [], False),
        ({"dtf": "%Y"}, ["dtf"], True),
    ],
)
def test_a_batch_is_named_by_a_dt_or_a_variable(
    variables: dict[str, object], named_by: list[str] | None, named: bool
) -> None:
    assert Batch.of(TASK, variables, named_by=named_by).named is named


def test_config_batch_says_which_variables_are_in_the_key_and_mode_always_is() -> None:
    named = Batch.of(TASK, {"dt": DAY, "hour": 13}, named_by=["dt"])
    assert named.key == Batch.of(TASK, {"dt": DAY}).key
    assert named.key == Batch.of(TASK, {"dt": DAY, "hour": 14}, named_by=["dt"]).key
    assert named.key != Batch.of(TASK, {"dt": DAY, "hour": 13, "mode": "prod"}, named_by=["dt"]).key
    with pytest.raises(UsageError, match="'region'") as error:
        Batch.of(TASK, {"dt": DAY}, named_by=["dt", "region"])
    assert error.value.hint is not None
    assert "--var region=" in error.value.hint


def test_the_label_shows_what_names_the_batch() -> None:
    assert Batch.of(TASK, {"dt": DAY}).label == f"{TASK} dt={DAY}"
    assert Batch.of(TASK, {"dt": DAY, "mode": "prod"}).label == f"{TASK} dt={DAY} mode=PROD"
    assert Batch.of(TASK, {"dt": DAY, "hour": 1}, named_by=["dt"]).label == f"{TASK} dt={DAY}"


def test_other_keys_are_the_mode_as_typed_and_the_time_before_config_batch() -> None:
    assert Batch.of(TASK, {"dt": DAY}).other_keys() == []
    typed = Batch.of(TASK, {"dt": DAY, "mode": "dev"})
    assert typed.other_keys() == [(batch_key(TASK, {"dt": DAY, "mode": "dev"}), None)]
    both = Batch.of(TASK, {"dt": DAY, "hour": 13, "mode": "dev"}, named_by=["dt"])
    keys = dict(both.other_keys())
    assert keys[batch_key(TASK, {"dt": DAY, "hour": "13", "mode": "DEV"})] is None
    assert keys[batch_key(TASK, {"dt": DAY, "hour": "13", "mode": "dev"})] is None
    assert keys[batch_key(TASK, {"dt": DAY, "mode": "dev"})] is None
    assert keys[batch_key(TASK, {"hour": "13", "mode": "DEV"})] == ("hour",)
    assert both.key not in keys


def test_other_lists_of_config_batch_are_looked_up_among_a_few_variables_only() -> None:
    few = Batch.of(TASK, {f"v{i}": i for i in range(6)}, named_by=["v0"])
    assert len(few.other_keys()) == 2**6 - 1 - 1
    many = Batch.of(TASK, {f"v{i}": i for i in range(7)}, named_by=["v0"])
    assert many.other_keys() == [
        (batch_key(TASK, {**{f"v{i}": str(i) for i in range(7)}, "mode": "DEV"}), None)
    ]


@pytest.mark.parametrize(
    ("dt", "meant"),
    [
        ("2026-11-1", "2026-11-01"),
        ("2026-1-01", "2026-01-01"),
        ("2026/11/01", "2026-11-01"),
        ("2026.11.01", "2026-11-01"),
        ("2026-13-45", None),
        ("2026-02-29", None),
        ("2026-00-01", None),
        ("0000-01-01", None),
    ],
)
def test_a_date_in_another_spelling_or_none_is_refused(dt: str, meant: str | None) -> None:
    with pytest.raises(UsageError) as error:
        Batch.of(TASK, {"dt": dt})
    assert dt in error.value.what
    assert (f"did you mean {meant!r}?" in error.value.what) if meant else ("no day" in error.value.what)
    assert Batch.of(TASK, {"dt": dt, "dtf": "yyyy-M-d"}).variables["dt"] == dt


@pytest.mark.parametrize(
    "dt",
    [
        "2026-11-01",
        "2024-02-29",
        "20261101",
        "2026-11",
        "2026-W45",
        "2026-11-01T00:00:00",
        "13",
        "2026-11/01",
    ],
)
def test_what_is_no_date_of_three_parts_is_a_name_as_it_is(dt: str) -> None:
    assert Batch.of(TASK, {"dt": dt}).variables["dt"] == dt


@pytest.mark.parametrize(
    ("named_by", "given", "said", "hint"),
    [
        ("dt", {}, "CONFIG.batch names 'dt', which this run does not have", "give it: -dt …"),
        ("dtf", {}, "CONFIG.batch names 'dtf', which this run does not have", "give it: -dtf …"),
        (
            "region",
            {"reigon": "x"},
            "CONFIG.batch names 'region', which this run does not have; it has 'reigon': did you mean 'region'?",
            "give it: --var region=…",
        ),
    ],
)
def test_a_variable_that_names_the_batch_is_missing(
    named_by: str, given: dict[str, str], said: str, hint: str
) -> None:
    with pytest.raises(UsageError) as error:
        Batch.of(TASK, given, named_by=[named_by])
    assert (error.value.what, error.value.hint) == (said, hint)


def test_what_a_partition_is_held_to() -> None:
    given = {"dt": "2026-11-01", "dtf": "2026-11-02", "mode": "PROD"}
    assert Batch.of(TASK, given).pinned == {"dt": "2026-11-01"}
    assert Batch.of(TASK, given, named_by=["dtf"]).pinned == {"dtf": "2026-11-02"}
    assert Batch.of(TASK, given, named_by=["dt", "mode"]).pinned == {"dt": "2026-11-01", "mode": "PROD"}
