"""The real program: signals, waiting, two at once, pipes, and what starting it costs."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.kit import CODE, DAY, Shop, wait_until

HEAVY = {
    "airflow",
    "asyncio",
    "jinja2",
    "logging",
    "numpy",
    "pandas",
    "psutil",
    "pyarrow",
    "pydantic",
    "pyspark",
    "rich",
    "yaml",
}
OURS_FOR_LISTING = {
    "cli",
    "cli.app",
    "cli.lazy",
    "cli.leases",
    "cli.leases_list",
    "cli.options",
    "cli.output",
    "core",
    "core.disk",
    "core.entries",
    "core.errors",
    "core.fold",
    "core.judge",
    "core.lease",
    "core.leases",
    "core.localdisk",
    "core.log",
    "core.messages",
    "core.owner",
    "core.places",
    "core.setting",
    "core.state",
    "core.store",
    "core.store.base",
    "core.store.file",
    "core.store.memory",
    "core.timespan",
    "core.where",
}
OURS_FOR_HELP = {"cli", "cli.app", "cli.lazy", "cli.output", "core", "core.errors"}


def ended(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    out, err = process.communicate(timeout=60)
    assert "Traceback" not in out + err
    return process.returncode, out, err


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_takes_the_run_back(shop: Shop, number: signal.Signals) -> None:
    with shop.running("-dt", DAY, "--lineage") as process:
        process.send_signal(number)
        code, out, err = ended(process)
    assert code == 4
    assert err.count("[ERROR]") == 1
    assert f"was interrupted by {number.name}; what it wrote is taken back; run it again" in err
    assert "[OK]" not in out
    assert shop.files() == []
    assert "No open batches" in shop.ubunye("leases", "list", "-d", str(shop.root)).out
    (record,) = (shop.state / "lineage").rglob("*.json")
    assert json.loads(record.read_text())["status"] == "interrupted"
    shop.task()
    assert shop.do("run", "-dt", DAY).code == 0


def test_a_second_signal_does_not_break_off_the_take_back(shop: Shop) -> None:
    """The second comes while the first is being answered: a finally of the user's code takes its time."""
    flag = shop.root / "stopping"
    code = (
        "import os, time\n"
        "def transform(sources):\n"
        f"    open({str(shop.root / 'inside')!r}, 'w').close()\n"
        "    try:\n"
        "        time.sleep(60)\n"
        "    finally:\n"
        f"        open({str(flag)!r}, 'w').close()\n"
        "        time.sleep(1)\n"
    )
    shop.task(code=code)
    process = shop.process(*shop.args("run", "-dt", DAY, "--json"))
    wait_until((shop.root / "inside").exists)
    process.send_signal(signal.SIGTERM)
    wait_until(flag.exists)
    process.send_signal(signal.SIGINT)
    code_, out, err = ended(process)
    assert code_ == 4
    assert "Already stopping" in err
    assert json.loads(out)["reason"] == "interrupted"
    assert shop.ubunye("leases", "list", "-d", str(shop.root), "--json").json == []


@pytest.mark.parametrize("first", ["os.kill(os.getpid(), signal.SIGTERM)\n    while True: pass", "1 / 0"])
def test_no_signal_breaks_off_the_take_back(shop: Shop, first: str) -> None:
    """Whether the first signal began it or the task's own error, and however many come in the middle of it."""
    program = (
        "import os, signal, sys, time\n"
        "from airflow_provider_ubunye.core import run\n"
        "take_back = run.take_back\n"
        "def slow(*args):\n"
        "    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGTERM):\n"
        "        os.kill(os.getpid(), number)\n"
        "        time.sleep(0.05)\n"
        "    return take_back(*args)\n"
        "run.take_back = slow\n"
        "from airflow_provider_ubunye.cli import main\n"
        "sys.exit(main())\n"
    )
    shop.task(code=f"import os, signal\ndef transform(sources):\n    {first}\n")
    process = subprocess.Popen(
        [sys.executable, "-c", program, *shop.args("run", "-dt", DAY)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    code, out, err = ended(process)
    assert code == 4
    assert err.count("Already stopping") >= 3
    assert "was interrupted by SIGTERM; what it wrote is taken back" in err
    assert "[OK]" not in out
    assert "No open batches" in shop.ubunye("leases", "list", "-d", str(shop.root)).out


def test_a_third_signal_interrupts_code_that_goes_on_in_spite_of_the_first(shop: Shop) -> None:
    code = (
        "import os, signal\n"
        "def transform(sources):\n"
        "    try:\n"
        "        os.kill(os.getpid(), signal.SIGINT)\n"
        "    except: pass\n"
        "    os.kill(os.getpid(), signal.SIGINT)\n"
        "    os.kill(os.getpid(), signal.SIGINT)\n"
        "    while True: pass\n"
    )
    shop.task(code=code)
    code_, _, err = ended(shop.process(*shop.args("run", "-dt", DAY)))
    assert code_ == 4
    assert err.count("Already stopping") == 1
    assert "was interrupted by SIGINT" in err


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
@pytest.mark.parametrize("place", ["Out.document", "leave_quietly", "exit"])
def test_a_signal_after_the_exit_code_is_known_changes_nothing(
    shop: Shop, place: str, number: signal.Signals
) -> None:
    late = f"os.kill(os.getpid(), {int(number)})"
    program = (
        "import atexit, os, sys\n"
        "from airflow_provider_ubunye.cli import main, output\n"
        f"place = {place!r}\n"
        f"if place == 'exit': atexit.register(lambda: {late})\n"
        "else:\n"
        "    owner, name = (output.Out, 'document') if '.' in place else (output, place)\n"
        "    real = getattr(owner, name)\n"
        f"    setattr(owner, name, lambda *args: ({late}, real(*args))[1])\n"
        "sys.exit(main())\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", program, *shop.args("run", "-dt", DAY, "--json")],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    code, out, err = ended(process)
    assert (code, json.loads(out)["status"]) == (0, "ok"), err


def test_a_process_that_the_tasks_code_forked_does_not_tell_of_a_commit(shop: Shop) -> None:
    shop.task(
        code="import os\ndef transform(sources):\n    os.fork()\n    return {'kept': sources['orders']}\n"
    )
    code, out, err = ended(shop.process(*shop.args("run", "-dt", DAY)))
    assert (code, out.count("[OK]"), err.count("[ERROR]")) == (0, 1, 1)
    assert "came out of that code" in err
    assert len(shop.files()) == 1


def test_a_signal_while_waiting(shop: Shop) -> None:
    with shop.running("-dt", DAY):
        waiting = shop.process(*shop.args("run", "-dt", DAY, "--wait", "1h"))
        assert waiting.stdout is not None
        pipe = waiting.stdout
        wait_until(lambda: "Waiting" in pipe.readline())
        waiting.send_signal(signal.SIGTERM)
        code, _, err = ended(waiting)
    assert code == 4
    assert "was interrupted by SIGTERM before it began" in err


def test_an_interrupt_that_a_library_swallows_is_an_interrupt(shop: Shop) -> None:
    code = (
        "import os, signal\n"
        "def transform(sources):\n"
        "    try:\n"
        "        os.kill(os.getpid(), signal.SIGTERM)\n"
        "        import time; time.sleep(60)\n"
        "    except KeyboardInterrupt:\n"
        "        raise RuntimeError('the read was cancelled') from None\n"
    )
    shop.task(code=code)
    code_, _, err = ended(shop.process(*shop.args("run", "-dt", DAY)))
    assert code_ == 4
    assert "was interrupted" in err


def test_an_interrupt_after_the_commit_leaves_the_rest(shop: Shop) -> None:
    """The signal comes when the first task is done: it stays done, and the next one is not begun."""
    shop.task("second")
    program = (
        "import os, signal, sys\n"
        "from airflow_provider_ubunye.core.lease import Lease\n"
        "append = Lease.append\n"
        "def killed(self, kind, body=None):\n"
        "    state = append(self, kind, body)\n"
        "    if kind == 'done': os.kill(os.getpid(), signal.SIGTERM)\n"
        "    return state\n"
        "Lease.append = killed\n"
        "from airflow_provider_ubunye.cli.app import run\n"
        "sys.exit(run(sys.argv[1:]))\n"
    )
    args = shop.args("run", "-dt", DAY, tasks=("load", "second"))
    process = subprocess.Popen(
        [sys.executable, "-c", program, *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    code, out, err = ended(process)
    assert code == 4
    assert "[OK] shop/daily/load" in out
    assert "interrupted by SIGTERM before shop/daily/second" in err
    assert len(shop.files()) == 1
    assert shop.files("second") == []
    assert shop.do("run", "-dt", DAY).code == 1


def test_a_signal_after_the_last_commit_changes_nothing(shop: Shop) -> None:
    """However late it comes: the batch is there, and the call says so."""
    places = (
        ("airflow_provider_ubunye.taskrun", "TaskResult"),
        ("airflow_provider_ubunye.cli.running", "what_it_did"),
        ("airflow_provider_ubunye.cli.running", "Told"),
    )
    for day, (module, name) in enumerate(places, 1):
        program = (
            "import importlib, os, signal, sys\n"
            f"module = importlib.import_module({module!r})\n"
            f"real = module.{name}\n"
            "def late(*args, **kwargs):\n"
            f"    module.{name} = real\n"
            "    os.kill(os.getpid(), signal.SIGTERM)\n"
            "    return real(*args, **kwargs)\n"
            f"module.{name} = late\n"
            "from airflow_provider_ubunye.cli.app import run\n"
            "sys.exit(run(sys.argv[1:]))\n"
        )
        args = shop.args("run", "-dt", f"2026-10-0{day}", "--json")
        process = subprocess.Popen(
            [sys.executable, "-c", program, *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        code, out, err = ended(process)
        assert (code, json.loads(out)["status"]) == (0, "ok"), err
        assert json.loads(out)["files"] == {"kept": 1}


def test_ignored_signals_stay_ignored(shop: Shop) -> None:
    with shop.running("-dt", DAY) as process:
        process.kill()
        process.communicate()
        quiet = shop.process(
            *shop.args("run", "-dt", "2026-11-05"),
            preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN),
        )
        (shop.root / "inside").unlink()
        wait_until((shop.root / "inside").exists)
        quiet.send_signal(signal.SIGHUP)
        shop.go()
        code, _, _ = ended(quiet)
    assert code == 0


def test_waiting_for_a_held_batch_goes_on_when_it_is_free(shop: Shop) -> None:
    with shop.running("-dt", DAY) as first:
        waiting = shop.process(*shop.args("run", "-dt", DAY, "--wait", "2m", "--resume"))
        assert waiting.stdout is not None
        pipe = waiting.stdout
        wait_until(lambda: "Waiting for run" in pipe.readline())
        assert waiting.poll() is None
        shop.go()
        assert ended(first)[0] == 0
        code, out, _ = ended(waiting)
    assert code == 0
    assert "[SKIP]" in out
    assert len(shop.files()) == 1


def test_a_batch_that_another_run_finished_meanwhile_is_no_call_for_a_rerun(shop: Shop) -> None:
    with shop.running("-dt", DAY) as first:
        waiting = shop.process(*shop.args("run", "-dt", DAY, "--wait", "2m"))
        assert waiting.stdout is not None
        pipe = waiting.stdout
        said = ""
        while "Waiting for run" not in said:
            said = pipe.readline()
        run = said.split()[3].rstrip(",")
        shop.go()
        assert ended(first)[0] == 0
        code, _, err = ended(waiting)
    assert code == 1
    assert f"run {run} finished it while this one waited" in err
    assert "Hint: nothing is left to do" in err


def test_waiting_ends(shop: Shop) -> None:
    with shop.running("-dt", DAY):
        answer = shop.do("run", "-dt", DAY, "--wait", "1s")
        assert answer.code == 1
        assert "still running" in answer.errors[0]


def test_two_at_once(shop: Shop) -> None:
    shop.task(
        code="import time\ndef transform(sources):\n    time.sleep(1)\n    return {'kept': sources['orders']}\n"
    )
    both = [shop.process(*shop.args("run", "-dt", DAY)) for _ in range(2)]
    answers = sorted(ended(process) for process in both)
    assert [code for code, _, _ in answers] == [0, 1]
    assert len(answers[1][2].splitlines()) == 3
    assert len(shop.files()) == 1


def test_a_reader_that_goes_away_does_not_stop_the_run(shop: Shop) -> None:
    read, write = os.pipe()
    os.close(read)
    process = shop.process(*shop.args("run", "-dt", DAY), stdout=write)
    os.close(write)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 0
    assert err == ""
    assert len(shop.files()) == 1
    for args in (["--help"], ["leases", "list", "--all", "-d", str(shop.root)], ["run", "--help"]):
        read, write = os.pipe()
        os.close(read)
        process = shop.process(*args, stdout=write)
        os.close(write)
        assert process.communicate(timeout=60)[1] == ""
        assert process.returncode == 0


def test_a_result_that_can_not_be_written_is_no_success(shop: Shop) -> None:
    with open("/dev/full", "w") as full:
        listing = shop.process("leases", "list", "-d", str(shop.root), stdout=full)
        assert "could not be written" in listing.communicate(timeout=60)[1]
        assert listing.returncode == 3
        # The batch is there: a code that made a scheduler run it again would not be true.
        run = shop.process(*shop.args("run", "-dt", DAY), stdout=full)
        run.communicate(timeout=60)
        assert run.returncode == 0


def test_a_terminal_without_unicode(shop: Shop) -> None:
    shop.task("café")
    environment = {**os.environ, "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
    process = shop.process(*shop.args("run", "-dt", DAY, tasks=("café",)), env=environment)
    code, out, _ = ended(process)
    assert code == 0
    assert "caf\\xe9" in out


def test_a_terminal_shows_the_time_going_by(shop: Shop) -> None:
    shop.task("second")
    ours, theirs = os.openpty()
    args = shop.args("run", "-dt", DAY, tasks=("load", "second"))
    process = shop.process(*args, stdout=theirs, stderr=theirs)
    os.close(theirs)
    said = b""
    with contextlib.suppress(OSError):  # the end of a terminal
        while block := os.read(ours, 65536):
            said += block
    os.close(ours)
    assert process.wait(timeout=60) == 0
    text = said.decode()
    assert "[1/2] shop/daily/load" in text
    assert "Summary: 2 ran" in text
    assert "Traceback" not in text


def test_programs_that_the_task_starts_do_not_break_the_document(shop: Shop) -> None:
    shop.task(code="import os\nos.system('echo hello')\n\n\n" + CODE)
    code_, out, err = ended(shop.process(*shop.args("run", "-dt", DAY, "--json")))
    assert code_ == 0
    assert json.loads(out)["status"] == "ok"
    assert "hello" in err


def loaded(*args: str) -> set[str]:
    """The modules that are loaded when the program has carried out a call."""
    program = (
        "import sys\n"
        "from airflow_provider_ubunye.cli import main\n"
        "code = main()\n"
        "sys.stderr.write(' '.join(sys.modules))\n"
        "sys.exit(code)\n"
    )
    done = subprocess.run([sys.executable, "-c", program, *args], capture_output=True, text=True, check=True)
    return set(done.stderr.split())


@pytest.mark.parametrize(
    ("call", "ours"),
    [
        (["--help"], OURS_FOR_HELP),
        (["--version"], OURS_FOR_HELP),
        (["leases", "list"], OURS_FOR_LISTING),
    ],
)
def test_what_starting_loads(shop: Shop, call: list[str], ours: set[str]) -> None:
    with shop.running("-dt", DAY):
        modules = loaded(*call, *(["-d", str(shop.root)] if call[0] == "leases" else []))
    name = "airflow_provider_ubunye"
    assert {m.removeprefix(name + ".") for m in modules if m.startswith(name + ".")} == ours
    assert {m for m in modules if m.partition(".")[0] in HEAVY} == set()


def test_the_installed_program(shop: Shop) -> None:
    program = Path(sys.executable).with_name("ubunye")
    done = subprocess.run([program, "--version"], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("ubunye, version ")
