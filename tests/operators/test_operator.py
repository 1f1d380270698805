"""The operators' thin parts; what they do on a scheduler is in tests/e2e."""

from __future__ import annotations

import datetime
import inspect
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from airflow.sdk.exceptions import AirflowException, AirflowFailException, TaskDeferralTimeout, TaskDeferred

from airflow_provider_ubunye import UbunyeTaskOperator, batch_run
from airflow_provider_ubunye.attempt import Ruling
from airflow_provider_ubunye.core.errors import UsageError
from airflow_provider_ubunye.decorators.ubunye import _by_name
from airflow_provider_ubunye.hooks.ubunye import UbunyeHook
from airflow_provider_ubunye.operators.base import UbunyeBaseOperator, default_held_timeout, seconds
from airflow_provider_ubunye.tasks.folder import TaskFolder
from airflow_provider_ubunye.tasks.scaffold import write_task
from airflow_provider_ubunye.triggers.ubunye import FREE, TIMEOUT

DONE: dict[str, Any] = {"run": "0", "rows": {}, "files": {}}


class Work(UbunyeTaskOperator):
    """Does what the test says."""

    act: Callable[[], Any]

    def carry_out(self, context: Any, hook: UbunyeHook, ruling: Ruling, dt: Any) -> dict[str, Any] | None:
        self.act()
        return DONE


def work(act: Callable[[], Any] = dict) -> Work:
    operator = Work(task_id="work", task="shop/daily/load", dt="2026-11-01")
    operator.act = act
    return operator


def test_constructors_take_keywords_only() -> None:
    for kind in (UbunyeTaskOperator, UbunyeBaseOperator, UbunyeHook):
        parameters = list(inspect.signature(kind.__init__).parameters.values())[1:]
        assert {p.kind for p in parameters} <= {inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.VAR_KEYWORD}


def test_templated() -> None:
    assert set(UbunyeTaskOperator.template_fields) >= {"task", "dt", "variables", "mode", "usecase_dir"}


@pytest.mark.parametrize("words", [{"on_held": "wait"}, {"on_finished": "ok"}, {"on_clear": "skip"}])
def test_a_word_that_is_not_known_breaks_the_dag(words: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match=f"{next(iter(words))} is"):
        UbunyeTaskOperator(task_id="load", task="shop/daily/load", **words)


def test_on_kill_breaks_into_the_work_once() -> None:
    operator = work()
    operator.act = operator.on_kill
    with pytest.raises(AirflowException, match="told to stop"):
        operator.execute({})
    operator.on_kill()


def test_on_kill_after_a_timeout_leaves_the_timeout_alone() -> None:
    operator = work()
    operator.execute({})
    operator.on_kill()
    # A process that was told to stop does not begin.
    with pytest.raises(AirflowException, match="told to stop"):
        operator.execute({})


def test_a_lost_lease_can_break_into_the_work() -> None:
    """Airflow leaves SIGINT to the system, and Python then tells nobody."""
    before = signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        seen: list[Any] = []
        operator = work(lambda: seen.append(signal.getsignal(signal.SIGINT)))
        operator.execute({})
        assert callable(seen[0])
        assert signal.getsignal(signal.SIGINT) is signal.SIG_DFL
    finally:
        signal.signal(signal.SIGINT, before)


def test_without_a_triggerer_the_message_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    operator = work()

    def timed_out(*args: Any, **how: Any) -> None:
        raise TaskDeferralTimeout

    monkeypatch.setattr(operator, "resume", timed_out)
    with pytest.raises(AirflowException, match="no triggerer answered"):
        operator.resume_execution("resume", {"held_by": {"try_number": 1}}, {})
    # The link still leads to the run that was waited for.
    assert operator.other_attempt == {"try_number": 1}


def test_dag_test_resumes_with_the_event_alone() -> None:
    assert work().resume({}, {"status": FREE}) == DONE
    with pytest.raises(AirflowException, match=r"is held\. held_timeout is over"):
        work().resume({}, {"status": TIMEOUT, "message": "is held"})


def test_none_is_no_date() -> None:
    operator = work()
    operator.dt = None
    with pytest.raises(AirflowFailException, match="dt is None"):
        operator.execute({})


def test_seconds() -> None:
    assert seconds(datetime.timedelta(minutes=1)) == seconds(60) == 60.0


@pytest.mark.parametrize(("given", "span"), [("", None), ("0", 0.0), ("86400", 86400.0)])
def test_the_configurations_held_timeout(
    monkeypatch: pytest.MonkeyPatch, given: str, span: float | None
) -> None:
    assert default_held_timeout() is None
    monkeypatch.setenv("AIRFLOW__UBUNYE__HELD_TIMEOUT", given)
    assert default_held_timeout() == span


@pytest.mark.parametrize("given", ["1h", "-1", "inf", "nan"])
def test_a_held_timeout_that_is_no_number_of_seconds(monkeypatch: pytest.MonkeyPatch, given: str) -> None:
    monkeypatch.setenv("AIRFLOW__UBUNYE__HELD_TIMEOUT", given)
    with pytest.raises(AirflowFailException, match="held_timeout is"):
        default_held_timeout()


def test_a_held_task_waits_as_long_as_the_configuration_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AIRFLOW__UBUNYE__HELD_TIMEOUT", "60")
    write_task(TaskFolder(tmp_path, "shop", "daily", "load"))
    how: dict[str, Any] = {"task": "shop/daily/load", "dt": "2026-11-01", "usecase_dir": str(tmp_path)}
    with batch_run("shop/daily/load", dt="2026-11-01", usecase_dir=tmp_path):
        with pytest.raises(TaskDeferred) as waits:
            UbunyeTaskOperator(task_id="load", **how).execute({})
        with pytest.raises(TaskDeferred) as longer:
            UbunyeTaskOperator(task_id="load", held_timeout=600, **how).execute({})
    for deferred, left in ((waits.value, 60), (longer.value, 600)):
        assert deferred.timeout is not None
        assert left < float(str(deferred.timeout)) <= left + 60


def test_a_functions_arguments_by_name() -> None:
    def first(run: Any, region: str, limit: int = 3) -> None: ...
    def last(region: str, *, run: Any) -> None: ...
    def any_name(**context: Any) -> None: ...
    def without(region: str) -> None: ...

    assert _by_name(first, ["eu"], {"limit": 4}) == {"region": "eu", "limit": 4, "run": None}
    assert _by_name(last, ["eu"], {"run": None}) == {"region": "eu", "run": None}
    assert _by_name(any_name, [], {"region": "eu"}) == {"region": "eu", "run": None}
    with pytest.raises(UsageError, match="without takes no parameter 'run'"):
        _by_name(without, ["eu"], {})
    with pytest.raises(TypeError):
        _by_name(last, ["eu", "us"], {})
