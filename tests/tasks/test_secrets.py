from __future__ import annotations

import io
import json
import logging
import os
from importlib.metadata import EntryPoint, EntryPoints
from pathlib import Path
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_ubunye.core.errors import ConfigError, LandingFailed, TransformFailed
from airflow_provider_ubunye.core.specs import InputSpec, OutputSpec
from airflow_provider_ubunye.tasks import secrets
from airflow_provider_ubunye.tasks.secrets import (
    RedactingFilter,
    Redactor,
    check_reference,
    mask_error,
    resolve,
    resolve_spec,
)

ENVIRON = {"DB_PASSWORD": "p@ss w/rd'", "EMPTY": " "}


@pytest.fixture
def redactor() -> Redactor:
    return Redactor()


def test_env_at_any_depth(redactor: Redactor) -> None:
    value = {
        "a": "secret://env/DB_PASSWORD",
        "b": ["x", ("secret://env/DB_PASSWORD", 3)],
        "c": None,
        "d": True,
    }
    done = resolve(value, "K", environ=ENVIRON, redactor=redactor)
    assert done == {"a": "p@ss w/rd'", "b": ["x", ("p@ss w/rd'", 3)], "c": None, "d": True}
    assert redactor.mask("it is p@ss w/rd' here") == "it is *** here"


def test_the_process_environment_and_redactor_are_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UBUNYE_TEST_SECRET", "only-in-this-test-91")
    assert resolve("secret://env/UBUNYE_TEST_SECRET", "K") == "only-in-this-test-91"
    assert secrets.mask("x only-in-this-test-91 y") == "x *** y"


@pytest.mark.parametrize("ending", ["", "\n", "\r\n"])
def test_file(tmp_path: Path, redactor: Redactor, ending: str) -> None:
    path = tmp_path / "token"
    path.write_bytes(b"two\nlines here" + ending.encode())
    assert resolve(f"secret://file{path}", "K", redactor=redactor) == "two\nlines here"
    # The spelling of an older Ubunye, with the root's own slash.
    assert resolve(f"secret://file/{path}", "K", redactor=redactor) == "two\nlines here"


def test_files_that_give_no_secret(tmp_path: Path, redactor: Redactor) -> None:
    def said(path: Path | str) -> str:
        with pytest.raises(ConfigError) as caught:
            resolve(f"secret://file{path}", "CONFIG.x", redactor=redactor)
        assert "\n" not in caught.value.what
        assert "hidden-value" not in caught.value.what
        assert caught.value.what.startswith("CONFIG.x: ")
        return caught.value.what

    assert "is not a file" in said(tmp_path / "nope")
    assert "is not a file" in said(tmp_path)
    os.mkfifo(tmp_path / "pipe")
    assert "is not a file" in said(tmp_path / "pipe")
    (tmp_path / "big").write_text("hidden-value" * 10_000)
    assert "larger than" in said(tmp_path / "big")
    (tmp_path / "binary").write_bytes(b"hidden-value\xff")
    assert "not UTF-8" in said(tmp_path / "binary")
    (tmp_path / "empty").write_text("\n")
    assert "is empty" in said(tmp_path / "empty")
    assert "not a plain absolute path" in said("/a/../etc/shadow")
    assert "not a plain absolute path" in said("/a\0b")
    assert "can't be read" in said("/" + "x" * 300)


def test_a_windows_drive_is_no_name_below_the_root(redactor: Redactor) -> None:
    with pytest.raises(ConfigError, match="is not a file"):
        resolve("secret://file/C:/secrets/x", "K", redactor=redactor)


@pytest.mark.parametrize(
    ("reference", "said"),
    [
        ("secret://env/NOPE", "the environment variable 'NOPE' of secret://env/NOPE is not set"),
        ("secret://env/EMPTY", "secret://env/EMPTY is empty"),
        ("secret://env/", "is not a secret reference"),
        ("secret://", "is not a secret reference"),
        ("secret://env", "is not a secret reference"),
        ("secret:///x", "is not a secret reference"),
        ("jdbc:x?password=secret://env/DB_PASSWORD", "must be the whole value"),
        ("secret://env/A secret://env/B", "must be the whole value"),
        ("secret://vault/x", "unknown kind of secret 'vault'; known: env, file"),
    ],
)
def test_references_that_give_nothing(reference: str, said: str, redactor: Redactor) -> None:
    with pytest.raises(ConfigError) as caught:
        resolve({"password": reference}, "CONFIG.o.options", environ=ENVIRON, redactor=redactor)
    assert caught.value.what.startswith("CONFIG.o.options.password: ")
    assert said in caught.value.what


def test_text_without_a_reference_is_left_alone() -> None:
    check_reference("K", "secret:/x")
    assert resolve("plain", "K") == "plain"


class _Providers:
    @staticmethod
    def good(name: str) -> str:
        return f"value of {name}"

    @staticmethod
    def leaking(name: str) -> str:
        raise RuntimeError("hidden-value")

    @staticmethod
    def number(name: str) -> object:
        return 13


def test_other_kinds_by_entry_point(monkeypatch: pytest.MonkeyPatch, redactor: Redactor) -> None:
    class Point(EntryPoint):
        def load(self) -> object:
            return getattr(_Providers, self.name)

    points = EntryPoints(Point(name, "x:y", secrets.ENTRY_POINTS) for name in ("good", "leaking", "number"))
    monkeypatch.setattr("importlib.metadata.entry_points", lambda group: points.select(group=group))
    assert resolve("secret://good/a/b", "K", redactor=redactor) == "value of a/b"
    assert redactor.mask("value of a/b") == "***"
    with pytest.raises(ConfigError) as caught:
        resolve("secret://leaking/x", "K", redactor=redactor)
    assert caught.value.what == "K: secret://leaking/x could not be fetched (RuntimeError)"
    assert caught.value.__cause__ is None
    with pytest.raises(ConfigError, match="gave a int, not text"):
        resolve("secret://number/x", "K", redactor=redactor)


def test_specs(redactor: Redactor) -> None:
    made = InputSpec("orders", "csv", "/x", {"password": "secret://env/DB_PASSWORD", "header": True})
    assert resolve_spec(made, environ=ENVIRON, redactor=redactor).options == {
        "password": "p@ss w/rd'",
        "header": True,
    }
    assert made.options["password"] == "secret://env/DB_PASSWORD"
    with pytest.raises(ConfigError, match=r"^CONFIG\.outputs\.orders\.options\.x: "):
        resolve_spec(OutputSpec("orders", "csv", "/x", options={"x": "secret://env/NOPE"}), redactor=redactor)


# ── masking ─────────────────────────────────────────────────────────────────────────────────────


@given(st.text(min_size=4, max_size=30).filter(lambda t: t.strip() and "*" not in t), st.text(max_size=10))
def test_no_spelling_of_a_secret_is_left(value: str, around: str) -> None:
    redactor = Redactor()
    redactor.add(value)
    spellings = [value, repr(value)[1:-1], json.dumps(value)[1:-1]]
    spellings += [quote(value, safe="", errors="replace"), quote_plus(value, errors="replace")]
    for spelling in spellings:
        masked = redactor.mask(f"{around}{spelling}{around}")
        assert "***" in masked
        if spelling not in around * 2:
            assert spelling not in masked.replace("***", "\0")


def test_a_secret_of_several_lines_is_hidden_line_by_line(redactor: Redactor) -> None:
    redactor.add("-----BEGIN-----\nabcdefghij\nxy\n-----END-----\n")
    assert redactor.mask("log: abcdefghij and xy") == "log: *** and xy"


def test_a_short_secret_is_hidden_where_it_stands_alone(redactor: Redactor) -> None:
    redactor.add("ab")
    assert redactor.mask("ab cab 'ab' able") == "*** cab '***' able"


def test_the_longest_comes_first(redactor: Redactor) -> None:
    redactor.add("pass")
    redactor.add("password")
    redactor.add("password")
    redactor.add("  ")
    assert redactor.mask("password pass") == "*** ***"
    assert Redactor().mask("nothing known") == "nothing known"


def test_an_undecodable_byte_of_the_environment(redactor: Redactor) -> None:
    redactor.add("abc\udcffdef")
    assert redactor.mask("abc\udcffdef") == "***"


def logger_with(redactor: Redactor) -> tuple[logging.Logger, io.StringIO]:
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.addFilter(RedactingFilter(redactor))
    logger = logging.Logger("of this test")  # noqa: LOG001 - one that no other test sees
    logger.addHandler(handler)
    return logger, stream


def test_logs_are_masked(redactor: Redactor) -> None:
    redactor.add("hunter22")
    logger, stream = logger_with(redactor)
    logger.warning("the password is %s, %d times", "hunter22", 2)
    try:
        raise ValueError("hunter22 was wrong")
    except ValueError:
        logger.exception("failed", stack_info=True)
    # Arguments that don't fit: logging prints its own complaint; ours must show nothing either.
    logger.warning("%d", "hunter22")
    text = stream.getvalue()
    assert "hunter22" not in text
    assert "the password is ***, 2 times" in text
    assert "ValueError: *** was wrong" in text
    assert "Traceback" in text
    assert "%d ('***',)" in text


def test_a_traceback_that_a_handler_formatted_before_is_masked(redactor: Redactor) -> None:
    redactor.add("hunter22")
    record = logging.LogRecord("n", logging.ERROR, "f", 1, "m", None, None)
    record.exc_text = "ValueError: hunter22"
    assert RedactingFilter(redactor).filter(record)
    assert record.exc_text == "ValueError: ***"


def test_an_error_is_masked_with_the_errors_it_came_from(
    redactor: Redactor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(secrets, "REDACTOR", redactor)
    redactor.add("hunter22")
    cause = TransformFailed("bad hunter22", frames=["  key = 'hunter22'"], hint="not hunter22")
    users = ValueError("hunter22")
    cause.__cause__ = users
    error = LandingFailed("no hunter22", where="/lake/hunter22")
    error.__context__ = cause
    users.__context__ = error  # a ring, which Python's own tracebacks survive too
    mask_error(error)
    assert (str(error), error.what, error.where, error.hint) == ("no ***", "no ***", "/lake/***", None)
    assert cause.lines() == ["bad ***", "  key = '***'", "  Hint: not ***"]
    assert str(users) == "hunter22"
