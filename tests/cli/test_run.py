"""``ubunye run``: refused, replaced, skipped, taken over; several tasks; what it says and its documents."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from airflow_provider_ubunye.api import batch_run
from tests.cli.kit import CONFIG, DAY, Shop

NEXT = "2026-11-02"
BOOM = """\
def helper(orders):
    raise ValueError(f"no column in {len(orders)} rows")


def transform(sources):
    return {"kept": helper(sources["orders"])}
"""


def test_a_finished_batch_is_refused_in_one_line_then_replaced(shop: Shop) -> None:
    first = shop.do("run", "-dt", DAY)
    assert first.code == 0
    assert first.err == ""
    assert first.out.splitlines()[-1].startswith(
        "[OK] shop/daily/load dt=2026-11-01: 3 rows to kept in 1 file"
    )
    landed = shop.files()

    again = shop.do("run", "-dt", DAY)
    assert again.code == 1
    assert "already finished this batch" in again.errors[0]
    assert "Hint: to replace the batch, run it again with --rerun" in again.err
    assert shop.files() == landed

    rerun = shop.do("run", "-dt", DAY, "--rerun")
    assert rerun.code == 0
    assert "Replaced the batch: removed 1 file of run" in rerun.out
    assert len(shop.files()) == 1
    assert shop.files() != landed

    # Case 32: a rerun, and then a plain run.
    assert shop.do("run", "-dt", DAY).code == 1
    assert len(shop.files()) == 1


def test_resume_twice_the_next_day_and_after_a_change(shop: Shop) -> None:  # case 30
    run = shop.do("run", "-dt", DAY, "--json").json["run"][:8]
    assert f"[SKIP] it already finished this batch (run {run})" in shop.do("plan", "-dt", DAY, "--resume").out
    for _ in range(2):
        skipped = shop.do("run", "-dt", DAY, "--resume")
        assert skipped.code == 0
        assert (
            f"[SKIP] shop/daily/load dt={DAY} already finished this batch (run {run}; --resume)"
            in skipped.out
        )
    assert "[OK]" in shop.do("run", "-dt", NEXT, "--resume").out
    config = shop.root / "shop/daily/load/config.yaml"
    config.write_text('VERSION: "2"\n' + config.read_text())
    assert "Its config has changed since" in shop.do("run", "-dt", DAY, "--resume").out
    assert len(shop.files()) == 2


def test_resume_of_an_overwrite_looks_at_records(shop: Shop) -> None:
    shop.task("sums", mode="overwrite")
    names = ("sums",)
    assert shop.do("run", "-dt", DAY, "--lineage", tasks=names).code == 0
    assert "[OK]" in shop.do("run", "-dt", DAY, "--resume", tasks=names).out
    assert "[SKIP]" in shop.do("run", "-dt", DAY, "--resume", "--lineage", tasks=names).out
    assert "[OK]" in shop.do("run", "-dt", DAY, "--lineage", tasks=names).out


def test_records_and_state_where_they_are_asked_for(
    shop: Shop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop.do("run", "-dt", DAY, "--lineage-dir", "kept-records", "--state", str(tmp_path / "one"))
    assert len(list((shop.root / "kept-records/shop/daily/load").glob("*.json"))) == 1
    assert (tmp_path / "one/leases/shop/daily/load").is_dir()
    monkeypatch.setenv("UBUNYE_STATE", str(tmp_path / "two"))
    assert shop.do("run", "-dt", DAY).code == 0
    assert shop.do("run", "-dt", DAY).code == 1
    assert shop.do("run", "-dt", DAY, "--state", str(tmp_path / "one")).code == 1
    assert shop.ubunye("leases", "list", "--all").out.count("shop/daily/load dt=") == 1
    assert not shop.state.exists()


def test_another_state_than_the_folders_own_is_pointed_out(
    shop: Shop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = str(tmp_path / "other")
    assert shop.do("run", "-dt", NEXT, "--state", other).err == ""
    shop.do("run", "-dt", DAY)
    warned = (
        f"[WARN] shop/daily/load dt={DAY}: the state used is {other}, but {shop.state} knows this batch too"
    )
    assert warned in shop.do("run", "-dt", DAY, "--state", other).err
    monkeypatch.setenv("UBUNYE_STATE", other)
    planned = shop.do("plan", "-dt", DAY)
    assert f"State: {other}" in planned.out
    assert f"[WARN] the state used is {other}" in planned.out
    link = tmp_path / "link"
    link.symlink_to(shop.state)
    assert "[WARN]" not in shop.do("run", "-dt", DAY, "--state", str(link)).err


def test_without_a_lease_it_says_so_and_appends(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UBUNYE_RUN_LEASE", "off")
    for _ in range(2):
        answer = shop.do("run", "-dt", DAY)
        assert answer.code == 0
        assert "[WARN] UBUNYE_RUN_LEASE is off" in answer.err
    assert len(shop.files()) == 2


def test_without_a_batch_it_says_what_that_means(shop: Shop) -> None:
    for _ in range(2):
        answer = shop.do("run")
        assert answer.code == 0
        assert "no batch: without -dt or --var a second run adds its rows again" in answer.out
    assert len(shop.files()) == 2


def test_several_tasks_and_the_first_failure(shop: Shop) -> None:
    shop.task("b_sums", mode="overwrite")
    shop.task("c_boom", code=BOOM)
    shop.task("d_last")
    names = ("load", "b_sums", "c_boom", "d_last")
    shop.do("run", "-dt", DAY)
    answer = shop.do("run", "-dt", DAY, "--resume", tasks=names)
    assert answer.code == 3
    summary = answer.out[answer.out.index("Summary:") :].splitlines()
    assert summary[0] == "Summary: 1 ran, 1 skipped, 1 failed, 1 not run"
    assert [line.split()[:2] for line in summary[1:]] == [
        ["[SKIP]", "shop/daily/load"],
        ["[OK]", "shop/daily/b_sums"],
        ["[ERROR]", "shop/daily/c_boom"],
        ["[--]", "shop/daily/d_last"],
    ]
    assert summary[3].endswith("shop/daily/c_boom  its code raised ValueError")
    assert shop.files("d_last") == []

    told = shop.do("run", "-dt", DAY, "--json", tasks=names)
    assert told.code == 1
    assert [t["status"] for t in told.json] == ["refused", "not_run", "not_run", "not_run"]
    assert "Summary: 1 refused, 3 not run" in told.err
    assert "[ERROR] shop/daily/load  refused: already finished" in told.err


def test_all_takes_every_task_by_name(shop: Shop) -> None:
    shop.task("another")
    answer = shop.do("run", "-dt", DAY, "--all", tasks=())
    assert answer.code == 0
    assert answer.out.index("daily/another") < answer.out.index("daily/load")
    assert "Summary: 2 ran" in answer.out


def test_a_wrong_config_is_found_before_any_task_runs(shop: Shop) -> None:
    shop.task("second", config="CONFIG: {outputs: {kept: {fromat: csv, path: x}}}")
    answer = shop.do("run", "-dt", DAY, "--json", tasks=("load", "second"))
    assert answer.code == 2
    assert [t["status"] for t in answer.json] == ["not_run", "invalid"]
    assert shop.files() == []


def test_a_transform_that_fails_shows_its_own_frames_only(shop: Shop) -> None:  # case 39
    shop.task(code=BOOM)
    answer = shop.do("run", "-dt", DAY)
    assert answer.code == 3
    lines = answer.err.splitlines()
    assert lines[0] == "[ERROR] Failed: shop/daily/load dt=2026-11-01: ValueError: no column in 3 rows"
    assert [line.split(", in ")[-1] for line in lines if "File " in line] == ["transform", "helper"]
    assert "airflow_provider_ubunye/" not in answer.err
    assert shop.files() == []
    shop.task()
    assert shop.do("run", "-dt", DAY).code == 0


def test_debug_shows_the_traceback(shop: Shop) -> None:
    shop.task(code=BOOM)
    answer = shop.do("run", "-dt", DAY, "--debug")
    assert answer.code == 3
    assert "Traceback (most recent call last)" in answer.err
    shop.task(mode="append")
    shop.do("run", "-dt", DAY)
    refused = shop.do("run", "-dt", DAY, "--debug")
    assert refused.err.count("Hint: to replace the batch") == 1


def test_what_nobody_thought_of_is_one_line(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise ZeroDivisionError("on\ntwo lines")

    monkeypatch.setattr("airflow_provider_ubunye.taskrun.open_run", broken)
    answer = shop.do("run", "-dt", DAY, "--json")
    assert answer.code == 3
    assert len(answer.errors) == 1
    assert "an unexpected ZeroDivisionError: on two lines" in answer.errors[0]
    assert "--debug" in answer.json["error"]["hint"]


def test_secrets_are_in_no_line_and_no_document(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHOP_PASSWORD", "correct horse battery")
    config = CONFIG.format(mode="append") + "  transform: {params: {password: secret://env/SHOP_PASSWORD}}\n"
    code = (
        "import logging\n"
        "def transform(sources, context):\n"
        "    logging.getLogger('airflow_provider_ubunye.mine').warning('with %s', context.params['password'])\n"
        "    raise RuntimeError('refused: ' + context.params['password'])\n"
    )
    shop.task(config=config, code=code)
    for more in ((), ("--json",), ("--debug",)):
        answer = shop.do("run", "-dt", DAY, *more)
        assert answer.code == 3
        assert "correct horse" not in answer.out + answer.err
        assert "[WARN] with ***" in answer.err
        assert "refused: ***" in answer.err


def test_names_from_elsewhere_do_not_steer_the_terminal(shop: Shop) -> None:
    shop.task(code="def transform(sources):\n    raise ValueError('\\x1b]0;owned\\x07 \\u202e')\n")
    answer = shop.do("run", "-dt", DAY)
    assert answer.code == 3
    assert "\x1b" not in answer.err
    assert "\\x1b]0;owned" in answer.err


def test_the_document_of_a_run(shop: Shop) -> None:
    first = shop.do("run", "-dt", DAY, "--json")
    told = first.json
    assert first.code == 0
    assert "[OK]" in first.err
    run = told.pop("run")
    assert run[:8] in first.err
    assert told == {
        "status": "ok",
        "reason": "done",
        "exit_code": 0,
        "task": "shop/daily/load",
        "variables": {"dt": DAY, "mode": "DEV"},
        "key": told["key"],
        "rows": {"kept": 3},
        "files": {"kept": 1},
        "skipped_outputs": [],
        "replaced": 0,
        "over": None,
        "error": None,
    }
    refused = shop.do("run", "-dt", DAY, "--json").json
    assert (refused["status"], refused["reason"], refused["exit_code"]) == ("refused", "finished", 1)
    assert refused["run"] is None
    assert refused["key"] == told["key"]
    assert set(refused["error"]) == {"what", "where", "hint"}
    replaced = shop.do("run", "-dt", DAY, "--rerun", "--json").json
    assert (replaced["status"], replaced["replaced"]) == ("ok", 1)
    skipped = shop.do("run", "-dt", DAY, "--resume", "--json").json
    assert (skipped["status"], skipped["reason"], skipped["run"]) == ("skipped", "finished", None)


def test_prints_of_the_task_do_not_break_the_document(shop: Shop) -> None:
    shop.task(code="def transform(sources):\n    print('hello')\n    return {'kept': sources['orders']}\n")
    answer = shop.do("run", "-dt", DAY, "--json")
    assert json.loads(answer.out)["status"] == "ok"
    assert "hello" in answer.err


def test_a_held_batch_names_its_holder(shop: Shop) -> None:
    with batch_run("shop/daily/load", dt=DAY, usecase_dir=shop.root) as run:
        answer = shop.do("run", "-dt", DAY)
        assert answer.code == 1
        assert "still running" in answer.errors[0]
        assert all(part in answer.errors[0] for part in (run.id[:8], "pid", "since"))
        assert shop.do("run", "-dt", NEXT).code == 0
        told = shop.do("run", "-dt", DAY, "--json").json
        assert (told["status"], told["reason"]) == ("refused", "held")


def test_outputs_left_alone_and_outputs_in_the_way(shop: Shop) -> None:
    shop.task("ignoring", mode="ignore")
    shop.task("careful", mode="errorifexists")
    for name in ("ignoring", "careful"):
        assert shop.do("run", "-dt", DAY, tasks=(name,)).code == 0
    answer = shop.do("run", "-dt", NEXT, tasks=("ignoring",))
    assert answer.code == 0
    assert f"[SKIP] shop/daily/ignoring dt={NEXT}: kept holds data already" in answer.out
    assert shop.do("run", "-dt", NEXT, "--json", tasks=("ignoring",)).json["skipped_outputs"] == ["kept"]
    assert (
        f"Refused: shop/daily/careful dt={NEXT}: the output kept"
        in shop.do("run", "-dt", NEXT, tasks=("careful",)).errors[0]
    )
    answer = shop.do("run", "-dt", NEXT, "--json", tasks=("careful",))
    assert answer.code == 1
    assert answer.json["reason"] == "output_exists"
