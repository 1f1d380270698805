"""Every exit code, with what leads to it (contract, "Exit codes and refusals")."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from airflow_provider_ubunye.api import batch_run
from airflow_provider_ubunye.core.errors import (
    BatchFinished,
    ConfigError,
    LandingFailed,
    LeaseLost,
    MayRepeat,
    NotTakenBack,
    OutputExists,
    RunInterrupted,
    RunLeaseHeld,
    StateUnreadable,
    TransformFailed,
    UsageError,
)
from airflow_provider_ubunye.core.store import StoreBroken, StoreUnusable
from tests.cli.kit import DAY, Shop


def nothing(shop: Shop) -> None:
    pass


def finished(shop: Shop) -> None:
    assert shop.do("run", "-dt", DAY).code == 0


def failing(shop: Shop) -> None:
    shop.task(code="def transform(sources):\n    raise KeyError('x')\n")


def stray_output(shop: Shop) -> None:
    shop.task(code="def transform(sources):\n    return {'kpet': sources['orders']}\n")


def no_input(shop: Shop) -> None:
    (shop.root / "shop/daily/load/data/orders.csv").unlink()


def damaged(shop: Shop) -> None:
    finished(shop)
    (entry,) = (shop.state / "leases").rglob("0*.json")
    entry.write_text("[]")


def older_note_damaged(shop: Shop) -> None:
    note = shop.state / "leases/shop/daily/load/0123456789abcdef.finished.json"
    key = shop.do("plan", "-dt", DAY, "--json").json["key"]
    note = note.with_name(f"{key}.finished.json")
    note.parent.mkdir(parents=True)
    note.write_text("{ not json")


def state_is_a_file(shop: Shop) -> None:
    shop.state.write_text("")


def interrupting(shop: Shop) -> None:
    shop.task(code="def transform(sources):\n    raise KeyboardInterrupt\n")


@pytest.mark.parametrize(
    ("before", "more", "code", "reason"),
    [
        (nothing, (), 0, "done"),
        (finished, ("--rerun",), 0, "done"),
        (finished, ("--resume",), 0, "finished"),
        (finished, (), 1, "finished"),
        (state_is_a_file, (), 1, "store"),
        (nothing, ("--rerun", "--resume"), 2, "usage"),
        (nothing, ("--nonsense",), 2, "usage"),
        (failing, (), 3, "transform"),
        (stray_output, (), 3, "transform"),
        (no_input, (), 3, "failed"),
        (interrupting, (), 4, "interrupted"),
        (damaged, (), 5, "unreadable"),
        (older_note_damaged, (), 5, "unreadable"),
    ],
)
def test_what_a_run_ends_with(
    shop: Shop, before: Callable[[Shop], None], more: tuple[str, ...], code: int, reason: str
) -> None:
    before(shop)
    said = shop.do("run", "-dt", DAY, *more)
    assert said.code == code
    assert len(said.errors) == (code != 0)
    if code == 0:
        return
    told = shop.do("run", "-dt", DAY, *more, "--json")
    assert told.code == code
    assert (told.json["exit_code"], told.json["reason"]) == (code, reason)


@contextmanager
def held(shop: Shop) -> Iterator[None]:
    with batch_run("shop/daily/load", dt=DAY, usecase_dir=shop.root):
        yield


def test_held_is_refused_for_run_plan_and_release(shop: Shop) -> None:
    with held(shop):
        assert shop.do("run", "-dt", DAY).code == 1
        assert shop.do("plan", "-dt", DAY).code == 1
        (row,) = shop.ubunye("leases", "list", "--json", "-d", str(shop.root)).json
        assert shop.ubunye("leases", "release", row["run"], "-d", str(shop.root)).code == 1


@pytest.mark.parametrize(
    ("error", "code", "status"),
    [
        (RunLeaseHeld("x"), 1, "refused"),
        (BatchFinished("x"), 1, "refused"),
        (OutputExists("x"), 1, "refused"),
        (StoreUnusable("x"), 1, "refused"),
        (UsageError("x"), 2, "invalid"),
        (ConfigError("x"), 2, "invalid"),
        (TransformFailed("x"), 3, "failed"),
        (LandingFailed("x"), 3, "failed"),
        (MemoryError(), 3, "failed"),
        (OSError(28, "No space left on device", "/lake/part"), 3, "failed"),
        (RuntimeError(), 3, "failed"),
        (LeaseLost("x"), 4, "stopped"),
        (RunInterrupted("x"), 4, "stopped"),
        (KeyboardInterrupt(), 4, "stopped"),
        (StateUnreadable("x"), 5, "needs_person"),
        (NotTakenBack("x"), 5, "needs_person"),
        (MayRepeat("x"), 5, "needs_person"),
        (StoreBroken("x"), 5, "needs_person"),
    ],
)
def test_whatever_is_raised_has_a_code_and_one_line(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, error: BaseException, code: int, status: str
) -> None:
    def broken(*_: object) -> None:
        raise error

    monkeypatch.setattr("airflow_provider_ubunye.taskrun.open_run", broken)
    answer = shop.do("run", "-dt", DAY, "--json")
    assert answer.code == code
    assert len(answer.errors) == 1
    assert answer.json["status"] == status
    # The same where it is raised outside a task.
    monkeypatch.setattr("airflow_provider_ubunye.cli.asked.task_names", broken)
    answer = shop.do("run", "-dt", DAY, "--json")
    assert answer.code == code
    assert (answer.json["status"], answer.json["exit_code"]) == (status, code)


def test_init_runs_at_once_and_writes_nothing_over(shop: Shop, tmp_path: Path) -> None:
    args = ["-d", str(tmp_path / "new folder"), "-u", "shop", "-p", "daily", "-t", "one", "-t", "two"]
    answer = shop.ubunye("init", *args)
    assert answer.code == 0
    typed = answer.out[answer.out.index("ubunye run") :].splitlines()[0]
    assert f"-d '{tmp_path}/new folder'" in typed
    assert shop.ubunye("validate", *args).code == 0
    assert shop.ubunye("run", *args, "-dt", DAY).code == 0
    again = shop.ubunye("init", *args)
    assert again.code == 2
    assert "nothing was written" in again.errors[0]
    bad = shop.ubunye("init", "-d", str(tmp_path), "-u", "shop", "-p", "daily", "-t", "good", "-t", "../bad")
    assert bad.code == 2
    assert not (tmp_path / "shop").exists()
    assert shop.ubunye("init", *args[:-4], "-t", "three", "--json").json["status"] == "ok"


def test_validate_names_every_fault(shop: Shop) -> None:
    shop.task("dated", config='CONFIG: {outputs: {kept: {format: csv, path: "out/{{ dt }}"}}}')
    shop.task("no_code", code="x = 1\n")
    shop.task("broken", code="import nothing_of_that_name\n")
    before = shop.everything()
    answer = shop.do("validate", "--all", "--json", tasks=())
    assert answer.code == 3
    told = {t["task"].rpartition("/")[2]: t for t in answer.json}
    assert {name: t["exit_code"] for name, t in told.items()} == {
        "broken": 3,
        "dated": 2,
        "load": 0,
        "no_code": 2,
    }
    assert "needs -dt" in told["dated"]["error"]["what"]
    assert "nothing_of_that_name" in answer.err
    assert shop.do("validate", "-dt", DAY, tasks=("dated",)).code == 0
    assert shop.everything() == before
