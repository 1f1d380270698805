"""A real Airflow, driven over its REST API."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote, urlencode

import pyarrow.dataset as ds

from airflow_provider_ubunye.core.batch import Batch
from tests.airflowhome import airflow, environment

T = TypeVar("T")

ENDED = frozenset({"success", "failed", "skipped", "upstream_failed"})
HEARTBEAT_TIMEOUT = 20


class Scheduler:
    """A running Airflow: scheduler, API server, triggerer and DAG processor in a session of their own.

    :param work: holds ``pipelines`` (use cases and state), ``lake`` (outputs) and ``control`` (what tests ask).
    """

    def __init__(self, home: Path, dags: Path, work: Path) -> None:
        self.work = work
        port = free_port()
        self.url = f"http://127.0.0.1:{port}"
        self.env = environment(
            home,
            dags,
            UBUNYE_TEST_WORK=str(work),
            AIRFLOW_CONN_UBUNYE_DEFAULT=json.dumps(
                {"conn_type": "ubunye", "extra": {"usecase_dir": str(work / "pipelines")}}
            ),
            AIRFLOW__API__PORT=str(port),
            AIRFLOW__API__BASE_URL=self.url,
            AIRFLOW__API__WORKERS="1",
            AIRFLOW__CORE__EXECUTION_API_SERVER_URL=f"{self.url}/execution/",
            AIRFLOW__CORE__EXECUTOR="LocalExecutor",
            AIRFLOW__CORE__PARALLELISM="4",
            AIRFLOW__CORE__MAX_ACTIVE_TASKS_PER_DAG="8",
            AIRFLOW__LOGGING__WORKER_LOG_SERVER_PORT=str(free_port()),
            AIRFLOW__LOGGING__TRIGGER_LOG_SERVER_PORT=str(free_port()),
            AIRFLOW__SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT=str(HEARTBEAT_TIMEOUT),
            AIRFLOW__SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT_DETECTION_INTERVAL="3",
            AIRFLOW__SCHEDULER__SCHEDULER_IDLE_SLEEP_TIME="0.2",
        )
        self._token = ""
        self._log = home / "standalone.log"
        self._process: subprocess.Popen[bytes] | None = None

    @contextlib.contextmanager
    def running(self) -> Iterator[Scheduler]:
        airflow(self.env, "db", "migrate")
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "airflow", "standalone"],
                env=self.env,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        try:
            self.until("Airflow is healthy", self._healthy, seconds=180)
            with urllib.request.urlopen(f"{self.url}/auth/token") as answer:
                self._token = json.load(answer)["access_token"]
            self.until("the DAGs are there", lambda: len(self.get("/dags")["dags"]) >= 18, seconds=120)
            yield self
        finally:
            # SIGTERM to standalone leaves children; all of them are in its session's groups.
            self._kill_session(self._process.pid)
            self._process.wait()

    def get(self, path: str) -> Any:
        return self._call("GET", path, None)

    def post(self, path: str, body: Mapping[str, Any]) -> Any:
        return self._call("POST", path, body)

    def patch(self, path: str, body: Mapping[str, Any]) -> Any:
        return self._call("PATCH", path, body)

    def trigger(self, dag: str, dt: str | None = None, date: str | None = None, **conf: Any) -> str:
        """Start a DAG run by hand and return its id."""
        body = {"logical_date": date, "conf": {**({"dt": dt} if dt else {}), **conf}}
        run: str = self.post(f"/dags/{dag}/dagRuns", body)["dag_run_id"]
        return run

    def task(self, dag: str, run: str, task: str = "load") -> dict[str, Any]:
        found: dict[str, Any] = self.get(f"/dags/{dag}/dagRuns/{run}/taskInstances/{task}")
        return found

    def ended(self, dag: str, run: str, task: str = "load", *, tries: int = 1) -> str:
        """Wait until the task has ended on this try, and return its state."""

        def look() -> str | None:
            ti = self.task(dag, run, task)
            if ti["state"] in ENDED and ti["try_number"] >= tries:
                assert ti["try_number"] == tries, ti
                return str(ti["state"])
            return None

        return self.until(f"{dag}.{task} ends on try {tries}", look, lambda: self.told(dag, run, task))

    def state(self, dag: str, run: str, *states: str, task: str = "load") -> None:
        self.until(
            f"{dag}.{task} is {' or '.join(states)}",
            lambda: self.task(dag, run, task)["state"] in states or None,
            lambda: self.told(dag, run, task),
        )

    def clear(self, dag: str, run: str, task: str = "load") -> None:
        """Clear a task as a person does."""
        body = {"dry_run": False, "dag_run_id": run, "task_ids": [task], "only_failed": False}
        assert self.post(f"/dags/{dag}/clearTaskInstances", body)["total_entries"] == 1

    def returned(self, dag: str, run: str, task: str = "load") -> Any:
        path = f"/dags/{dag}/dagRuns/{run}/taskInstances/{task}/xcomEntries/return_value"
        return self.get(f"{path}?deserialize=true")["value"]

    def log(self, dag: str, run: str, task: str = "load", *, number: int | None = None) -> str:
        """A try's log, the last one's by default."""
        ti = self.task(dag, run, task)
        number = ti["try_number"] if number is None else number
        path = f"/dags/{dag}/dagRuns/{run}/taskInstances/{task}/logs/{number}?full_content=true"
        lines = []
        for line in self.get(path)["content"]:
            lines.append(line["event"] if isinstance(line, dict) else str(line))
            if isinstance(line, dict) and "reason" in line:
                lines.append(str(line["reason"]))
            for error in line.get("error_detail") or [] if isinstance(line, dict) else []:
                lines.append(f"{error['exc_type']}: {error['exc_value']}")
        return "\n".join(lines)

    def link(self, dag: str, run: str, task: str = "load") -> str | None:
        """Where the task's button leads; None where it shows none. It may come after the state of the task."""
        links = self.get(f"/dags/{dag}/dagRuns/{run}/taskInstances/{task}/links")["extra_links"]
        assert list(links) == ["Run of this batch"]
        url: str | None = links["Run of this batch"]
        return url

    def linked(self, dag: str, run: str, task: str = "load") -> str:
        """Wait until the task has a link, and return it."""
        return self.until(f"{dag}.{task} has a link", lambda: self.link(dag, run, task))

    def told_assets(self, dag: str, run: str, task: str = "load") -> list[dict[str, Any]]:
        """What the asset events say that the task emitted in this DAG run."""
        query = urlencode({"source_dag_id": dag, "source_run_id": run, "source_task_id": task})
        return [event["extra"] for event in self.get(f"/assets/events?{query}")["asset_events"]]

    def page(self, dag: str, run: str, number: int, task: str = "load") -> str:
        """The page of a try's log."""
        return f"{self.url}/dags/{dag}/runs/{quote(run)}/tasks/{task}?try_number={number}"

    def told(self, dag: str, run: str, task: str) -> str:
        return json.dumps(self.task(dag, run, task)) + self.log(dag, run, task)[-4000:]

    def ask(self, dt: str, word: str) -> None:
        """Ask the batch's next run for something: fail, hold, die-landing, die-after; or, go."""
        (self.work / "control" / f"{dt}.{word}").touch()

    def held(self, dt: str) -> tuple[int, int]:
        """Wait until a run that was asked to hold does, and return its process and its supervisor."""
        path = self.work / "control" / f"{dt}.pid"
        self.until(f"{dt} is held", lambda: path.exists() or None)
        pid, parent = path.read_text().split()
        path.unlink()
        return int(pid), int(parent)

    def rows(self, dt: str) -> int:
        """The rows of a batch in the output, as any reader counts them."""
        lake = self.work / "lake" / "orders"
        if not lake.exists():
            return 0
        found = ds.dataset(lake, partitioning="hive", format="parquet")
        if "dt" not in found.schema.names:
            return 0
        return int(found.count_rows(filter=ds.field("dt").cast("string") == dt))

    def staged(self) -> list[str]:
        """Data files that did not land: none are left once nobody works."""
        found = [
            p for root in ("pipelines/.ubunye", "lake") for p in (self.work / root).rglob("_ubunye-*/**/*")
        ]
        return sorted(str(p) for p in found if p.is_file())

    def outcomes(self, dt: str) -> str:
        """What a batch's log says, as text."""
        key = Batch.of("shop/daily/load_orders", {"dt": dt}).key
        folder = self.work / "pipelines/.ubunye/leases/shop/daily/load_orders" / key
        return "".join(path.read_text() for path in sorted(folder.glob("*.json")))

    def until(
        self,
        what: str,
        look: Callable[[], T | None],
        why: Callable[[], str] | None = None,
        seconds: float = 120,
    ) -> T:
        """Look until there is an answer."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            try:
                if (found := look()) is not None:
                    return found
            except (urllib.error.URLError, ConnectionError, LookupError):
                pass
            time.sleep(0.3)
        told = why() if why is not None else self._log.read_text(errors="replace")[-4000:]
        raise AssertionError(f"not within {seconds:.0f} s: {what}\n{told}")

    def _healthy(self) -> bool | None:
        health = self.get("/monitor/health")
        parts = ("metadatabase", "scheduler", "triggerer", "dag_processor")
        return all(health[part]["status"] == "healthy" for part in parts) or None

    def _call(self, method: str, path: str, body: Mapping[str, Any] | None) -> Any:
        request = urllib.request.Request(f"{self.url}/api/v2{path}", method=method)
        request.add_header("Authorization", f"Bearer {self._token}")
        request.add_header("Accept", "application/json")
        if body is not None:
            request.add_header("Content-Type", "application/json")
            request.data = json.dumps(body).encode()
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            if error.code == 404:
                raise LookupError(path) from None
            raise AssertionError(f"{method} {path}: {error.code} {error.read()[:500]!r}") from None

    @staticmethod
    def _kill_session(session: int) -> None:
        """Kill every process of the session: task processes have groups of their own in it."""
        import psutil

        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error, ProcessLookupError):
                if os.getsid(process.pid) == session:
                    process.send_signal(signal.SIGKILL)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
