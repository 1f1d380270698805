"""A real Airflow for the demo: scheduler, API server, DAG processor and triggerer, spoken to over its REST API."""

from __future__ import annotations

import contextlib
import json
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from demo.stage import NotSo, paint

T = TypeVar("T")

HERE = "127.0.0.1"
ENDED = ("success", "failed", "skipped")


@dataclass(frozen=True)
class Try:
    """A try of a task that has ended: its number, its state, and its log's lines."""

    number: int
    state: str
    lines: tuple[str, ...]

    def line(self, part: str) -> str:
        """The log's line that holds ``part``, or nothing."""
        return next((line for line in self.lines if part in line), "")


class Airflow:
    """An Airflow that lives as long as the demo's steps with it.

    :param home: becomes AIRFLOW_HOME; everything that Airflow writes is in it.
    :param dags: the folder of DAG files.
    :param environ: the environment that it inherits, without what it says of Airflow.
    """

    def __init__(self, home: Path, dags: Path, environ: Mapping[str, str]) -> None:
        self.home = home
        port = free_port()
        self.url = f"http://{HERE}:{port}"
        inherited = {name: value for name, value in environ.items() if not name.startswith("AIRFLOW")}
        self._environ = {**inherited, **_settings(home, dags, self.url, port), "TMPDIR": str(home / "tmp")}
        self._token = ""
        self._keeper: subprocess.Popen[bytes] | None = None

    @contextlib.contextmanager
    def running(self, dag: str) -> Iterator[None]:
        """Start it, wait until it knows the DAG, and end every process of it afterwards."""
        (self.home / "tmp").mkdir(parents=True)
        # What `airflow standalone` starts, but without log servers: those listen on every address.
        programs = ["db migrate", "api-server", "dag-processor"]
        programs += [f"{name} --skip-serve-logs" for name in ("scheduler", "triggerer")]
        words = " -- ".join(f"airflow {program}" for program in programs).split()
        self._keeper = subprocess.Popen(
            [sys.executable, "-m", "demo.keeper", str(self.home), *words],
            cwd=Path(__file__).resolve().parents[1],
            env=self._environ,
            stdin=subprocess.PIPE,
            start_new_session=True,
        )
        try:
            self.until("Airflow is healthy", self._healthy, seconds=180)
            self._token = json.loads(self._open("GET", "/auth/token", None))["access_token"]
            self.until(f"the DAG {dag} is known", lambda: self.call("GET", f"/dags/{dag}", None))
            yield
        finally:
            assert self._keeper.stdin is not None
            self._keeper.stdin.close()
            self._keeper.wait(30)

    # ── asking ──────────────────────────────────────────────────────────────────────────────────

    def post(self, path: str, body: Mapping[str, Any]) -> Any:
        """Ask for something, and show what is asked."""
        print(paint(f"  POST /api/v2{path} {json.dumps(body)}", "1"))
        return self.call("POST", path, body)

    def call(self, method: str, path: str, body: Mapping[str, Any] | None) -> Any:
        """One request to the REST API. :raises NotSo: it is refused. :raises LookupError: not found."""
        return json.loads(self._open(method, f"/api/v2{path}", body) or b"null")

    def try_of(self, dag: str, run: str, task: str, number: int) -> Try:
        """Wait until a task has ended on its try ``number``; it must not go on to another."""

        def look() -> dict[str, Any] | None:
            found: dict[str, Any] = self.call("GET", path, None)
            return found if found["state"] in ENDED and found["try_number"] >= number else None

        path = f"/dags/{dag}/dagRuns/{quoted(run)}/taskInstances/{task}"
        found = self.until(f"{run} has ended on try {number}", look)
        return Try(found["try_number"], found["state"], self.log(dag, run, task, found["try_number"]))

    def log(self, dag: str, run: str, task: str, number: int) -> tuple[str, ...]:
        """The lines of a try's log; of an error, what it says."""
        path = f"/dags/{dag}/dagRuns/{quoted(run)}/taskInstances/{task}/logs/{number}"
        lines = []
        for entry in self.call("GET", f"{path}?full_content=true", None)["content"]:
            lines.append(str(entry["event"]) if isinstance(entry, dict) else str(entry))
            for error in (entry.get("error_detail") or []) if isinstance(entry, dict) else []:
                lines.append(f"{error['exc_type']}: {error['exc_value']}")
        return tuple(lines)

    def until(self, what: str, look: Callable[[], T | None], seconds: float = 120, pause: float = 0.2) -> T:
        """Look until there is an answer. :raises NotSo: there is none in time, or Airflow is gone."""
        end = time.monotonic() + seconds
        assert self._keeper is not None
        while time.monotonic() < end and self._keeper.poll() is None:
            # Before it is up it refuses connections, then answers with half of what it will say.
            with contextlib.suppress(OSError, LookupError):
                if (found := look()) is not None:
                    return found
            time.sleep(pause)
        raise NotSo(f"{what} ({seconds:.0f} s waited at most)\n{self._last_words()}")

    def _healthy(self) -> bool | None:
        health = self.call("GET", "/monitor/health", None)
        parts = ("metadatabase", "scheduler", "triggerer", "dag_processor")
        return all(health[part]["status"] == "healthy" for part in parts) or None

    def _open(self, method: str, path: str, body: Mapping[str, Any] | None) -> bytes:
        request = urllib.request.Request(f"{self.url}{path}", method=method)
        request.add_header("Accept", "application/json")
        if self._token:
            request.add_header("Authorization", f"Bearer {self._token}")
        if body is not None:
            request.add_header("Content-Type", "application/json")
            request.data = json.dumps(body).encode()
        try:
            # Never by a proxy that this terminal's environment names.
            with _DIRECT.open(request, timeout=30) as answer:
                content: bytes = answer.read()
                return content
        except urllib.error.HTTPError as error:
            if error.code == 404:
                raise LookupError(path) from None
            raise NotSo(f"{method} {path}: {error.code} {error.read()[:500]!r}") from None

    def _last_words(self) -> str:
        """The end of what each of its processes printed."""
        told = []
        for log in sorted(self.home.glob("*.txt")):
            told += [f"── {log.stem}", *log.read_text(errors="replace").splitlines()[-15:]]
        return "\n".join(told)


_DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def _settings(home: Path, dags: Path, url: str, port: int) -> dict[str, str]:
    """A small Airflow that nobody but this machine can reach, and that asks nobody who they are."""
    return {
        "AIRFLOW_HOME": str(home),
        "AIRFLOW__API__BASE_URL": url,
        "AIRFLOW__API__HOST": HERE,
        "AIRFLOW__API__PORT": str(port),
        "AIRFLOW__API__WORKERS": "1",
        "AIRFLOW__CORE__DAGS_ARE_PAUSED_AT_CREATION": "False",
        "AIRFLOW__CORE__DAGS_FOLDER": str(dags),
        "AIRFLOW__CORE__EXECUTION_API_SERVER_URL": f"{url}/execution/",
        "AIRFLOW__CORE__EXECUTOR": "LocalExecutor",
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__CORE__PARALLELISM": "4",
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_ALL_ADMINS": "True",
        "AIRFLOW__DAG_PROCESSOR__DAG_BUNDLE_STORAGE_PATH": str(home / "bundles"),
        "AIRFLOW__SCHEDULER__SCHEDULER_IDLE_SLEEP_TIME": "0.2",
        "AIRFLOW__USAGE_DATA_COLLECTION__ENABLED": "False",
    }


def quoted(run: str) -> str:
    """A DAG run's id as part of a path."""
    return urllib.parse.quote(run, safe="")


def free_port() -> int:
    """A port that nothing listens on."""
    with socket.socket() as probe:
        probe.bind((HERE, 0))
        port: int = probe.getsockname()[1]
        return port
