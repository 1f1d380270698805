"""The documentation builds, its generated pages are up to date, and its examples run."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
BIN = Path(sys.executable).parent

FENCE = re.compile(r"^```(?P<info>[^\n`]*)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, what stands after that, and its text."""

    language: str
    more: str
    text: str


def blocks(page: Path) -> list[Block]:
    found = []
    for fence in FENCE.finditer(page.read_text(encoding="utf-8")):
        language, _, more = fence["info"].strip().partition(" ")
        found.append(Block(language, more, fence["text"]))
    return found


def run(command: list[str] | str, cwd: Path) -> subprocess.CompletedProcess[str]:
    ours = {k: v for k, v in os.environ.items() if not k.startswith("UBUNYE_")}
    return subprocess.run(
        command,
        cwd=cwd,
        env={**ours, "PATH": f"{BIN}{os.pathsep}{ours['PATH']}", "NO_COLOR": "1", "COLUMNS": "200"},
        shell=isinstance(command, str),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=120,
        check=False,
    )


def plain(text: str) -> list[str]:
    """Lines without what differs from run to run: ids, times, places, spacing."""
    text = re.sub(r"\d{4}-\d\d-\d\dT[\d:.]+(Z|\+00:00)?", "<time>", text)
    text = re.sub(r"\b[0-9a-f]{32}\b", "<run>", text)
    text = re.sub(r"\brun [0-9a-f]{8}\b", "run <run>", text)
    text = re.sub(r"(?<![\w.])(/|\.\.\./)[\w./-]*", "<path>", text)
    return [" ".join(line.split()) for line in text.splitlines() if line.strip()]


def check_said(shown: Block, said: str) -> None:
    """Every line that the page shows was said, in that order."""
    lines = iter(plain(said))
    for line in plain(shown.text):
        assert line in lines, f"the page shows {line!r}; the command said:\n{said}"


def pages() -> Iterator[Path]:
    for page in sorted(DOCS.rglob("*.md")):
        if "_build" not in page.parts:
            yield page


@pytest.mark.slow
def test_the_site_builds_without_a_warning(tmp_path: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "sphinx",
        "-W",
        "-n",
        "--keep-going",
        "-q",
        str(DOCS),
        str(tmp_path / "html"),
    ]
    done = run(command, tmp_path)
    assert done.returncode == 0, done.stdout
    assert (tmp_path / "html" / "reference" / "cli.html").is_file()


def test_generated_pages_are_up_to_date() -> None:
    done = run([sys.executable, str(DOCS / "generate.py"), "--check"], ROOT)
    assert done.returncode == 0, f"run docs/generate.py\n{done.stdout}"


def run_shell_blocks(page: Path, work: Path) -> int:
    """Run a page's shell blocks in one folder, line by line; a text block after one is what it must say."""
    count, said = 0, ""
    for block in blocks(page):
        if block.language == "shell":
            wanted = int(block.more.partition("exit=")[2] or 0)
            said = ""
            for line in filter(None, block.text.splitlines()):
                done = run(line, work)
                said += done.stdout
                assert done.returncode == wanted, f"{line}\n{done.stdout}"
                assert "Traceback" not in done.stdout
                count += 1
        elif block.language == "text":
            check_said(block, said)
    return count


def run_python_blocks(page: Path, work: Path) -> str:
    """Run a page's Python blocks as one program."""
    script = work / "blocks.py"
    script.write_text("\n".join(b.text for b in blocks(page) if b.language == "python"), encoding="utf-8")
    done = run([sys.executable, "-W", "error", str(script)], work)
    assert done.returncode == 0, done.stdout
    return done.stdout


def test_the_quickstart_is_true(tmp_path: Path) -> None:
    page = DOCS / "quickstart.md"
    assert run_shell_blocks(page, tmp_path) == 5
    said = run_python_blocks(page, tmp_path)
    assert "{'regions': 2}" in said
    assert "already finished this batch" in said
    assert len(list((tmp_path / "lake" / "regions").rglob("*.parquet"))) == 2


def test_the_readme_is_true(tmp_path: Path) -> None:
    page = ROOT / "README.md"
    codes = []
    for block in blocks(page):
        if block.language == "shell" and "scripts/test" not in block.text:
            codes += [run(line, tmp_path).returncode for line in block.text.splitlines()]
    assert codes == [0, 0, 1, 0]
    run_python_blocks(page, tmp_path)
    assert len(list((tmp_path / "lake" / "orders").glob("*.parquet"))) == 1


@pytest.mark.parametrize("name", ["python", "testing"])
def test_the_python_of_the_how_tos_runs(name: str, tmp_path: Path) -> None:
    assert run_python_blocks(DOCS / "how-to" / f"{name}.md", tmp_path)


def test_the_dags_of_the_airflow_page_are_dags(tmp_path: Path) -> None:
    script = tmp_path / "dags.py"
    text = "\n".join(b.text for b in blocks(DOCS / "how-to" / "airflow.md") if b.language == "python")
    script.write_text(f"{text}\nprint(sorted(dag.task_ids))\n", encoding="utf-8")
    # The warnings are Airflow's own, so none is made an error here.
    done = run(["env", f"AIRFLOW_HOME={tmp_path}", sys.executable, str(script)], tmp_path)
    assert done.returncode == 0, done.stdout
    assert done.stdout.splitlines()[-1] == "['load_customers', 'load_orders', 'load_totals']"


def test_every_link_leads_somewhere() -> None:
    for page in [*pages(), ROOT / "README.md", ROOT / "CONTRIBUTING.md"]:
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
            assert (page.parent / target).exists(), f"{page}: {target}"


def test_every_page_is_in_the_index() -> None:
    index = (DOCS / "index.md").read_text(encoding="utf-8")
    for page in pages():
        name = page.relative_to(DOCS).with_suffix("").as_posix()
        assert name == "index" or name in index.splitlines(), name
