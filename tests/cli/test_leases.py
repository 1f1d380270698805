"""``ubunye leases``: who holds what, and releasing by hand."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

from airflow_provider_ubunye.api import batch_run
from tests.cli.kit import DAY, Shop


def dead(shop: Shop) -> str:
    """A run killed in its transform; its id as a refusal prints it."""
    with shop.running("-dt", DAY) as process:
        refused = shop.do("run", "-dt", DAY)
        assert refused.code == 1
        process.kill()
        process.communicate()
    shop.task()
    found = re.search(r"still running: run ([0-9a-f]{8}) ", refused.err)
    assert found is not None
    return found[1]


def test_nothing_is_made_by_looking(shop: Shop) -> None:
    before = shop.everything()
    answer = shop.ubunye("leases", "list", "-d", str(shop.root))
    assert answer.code == 0
    assert "No open batches" in answer.out
    assert "[WARN] there is no" in answer.err
    assert shop.ubunye("leases", "list", "-d", str(shop.root), "--json").json == []
    assert shop.ubunye("leases", "release", "abcd", "-d", str(shop.root)).code == 2
    assert shop.everything() == before


def test_a_folder_that_is_not_there_is_a_usage_error(shop: Shop) -> None:
    for args in (["list"], ["show", "abcdef01"], ["release", "abcdef01"]):
        answer = shop.ubunye("leases", *args, "-d", str(shop.root / "no"))
        assert answer.code == 2
        assert "does not exist" in answer.errors[0]


def test_every_batch_by_task_and_label_with_its_last_run(shop: Shop) -> None:
    shop.task("early")
    runs = {}
    for name, more in (("load", ("-dt", "2026-11-03")), ("load", ("-dt", DAY)), ("early", ())):
        runs[name, more] = shop.do("run", *more, "--json", tasks=(name,)).json["run"][:8]
    listed = shop.ubunye("leases", "list", "--all", "-d", str(shop.root)).out.splitlines()[1:]
    assert [line.split()[1] for line in listed] == [
        runs["early", ()],
        runs["load", ("-dt", DAY)],
        runs["load", ("-dt", "2026-11-03")],
    ]
    assert shop.ubunye("leases", "show", runs["early", ()], "-d", str(shop.root)).code == 0
    assert "--all shows the finished ones" in shop.ubunye("leases", "list", "-d", str(shop.root)).out


def test_a_log_is_shown_in_words(shop: Shop) -> None:
    shop.do("run", "-dt", DAY)
    with batch_run("shop/daily/load", dt=DAY, usecase_dir=shop.root, rerun=True) as run:
        shown = shop.ubunye("leases", "show", run.id, "-d", str(shop.root)).out
    assert "asked to rerun, time to takeover 15 min, heartbeat every 30 s, dt=2026-11-01" in shown
    assert "ttl" not in shown
    lost = shop.ubunye("leases", "show", "ffffffff", "-d", str(shop.root))
    assert "is held by, or was finished last by, run ffffffff" in lost.errors[0]
    assert f"ubunye leases list --all -d {shop.root}" in lost.err


def test_the_states_of_batches(shop: Shop) -> None:
    shop.do("run", "-dt", "2026-10-01")
    with batch_run("shop/daily/load", dt=DAY, usecase_dir=shop.root) as run:
        answer = shop.ubunye("leases", "list", "-d", str(shop.root))
        head, row = answer.out.splitlines()
        assert head.split() == ["STATE", "RUN", "BATCH", "HOST", "PID", "SINCE", "HEARTBEAT"]
        assert row.split()[:4] == ["alive", run.id[:8], "shop/daily/load", f"dt={DAY}"]
        shown = shop.ubunye("leases", "list", "--all", "--json", "-d", str(shop.root)).json
        assert [b["state"] for b in sorted(shown, key=lambda b: b["variables"]["dt"])] == [
            "finished",
            "alive",
        ]
    assert "No open batches" in shop.ubunye("leases", "list", "-d", str(shop.root)).out


def test_the_id_of_a_refusal_releases(shop: Shop) -> None:  # case 37
    run = dead(shop)
    listed = shop.ubunye("leases", "list", "-d", str(shop.root))
    assert listed.out.splitlines()[1].split()[:2] == ["dead", run]
    shown = shop.ubunye("leases", "show", run, "-d", str(shop.root))
    assert shown.code == 0
    assert "acquired" in shown.out
    answer = shop.ubunye("leases", "release", run, "-d", str(shop.root))
    assert answer.code == 0
    assert f"released from run {run}, which is dead; 0 files taken back" in answer.out
    assert "No open batches" in shop.ubunye("leases", "list", "-d", str(shop.root)).out
    assert shop.do("run", "-dt", DAY).code == 0
    assert len(shop.files()) == 1


def test_a_live_run_is_released_by_force_alone(shop: Shop) -> None:
    with shop.running("-dt", DAY) as process:
        (row,) = shop.ubunye("leases", "list", "--json", "-d", str(shop.root)).json
        answer = shop.ubunye("leases", "release", row["run"][:8], "-d", str(shop.root))
        assert answer.code == 1
        assert "still running" in answer.errors[0]
        assert f"ubunye leases release {row['run'][:8]} --force -d {shop.root}" in answer.err
        forced = shop.ubunye("leases", "release", row["key"], "--force", "--json", "-d", str(shop.root))
        assert forced.code == 0
        assert forced.json["state"] == "free"
        shop.go()
        _, err = process.communicate(timeout=60)
        assert process.returncode == 4
        assert "lost its lease: it was released by hand" in err
        assert f"ubunye leases list -d {shop.root}" in err
        assert "Traceback" not in err
    assert shop.files() == []


def test_a_finished_batch_needs_no_release(shop: Shop) -> None:
    run = shop.do("run", "-dt", DAY, "--json").json["run"]
    answer = shop.ubunye("leases", "release", run, "-d", str(shop.root))
    assert answer.code == 0
    assert "owes nothing" in answer.out
    assert len(shop.files()) == 1
    shown = shop.ubunye("leases", "show", run[:8], "--json", "-d", str(shop.root)).json
    assert shown["state"] == "finished"
    assert shown["entries"][-1]["entry"]["kind"] == "finished"


def test_ids_that_mean_nothing(shop: Shop) -> None:
    shop.do("run", "-dt", DAY)
    for given in ("xyz", "12", "../../x", "ffffffff", ""):
        for command in ("show", "release"):
            answer = shop.ubunye("leases", command, given, "-d", str(shop.root))
            assert answer.code == 2
            assert len(answer.errors) == 1


def test_a_damaged_log_is_named_and_shown(shop: Shop) -> None:
    shop.do("run", "-dt", DAY)
    (entry,) = (shop.state / "leases").rglob("0*.json")
    entry.write_text("{ half")
    listed = shop.ubunye("leases", "list", "-d", str(shop.root))
    assert listed.code == 5
    assert listed.out.splitlines()[1].startswith("unreadable")
    said = listed.err.splitlines()
    assert "not valid JSON" in said[0]
    planned = shop.do("plan", "-dt", DAY)
    ran = shop.do("run", "-dt", DAY)
    assert planned.err == ran.err
    assert said[1:] == planned.err.splitlines()[1:] == [f"  Where: {entry}", said[2]]
    assert "damaged.md" in said[2]
    key = entry.parent.name
    shown = shop.ubunye("leases", "show", key, "-d", str(shop.root))
    assert shown.code == 5
    assert "can't be read" in shown.out
    before = shop.everything()
    for more in ((), ("--force",)):
        assert shop.ubunye("leases", "release", key, *more, "-d", str(shop.root)).code == 5
    assert shop.everything() == before


def test_a_forged_holder_does_not_steer_the_terminal(shop: Shop) -> None:
    dead(shop)
    first = min((shop.state / "leases").rglob("0*.json"))
    document = json.loads(first.read_text())
    document["owner"]["host"] = "\x1b[2Jhost\nINJECTED"
    first.write_text(json.dumps(document))
    answer = shop.ubunye("leases", "list", "-d", str(shop.root))
    assert "\x1b" not in answer.out
    assert len(answer.out.splitlines()) == 2


def test_a_state_that_is_no_folder(shop: Shop) -> None:
    state = shop.root / "state"
    state.write_text("")
    answer = shop.ubunye("leases", "list", "--state", str(state))
    assert answer.code == 1
    assert "can't be used" in answer.errors[0]


def test_an_older_lease_is_shown_and_left_to_the_run(shop: Shop) -> None:
    older = Path(__file__).parents[1] / "data/ubunye-0.8.0/lease-running/leases"
    shutil.copytree(older, shop.state / "leases")
    listed = shop.ubunye("leases", "list", "-d", str(shop.root))
    assert listed.code == 0
    row = listed.out.splitlines()[1].split()
    assert row[0] == "older"
    assert row[2].startswith("shop/daily/load_orders")
    before = shop.everything()
    answer = shop.ubunye("leases", "release", row[1], "--force", "-d", str(shop.root))
    assert answer.code == 2
    assert "run the batch again" in answer.err
    assert shop.ubunye("leases", "list", "--json", "-d", str(shop.root)).json[0]["state"] == "older"
    assert {k: v for k, v in shop.everything().items() if "leases" in k} == {
        k: v for k, v in before.items() if "leases" in k
    }
