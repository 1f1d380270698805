"""Errors as a Python caller's traceback shows them."""

from __future__ import annotations

import pickle
import traceback

from airflow_provider_ubunye.core.errors import BatchFinished, StateUnreadable, TransformFailed, UbunyeError


def shown(error: UbunyeError) -> list[str]:
    return "".join(traceback.format_exception(error)).splitlines()


def test_a_traceback_shows_where_and_hint_as_they_are_now() -> None:
    error = BatchFinished("it is finished", where="/state", hint="first")
    error.hint = "type this"
    error.add_note("seen by the caller")
    assert shown(error)[1:] == ["  Where: /state", "  Hint: type this", "seen by the caller"]
    assert str(error) == "it is finished"
    assert shown(UbunyeError("bare"))[1:] == []
    assert shown(TransformFailed("x", frames=['  File "t.py"']))[1:] == ['  File "t.py"']


def test_an_error_survives_pickling() -> None:
    error = pickle.loads(pickle.dumps(BatchFinished("x", where="/state", hint="y")))
    assert error.lines() == ["x", "  Where: /state", "  Hint: y"]


def test_a_state_that_can_not_be_read_says_what_to_do() -> None:
    assert "damaged.md" in str(StateUnreadable("x").hint)
    assert StateUnreadable("x", hint="upgrade").hint == "upgrade"
