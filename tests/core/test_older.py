"""Folders that ubunye-engine 0.8.0 left (tests/data/ubunye-0.8.0) keep their protection."""

from __future__ import annotations

import dataclasses
import json
import os
import shutil
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_ubunye.core import start
from airflow_provider_ubunye.core.batch import Batch
from airflow_provider_ubunye.core.decide import RERUN, RESUME
from airflow_provider_ubunye.core.errors import (
    BatchFinished,
    NotTakenBack,
    RunLeaseHeld,
    StateUnreadable,
    UbunyeError,
)
from airflow_provider_ubunye.core.outcome import Outcome
from airflow_provider_ubunye.core.owner import start_of, this_process
from airflow_provider_ubunye.core.request import Request, Setting
from airflow_provider_ubunye.core.run import open_run
from tests.core.kit import DAY, OLD, Shop, write

DATA = Path(__file__).parents[1] / "data" / "ubunye-0.8.0"
DEAD_HERE, SILENT, ALIVE_HERE, BEATING = (
    "process gone",
    "silent elsewhere",
    "process there",
    "beats elsewhere",
)

OUTPUTS = {
    "load_orders": {"adults": "append"},
    "load_by_town": {"adults": "append"},
    "load_spark": {"adults": "append"},
    "summarise": {"adults": "overwrite"},
    "replace_days": {"adults": "overwrite_partitions"},
    "load_many": {"a_json": "append", "b_csv": "append", "c_empty": "append", "d_whole": "overwrite"},
}


@dataclasses.dataclass(frozen=True)
class Case:
    """What a case must come to.

    :param finished: the file that names the run that finished the batch, and what it wrote; None: not finished.
    :param owed: (file, field): where the files stand that must go before anything else.
    :param record: the run whose record says success, where nothing else does.
    """

    task: str = "load_orders"
    variables: Mapping[str, str] = dataclasses.field(default_factory=lambda: {"dt": DAY})
    finished: str | None = None
    owed: tuple[tuple[str, str], ...] = ()


NOTE, LEASE, DEAD = ".finished.json", ".json", ".dead-*.json"
TAKEN_BACK = ((LEASE, "outputs"),)
HOUR = {"dt": DAY, "hour": "13"}

CASES = {
    "finished-append-flat": Case(finished=NOTE),
    "finished-append-partitioned": Case("load_by_town", HOUR, finished=NOTE),
    "finished-overwrite": Case("summarise"),
    "finished-overwrite-partitions": Case("replace_days", {"dt": DAY, "dtf": "%Y-%m-%d", "mode": "PROD"}),
    "finished-several-outputs": Case("load_many", finished=NOTE),
    "finished-no-batch": Case(variables={}),
    "finished-rerun": Case(finished=NOTE),
    "lease-running": Case(),
    "lease-killed-before-claims": Case(),
    "lease-killed-claimed-new-folder": Case(owed=TAKEN_BACK),
    "lease-killed-claimed": Case(owed=TAKEN_BACK),
    "lease-killed-landed": Case(owed=TAKEN_BACK),
    "lease-killed-landed-partly-partitioned": Case("load_by_town", owed=TAKEN_BACK),
    "lease-killed-second-output": Case("load_many", owed=TAKEN_BACK),
    "lease-killed-all-outputs": Case("load_many", owed=TAKEN_BACK),
    "lease-empty": Case(),
    "lease-killed-in-save": Case(),
    "lease-killed-commit-done": Case(finished=LEASE),
    "lease-killed-commit-before-note": Case(finished=LEASE),
    "lease-killed-commit-after-note": Case(finished=NOTE),
    "lease-killed-commit-release": Case(finished=NOTE),
    "lease-killed-commit-released": Case(finished=NOTE),
    "lease-kept": Case("load_many", owed=TAKEN_BACK),
    "rerun-running": Case(finished=NOTE),
    "rerun-killed-landed": Case(finished=NOTE, owed=TAKEN_BACK),
    "rerun-killed-done": Case(finished=LEASE, owed=((LEASE, "replaces"),)),
    "rerun-killed-before-note": Case(finished=LEASE, owed=((LEASE, "replaces"),)),
    "rerun-killed-after-note": Case(finished=NOTE, owed=((LEASE, "replaces"),)),
    "rerun-killed-remove": Case(finished=NOTE, owed=((LEASE, "replaces"),)),
    "takeover-killed-after-rename": Case(owed=((DEAD, "outputs"),)),
    "takeover-killed-settling": Case(owed=((DEAD, "outputs"),)),
    "takeover-killed-marked": Case(owed=((DEAD, "outputs"),)),
    "taken-over": Case(finished=NOTE),
    "failed": Case(),
    "record-success": Case(finished=NOTE),
    "record-error": Case("load_by_town", HOUR),
    "record-running": Case(),
    "record-interrupted": Case(finished=NOTE),
    "record-success-lease-left": Case(finished=LEASE),
    "record-pipeline": Case(finished=NOTE),
    "spark-finished": Case("load_spark", finished=NOTE),
    "spark-lease-killed-claimed": Case("load_spark", owed=TAKEN_BACK),
    "spark-lease-killed-landed-partly": Case("load_spark", owed=TAKEN_BACK),
}
WITH_LEASE = sorted(
    name
    for name in CASES
    if any((DATA / name).glob("leases/*/*/*/????????????????.json")) and name != "lease-empty"
)
FINISHED = sorted(name for name, case in CASES.items() if case.finished)


class Older:
    """A use case folder as a case left it."""

    def __init__(self, root: Path, name: str, *, state: str = DEAD_HERE, case: Case | None = None) -> None:
        self.name = name
        self.case = case or CASES[name]
        self.shop = Shop(root / "pipelines")
        self.root = self.shop.root
        for part in ("leases", "lineage"):
            if (DATA / name / part).exists():
                shutil.copytree(DATA / name / part, self.shop.state / part)
        for path, what in json.loads((DATA / name / "tree.json").read_text()).items():
            at = Path(os.path.normpath(self.root / path))
            if what.get("empty_folder"):
                at.mkdir(parents=True, exist_ok=True)
            elif not path.startswith(".ubunye/"):
                at.parent.mkdir(parents=True, exist_ok=True)
                at.write_bytes(b"x" * what["size"])
        self.batch = Batch.of(f"shop/daily/{self.case.task}", dict(self.case.variables))
        self.leases = self.shop.state / "leases" / self.batch.task
        self.before = self.files()
        for lease in self.lease_files():
            live = state in (ALIVE_HERE, BEATING) and ".dead-" not in lease.name
            self.edit(lease, state if live or state == SILENT else DEAD_HERE)

    def lease_files(self) -> list[Path]:
        key = self.batch.key
        return [*self.leases.glob(f"{key}.json"), *self.leases.glob(f"{key}.dead-*.json")]

    def edit(self, lease: Path, state: str) -> None:
        """Make its process a dead or live one, here or elsewhere."""
        if not lease.read_bytes():
            return
        document = json.loads(lease.read_text())
        me = this_process()
        here = f"{me.host}|{me.pid_space}"
        document |= {
            DEAD_HERE: {"host": here, "pid": os.getpid(), "pid_started": "7"},
            ALIVE_HERE: {
                "host": here,
                "pid": os.getpid(),
                "pid_started": str(int(start_of(os.getpid()) or 0)),
            },
            SILENT: {"host": "other|pid:[1]"},
            BEATING: {"host": "other|pid:[1]"},
        }[state]
        lease.write_text(json.dumps(document))
        if state == SILENT:
            os.utime(lease, (OLD, OLD))

    def output(self, name: str) -> Path:
        if name == "b_csv":
            return self.root.parent / "lake" / "b_csv"
        return self.root / "shop" / "daily" / self.case.task / "output" / name

    def files(self) -> list[str]:
        """Data files that readers see, everywhere outside the state folder."""
        found = []
        for folder in (self.root, self.root.parent / "lake"):
            for path in folder.rglob("part-*"):
                if not any(p.startswith(("_", ".")) for p in path.relative_to(folder).parts):
                    found.append(os.path.relpath(path, self.root))
        return sorted(found)

    def document(self, kind: str) -> dict[str, Any]:
        path = next(iter(self.leases.glob(f"{self.batch.key}{kind}")))
        found: dict[str, Any] = json.loads(path.read_text())
        return found

    def listed(self, kind: str, field: str) -> set[str]:
        entries = self.document(kind).get(field, {})
        lists = [e["claimed"] if isinstance(e, dict) else e for e in entries.values()]
        return {path for paths in lists for path in paths}

    def request(self, purpose: str = "run", **how: Any) -> Request:
        modes = OUTPUTS[self.case.task]
        outputs = {n: (mode, str(self.output(n)), "files") for n, mode in modes.items()}
        values: dict[str, Any] = {"outputs": outputs, "appends": "append" in modes.values()}
        return Request(self.batch, purpose=purpose, **{**values, **how})

    def run(self, purpose: str = "run", *, setting: Setting | None = None, **how: Any) -> Outcome | None:
        request = self.request(purpose, **how)
        run = open_run(setting or self.shop.setting(), request)
        if run is None:
            return None
        with run:
            for name, (mode, path, _) in request.outputs.items():
                write(
                    run.output(name, mode, path), {"day=2026-11-01": "new"} if "part" in mode else {"": "new"}
                )
        return run.outcome

    def state(self) -> dict[str, bytes]:
        return {str(p): p.read_bytes() for p in sorted(self.shop.state.rglob("*")) if p.is_file()}


def is_new(path: str) -> bool:
    """Whether a file is one of ours: its name carries a run id, not a UUID with dashes."""
    return "new" in path or len(Path(path).name.split("-")[2].partition(".")[0]) == 32


@pytest.mark.parametrize("state", [DEAD_HERE, SILENT])
@pytest.mark.parametrize("name", sorted(CASES))
def test_every_folder_comes_to_what_it_must(tmp_path: Path, name: str, state: str) -> None:
    older = Older(tmp_path, name, state=state)
    case = older.case
    owed = set().union(*(older.listed(*where) for where in case.owed)) & set(older.before)
    stays = sorted(set(older.before) - owed)
    if name == "lease-empty":
        os.utime(older.lease_files()[0], (OLD, OLD))
    if name == "lease-kept":
        (older.root.parent / "lake" / "b_csv").unlink()
    if case.finished:
        run = older.document(case.finished)["run_id"]
        claimed = older.listed(case.finished, "outputs")
        assert claimed <= set(older.before), "the case is as its README says"
        with pytest.raises(BatchFinished, match=f"run {run[:8]}"):
            older.run()
        assert older.files() == stays
        assert older.run(RESUME) is None
        replaced = set(stays) - claimed
        if case.task == "load_many":
            replaced -= {f for f in stays if "d_whole" in f}
        assert len(claimed) > 0
        done = older.run(RERUN)
    else:
        done = older.run()
        replaced = set(stays)
        if case.task in ("summarise", "replace_days", "load_many"):
            replaced -= {f for f in stays if f"{case.task}/output/adults" in f or "d_whole" in f}
    assert done is not None
    old = [f for f in older.files() if not is_new(f)]
    assert old == sorted(replaced)
    assert len(older.files()) - len(old) == len(OUTPUTS[case.task])
    assert older.lease_files() == []
    # Nothing that a reader could see, or that would be taken back later, is left.
    assert not [p for p in older.root.rglob("_ubunye-*") if any(p.iterdir())]
    assert older.shop.debris() == []
    again = older.run if "append" in OUTPUTS[case.task].values() and older.batch.named else None
    if again is not None:
        with pytest.raises(BatchFinished):
            again()


def test_every_case_is_in_the_table() -> None:
    assert sorted(CASES) == sorted(p.name for p in DATA.iterdir() if p.is_dir())


@pytest.mark.parametrize("purpose", ["run", RERUN, RESUME])
@pytest.mark.parametrize("state", [ALIVE_HERE, BEATING])
@pytest.mark.parametrize("name", [n for n in WITH_LEASE if "commit" not in n and "record-success" not in n])
def test_a_live_run_of_an_older_ubunye_is_left_alone(
    tmp_path: Path, name: str, state: str, purpose: str
) -> None:
    older = Older(tmp_path, name, state=state)
    state_before = older.state()
    with pytest.raises(RunLeaseHeld, match="an older Ubunye's run") as error:
        older.run(purpose)
    assert type(error.value) is RunLeaseHeld
    assert older.document(LEASE)["run_id"][:8] in error.value.what
    assert ("last heartbeat" in error.value.what) is (state == BEATING)
    assert older.files() == older.before
    assert {k: v for k, v in older.state().items() if "store.json" not in k} == state_before


def test_where_pids_mean_nothing_an_older_run_is_judged_by_its_heartbeat(tmp_path: Path) -> None:
    older = Older(tmp_path, "lease-running", state=DEAD_HERE)
    unknown = dataclasses.replace(this_process(), boot="", started=-1.0)
    with pytest.raises(RunLeaseHeld, match="last heartbeat"):
        older.run(setting=older.shop.setting(owner=unknown))


def test_an_empty_lease_is_judged_by_its_age(tmp_path: Path) -> None:
    older = Older(tmp_path, "lease-empty")
    os.utime(older.lease_files()[0])
    with pytest.raises(RunLeaseHeld, match="its lease is empty"):
        older.run()
    os.utime(older.lease_files()[0], (OLD, OLD))
    assert older.run() is not None


def test_a_torn_lease_or_one_that_is_no_map_counts_as_empty(tmp_path: Path) -> None:
    for number, content in enumerate((b'{"run_id": "c0', b"[]", b"\xff")):
        older = Older(tmp_path / str(number), "lease-empty")
        older.lease_files()[0].write_bytes(content)
        with pytest.raises(RunLeaseHeld, match="its lease is empty"):
            older.run()


def test_a_run_waits_for_an_older_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(start, "_LONGEST_LOOK", 0.01)
    older = Older(tmp_path, "lease-running", state=ALIVE_HERE)
    lease = older.lease_files()[0]
    threading.Timer(0.2, lease.unlink).start()
    assert older.run(wait=60) is not None


def test_the_dead_runs_record_is_closed_and_keeps_what_it_said(tmp_path: Path) -> None:
    older = Older(tmp_path, "record-running")
    run = older.document(LEASE)["run_id"]
    path = older.shop.state / "lineage" / older.batch.task / f"{run}.json"
    said = json.loads(path.read_text())
    done = older.run()
    assert done is not None
    record = json.loads(path.read_text())
    assert record["status"] == "interrupted"
    assert done.run in record["error"]
    changed = {k for k in said if record[k] != said[k]}
    assert changed == {"status", "error", "ended_at", "duration_sec"}


def test_a_record_that_says_success_finishes_the_batch_by_itself(tmp_path: Path) -> None:
    older = Older(tmp_path, "record-success-lease-left")
    next(older.leases.glob("*.done-*")).unlink()
    with pytest.raises(BatchFinished):
        older.run()
    assert older.files() == older.before


def test_without_records_an_older_run_is_judged_by_its_marks_alone(tmp_path: Path) -> None:
    older = Older(tmp_path, "lease-killed-landed")
    done = older.run(setting=older.shop.setting(records=None))
    assert done is not None
    assert len(older.files()) == 2


def test_a_taken_over_run_finds_the_mark_that_its_own_version_looks_for(tmp_path: Path) -> None:
    older = Older(tmp_path, "lease-killed-claimed", state=SILENT)
    run = older.document(LEASE)["run_id"]
    assert older.run() is not None
    assert (older.leases / f"{older.batch.key}.taken-{run}").is_file()


def test_a_committed_run_without_its_note_gets_one_that_an_older_ubunye_can_read(tmp_path: Path) -> None:
    older = Older(tmp_path, "lease-killed-commit-done")
    lease = older.document(LEASE)
    with pytest.raises(BatchFinished):
        older.run()
    note = older.document(NOTE)
    assert note["run_id"] == lease["run_id"]
    assert note["outputs"]["adults"]["claimed"] == lease["outputs"]["adults"]["claimed"]


def test_dying_before_the_older_lease_is_removed_changes_nothing(tmp_path: Path) -> None:
    """It was taken in; the next run finds it again beside the log and removes it."""
    for name in ("lease-killed-landed", "lease-killed-commit-done", "takeover-killed-settling"):
        older = Older(tmp_path / name, name)
        batch, outputs = older.batch, older.request().outputs
        older.shop.die("delete", batch=batch, outputs=outputs)
        assert older.lease_files()
        if older.case.finished:
            with pytest.raises(BatchFinished):
                older.run()
        else:
            assert older.run() is not None
        assert older.leases.joinpath(f"{batch.key}.json").exists() is False
        owed = set().union(*(set(), *(older.listed(*w) for w in older.case.owed if w[0] == DEAD)))
        assert not owed & set(older.files())


def test_an_overwrite_is_noted_and_counts_once_the_task_appends(tmp_path: Path) -> None:
    older = Older(tmp_path, "finished-overwrite")
    outputs = {"adults": ("append", str(older.output("adults")), "files")}
    with pytest.raises(BatchFinished):
        older.run(outputs=outputs, appends=True)
    # Where the outputs come later, the append itself is refused.
    run = open_run(older.shop.setting(), older.request(outputs={}, appends=None))
    assert run is not None
    with pytest.raises(BatchFinished), run:
        run.output("adults", "append", str(older.output("adults")))


def test_a_batch_run_without_known_outputs_is_refused_by_the_note(tmp_path: Path) -> None:
    older = Older(tmp_path, "finished-append-partitioned")
    with pytest.raises(BatchFinished):
        older.run(outputs={}, appends=None)


def test_a_batch_run_without_known_outputs_replaces_the_older_files(tmp_path: Path) -> None:
    older = Older(tmp_path, "finished-append-partitioned")
    run = open_run(older.shop.setting(), older.request(RERUN, outputs={}, appends=None))
    assert run is not None
    with run:
        write(run.output("adults", "append", str(older.output("adults"))), {"town=Durban": "new"})
    assert run.outcome.replaced == 2
    assert all(is_new(f) for f in older.files())


def test_another_spelling_of_mode_is_the_same_batch(tmp_path: Path) -> None:
    """An older Ubunye compared the mode as typed: its note and lease stand under another key."""
    typed = Case(variables={"dt": DAY, "mode": "dev"})
    for name, finished in (("finished-append-flat", True), ("lease-killed-landed", False)):
        older = Older(tmp_path / name, name, case=typed)
        ((old_key, _),) = older.batch.other_keys()
        for path in older.leases.glob(f"{older.batch.key}.*"):
            path.rename(path.with_name(path.name.replace(older.batch.key, old_key)))
        if finished:
            with pytest.raises(BatchFinished):
                older.run()
            done = older.run(RERUN)
            assert done is not None
            assert done.replaced == 1
        else:
            done = older.run()
            assert done is not None
            assert len(older.files()) == 2
            assert not (older.leases / f"{old_key}.json").exists()
        assert len([f for f in older.files() if is_new(f)]) == 1


# ── forged and damaged ──────────────────────────────────────────────────────────────────────────

UUID = "f4eda558-165e-4c93-a270-e89ccdc964cc"
RUN_ID = "0123456789abcdef" * 2


def forge(older: Older, kind: str, **outputs: Any) -> None:
    path = next(iter(older.leases.glob(f"{older.batch.key}{kind}")))
    document = json.loads(path.read_text())
    document["outputs"] = outputs
    path.write_text(json.dumps(document))


def everything(root: Path) -> dict[str, bytes]:
    files = {str(p): p.read_bytes() for p in root.rglob("*") if p.is_file() and ".ubunye/" not in str(p)}
    return dict(sorted(files.items()))


FORGED = {
    "absolute": "/{root}/lake/b/part-00000-{uuid}-c000.csv",
    "dots": "../lake/b/part-00000-{uuid}-c000.csv",
    "dots inside": "shop/daily/load_orders/output/adults/../../../x/part-00000-{uuid}-c000.csv",
    "another task's output": "shop/daily/other/output/adults/part-00000-{uuid}-c000.csv",
    "a run's file of ours": "shop/daily/load_orders/output/adults/part-00000-{run}.csv",
    "any name": "shop/daily/load_orders/output/adults/README",
    "a task's source": "shop/daily/load_orders/config.yaml",
    "a hidden file": "shop/daily/load_orders/output/adults/_SUCCESS",
    "through a link": "shop/daily/load_orders/output/adults/link=1/part-00000-{uuid}-c000.csv",
    "the root": "../../../../../../../../../../../../part-00000-{uuid}-c000.csv",
    "a NUL": "shop/daily/load_orders/output/adults/part-00000-{uuid}-c0\0.csv",
    "empty": "",
    "not text": 5,
}


@pytest.mark.parametrize("what", ["note", "lease"])
@pytest.mark.parametrize("forgery", sorted(FORGED))
def test_a_forged_claim_removes_nothing(tmp_path: Path, forgery: str, what: str) -> None:
    """Field case 34."""
    older = Older(tmp_path, "finished-append-flat" if what == "note" else "lease-killed-landed")
    victims = [
        tmp_path / "lake/b" / f"part-00000-{UUID}-c000.csv",
        older.root / "shop/daily/x" / f"part-00000-{UUID}-c000.csv",
        older.root / "shop/daily/other/output/adults" / f"part-00000-{UUID}-c000.csv",
        older.output("adults") / f"part-00000-{RUN_ID}.csv",
        older.output("adults") / "README",
        older.root / "shop/daily/load_orders/config.yaml",
    ]
    for victim in victims:
        victim.parent.mkdir(parents=True, exist_ok=True)
        victim.write_text("not ours")
    (older.output("adults") / "link=1").symlink_to(tmp_path / "lake/b")
    path = FORGED[forgery]
    if isinstance(path, str):
        path = path.format(root=str(tmp_path)[1:], uuid=UUID, run=RUN_ID)
    genuine = json.loads(
        next(iter(older.leases.glob(f"{older.batch.key}{NOTE if what == 'note' else LEASE}"))).read_text()
    )
    claimed = [*genuine["outputs"]["adults"]["claimed"], path]
    forge(older, NOTE if what == "note" else LEASE, adults={"claimed": claimed, "appends": True})
    before = everything(tmp_path)
    for purpose in ("run", RERUN, "run", RERUN):
        with pytest.raises(UbunyeError) as error:
            older.run(purpose)
        assert "\n" not in error.value.what
        assert error.value.exit_code in (1, 5)
        if purpose == RERUN:
            assert isinstance(error.value, NotTakenBack | StateUnreadable), error.value.what
        assert everything(tmp_path) == before


def test_a_forged_claim_of_a_batch_run_is_refused_before_it_is_acted_on(tmp_path: Path) -> None:
    """The outputs come later: then the claims must lie in one of them."""
    older = Older(tmp_path, "finished-append-flat")
    victim = older.root / "shop/daily/other" / f"part-00000-{UUID}-c000.csv"
    victim.parent.mkdir(parents=True)
    victim.write_text("not ours")
    forge(older, NOTE, adults={"claimed": [os.path.relpath(victim, older.root)]})
    run = open_run(older.shop.setting(), older.request(RERUN, outputs={}, appends=None))
    assert run is not None
    with pytest.raises(NotTakenBack, match="lies in no output"), run:
        write(run.output("adults", "append", str(older.output("adults"))), {"": "new"})
    assert victim.exists()
    assert older.files() == sorted([*older.before, os.path.relpath(victim, older.root)])


@pytest.mark.parametrize(
    "staging",
    [
        "shop/daily/load_spark/output/adults",
        "shop/daily/load_spark/output",
        "shop/daily/load_spark/output/adults/town=Durban",
        "shop/daily/load_spark/output/adults/_ubunye-a37ec370f453/..",
        "shop/daily/other/output/adults/_ubunye-a37ec370f453",
        "/etc",
        5,
    ],
)
def test_a_folder_forged_as_staging_is_not_removed(tmp_path: Path, staging: object) -> None:
    """Field case 34."""
    older = Older(tmp_path, "spark-lease-killed-landed-partly")
    other = older.root / "shop/daily/other/output/adults/_ubunye-a37ec370f453"
    other.mkdir(parents=True)
    (other / "data").write_text("x")
    genuine = older.document(LEASE)["outputs"]["adults"]
    forge(older, LEASE, adults={**genuine, "staging": staging})
    before = everything(tmp_path)
    with pytest.raises((NotTakenBack, StateUnreadable)):
        older.run()
    assert everything(tmp_path) == before


@pytest.mark.parametrize("inside", [None, f"adults/part-00000-{RUN_ID}.csv"])
def test_a_staging_folder_of_ours_is_never_taken_for_an_older_one(tmp_path: Path, inside: str | None) -> None:
    """Field case 34: a marker of a live run of ours, empty or with its staged files."""
    older = Older(tmp_path, "spark-lease-killed-landed-partly")
    ours = older.output("adults") / "_ubunye-0123456789ab"
    ours.mkdir()
    if inside:
        (ours / inside).parent.mkdir()
        (ours / inside).write_text("x")
    genuine = older.document(LEASE)["outputs"]["adults"]
    forge(older, LEASE, adults={**genuine, "staging": os.path.relpath(ours, older.root)})
    assert older.run() is not None
    assert ours.is_dir()
    assert inside is None or (ours / inside).exists()


DAMAGED = {
    "not JSON": "{",
    "a list": "[]",
    "nested": "[" * 200_000,
    "no number": '{"run_id": "RUN", "outputs": {}, "at": NaN}',
    "empty": "",
    "outputs a list": '{"run_id": "RUN", "outputs": ["x"]}',
    "an output a list": '{"run_id": "RUN", "outputs": {"adults": []}}',
    "claims a text": '{"run_id": "RUN", "outputs": {"adults": {"claimed": "x"}}}',
}


@pytest.mark.parametrize("damage", sorted(DAMAGED))
def test_a_damaged_note_is_refused_and_never_taken_for_absent(tmp_path: Path, damage: str) -> None:
    older = Older(tmp_path, "finished-append-flat")
    note = next(iter(older.leases.glob("*.finished.json")))
    note.write_text(DAMAGED[damage].replace("RUN", UUID))
    for purpose in ("run", RERUN, RESUME):
        with pytest.raises(StateUnreadable, match="note of an older run") as error:
            older.run(purpose)
        assert str(note) == error.value.where
    assert older.files() == older.before


@pytest.mark.parametrize("damage", [d for d in sorted(DAMAGED) if d not in ("not JSON", "a list", "empty")])
def test_a_damaged_lease_is_refused(tmp_path: Path, damage: str) -> None:
    older = Older(tmp_path, "lease-killed-landed")
    older.lease_files()[0].write_text(DAMAGED[damage].replace("RUN", UUID))
    os.utime(older.lease_files()[0], (OLD, OLD))
    with pytest.raises(StateUnreadable, match="lease of an older run"):
        older.run()
    assert older.files() == older.before


@pytest.mark.parametrize("run", [None, 5, "", "../../x", "a\0b", "short"])
def test_a_lease_that_claims_and_names_no_run_is_refused(tmp_path: Path, run: object) -> None:
    older = Older(tmp_path, "lease-killed-landed")
    lease = older.lease_files()[0]
    lease.write_text(json.dumps({**json.loads(lease.read_text()), "run_id": run}))
    with pytest.raises(StateUnreadable, match="names no run"):
        older.run()
    assert older.files() == older.before


def test_a_note_that_names_no_output_says_nothing(tmp_path: Path) -> None:
    older = Older(tmp_path, "finished-append-flat")
    forge(older, NOTE)
    assert older.run() is not None


def test_a_lease_cannot_break_the_line_of_its_refusal(tmp_path: Path) -> None:
    older = Older(tmp_path, "lease-running", state=BEATING)
    lease = older.lease_files()[0]
    document = json.loads(lease.read_text())
    lease.write_text(json.dumps({**document, "host": "a\nb" * 100, "pid": "x\ny", "started_at": ["\n"]}))
    with pytest.raises(RunLeaseHeld) as error:
        older.run()
    assert "\n" not in error.value.what
    assert len(error.value.what) < 400


def test_release_by_force_takes_an_older_lease_over(tmp_path: Path) -> None:
    older = Older(tmp_path, "lease-killed-landed", state=ALIVE_HERE)
    assert older.run(force=True) is not None
    assert len(older.files()) == 2


def test_an_outputs_path_that_changed_is_refused_by_rerun_and_said(tmp_path: Path) -> None:
    older = Older(tmp_path, "finished-append-flat")
    outputs = {"adults": ("append", str(older.root / "moved" / "adults"), "files")}
    with pytest.raises(BatchFinished):
        older.run(outputs=outputs)
    with pytest.raises(NotTakenBack, match="lies in no output") as error:
        older.run(RERUN, outputs=outputs)
    assert error.value.hint is not None
    assert older.files() == older.before


def test_a_note_of_ours_whose_log_is_gone_still_protects(tmp_path: Path) -> None:
    shop = Shop(tmp_path / "pipelines")
    shop.run({"a=1": "1"})
    shutil.rmtree(shop.note().with_name(shop.batch().key))
    with pytest.raises(BatchFinished):
        shop.run()
    done = shop.run({"a=1": "2"}, purpose=RERUN)
    assert done is not None
    assert (done.replaced, shop.rows()) == (1, ["2"])


@pytest.mark.parametrize("ending", [".json", ".finished.json"])
@pytest.mark.parametrize("inside", [True, False])
def test_a_folder_in_the_place_of_a_lease_or_note_is_never_taken_for_absent(
    tmp_path: Path, ending: str, inside: bool
) -> None:
    older = Older(tmp_path, "finished-append-flat")
    there = older.leases / f"{older.batch.key}{ending}"
    there.unlink(missing_ok=True)
    there.mkdir()
    if inside:
        (there / "x").write_text("x")
    with pytest.raises(StateUnreadable, match="a folder stands where") as error:
        older.run()
    assert error.value.where == str(there)
    assert older.files() == older.before
