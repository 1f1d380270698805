from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from airflow_provider_ubunye.core.errors import ConfigError, LeaseLost, TransformFailed, UsageError
from airflow_provider_ubunye.tasks.folder import TaskFolder
from airflow_provider_ubunye.tasks.load import check_result, load_transform
from airflow_provider_ubunye.tasks.secrets import Redactor
from airflow_provider_ubunye.tasks.task import Task, TaskContext
from tests.tasks.conftest import MakeTask

CONTEXT = TaskContext(
    "shop/daily/load_orders", dt="2026-11-01", params={"n": 1}, variables={"dt": "2026-11-01"}
)
IMPORT_TASK = "from airflow_provider_ubunye.tasks.task import Task\n"


def run(folder: TaskFolder, sources: dict[str, Any] | None = None, context: TaskContext = CONTEXT) -> Any:
    return load_transform(folder)(sources if sources is not None else {"a": 1}, context)


@pytest.mark.parametrize(
    "code",
    [
        "def transform(sources): return {'out': sources['a']}",
        "transform = lambda sources: {'out': sources['a']}",
        "def transform(frames, debug=False): return {'out': 1 if not debug else 2}",
        "def transform(*args): return {'out': len(args)}",
        "def transform(sources, **more): return {'out': 1 - len(more)}",
    ],
)
def test_a_function_of_the_sources(make_task: MakeTask, code: str) -> None:
    assert run(make_task(code=code)) == {"out": 1}


@pytest.mark.parametrize(
    "head",
    [
        "(sources, context)",
        "(sources, ctx)",
        "(sources, context=None)",
        "(sources, *, context)",
        "(sources, *, context=None)",
        "(sources, context, more=1)",
    ],
)
def test_a_function_of_sources_and_context(make_task: MakeTask, head: str) -> None:
    name = "ctx" if "ctx" in head else "context"
    folder = make_task(code=f"def transform{head}: return {{'out': {name}.dt, 'n': {name}.params['n']}}")
    assert run(folder) == {"out": "2026-11-01", "n": 1}


@pytest.mark.parametrize(
    "body",
    [
        "class Load(Task):\n    def transform(self, sources): return {'out': self.context.dt}\n",
        "class Load(Task):\n    def transform(self, sources, context): return {'out': context.dt}\n",
        "class Load(Task):\n    def transform(self, sources, *, context): return {'out': context.dt}\n",
        "class Load(Task):\n    def transform(self, *sources): return {'out': self.context.dt}\n",
        (
            "class Base(Task):\n    def transform(self, sources): return {'out': self.value()}\n"
            "class Load(Base):\n    def value(self): return self.context.dt\n"
        ),
        "class transform(Task):\n    def transform(self, sources): return {'out': self.context.dt}\n",
    ],
)
def test_a_class(make_task: MakeTask, body: str) -> None:
    assert run(make_task(code=IMPORT_TASK + body)) == {"out": "2026-11-01"}


def test_an_abstract_base_beside_the_class_does_not_count(make_task: MakeTask) -> None:
    code = (
        IMPORT_TASK
        + "class Other(Task): pass\nclass L(Task):\n    def transform(self, s): return {'o': 1}\nAlias = L\n"
    )
    assert run(make_task(code=code)) == {"o": 1}


def test_each_run_has_an_object_of_its_own(make_task: MakeTask) -> None:
    code = IMPORT_TASK + (
        "class L(Task):\n    n = 0\n    def transform(self, s):\n"
        "        self.n += 1\n        return {'n': self.n}\n"
    )
    transform = load_transform(make_task(code=code))
    assert [transform({}, CONTEXT), transform({}, CONTEXT)] == [{"n": 1}, {"n": 1}]


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("x = 1", "the task's code has no transform"),
        (IMPORT_TASK, "the task's code has no transform"),
        ("transform = 3", "transform is no function"),
        ("def transform(): return {}", "transform must take (sources) or (sources, context)"),
        ("def transform(a, b, c): return {}", "transform must take (sources) or (sources, context)"),
        ("def transform(a, *, b): return {}", "transform must take (sources) or (sources, context)"),
        ("async def transform(sources): return {}", "it can't be async"),
        ("def transform(sources): yield {}", "it can't be async or a generator"),
        (
            IMPORT_TASK + "class A(Task):\n    def transform(self, s): ...\ndef transform(s): ...\n",
            "more than one transform: transform, A",
        ),
        (
            IMPORT_TASK
            + "class A(Task):\n    def transform(self, s): ...\nclass B(Task):\n    def transform(self, s): ...\n",
            "more than one transform: A, B",
        ),
        (
            IMPORT_TASK
            + "class A(Task):\n    def __init__(self, config): ...\n    def transform(self, s): ...\n",
            "A must be made without arguments",
        ),
        (IMPORT_TASK + "class A(Task):\n    def transform(self): ...\n", "A.transform must take (sources)"),
    ],
)
def test_what_is_no_transform(make_task: MakeTask, code: str, said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load_transform(make_task(code=code))
    assert said in caught.value.what
    assert (caught.value.where or "").endswith("transformations.py")


def frame(columns: int = 18) -> SimpleNamespace:
    return SimpleNamespace(columns=["order_id", "amount", *(f"c{n}" for n in range(columns))])


ARROW = SimpleNamespace(column_names=["region"], columns=[object()])


def failed(make_task: MakeTask, code: str, **sources: Any) -> TransformFailed:
    with pytest.raises(TransformFailed) as caught:
        run(make_task(code=f"def transform(sources): return {code}"), sources)
    return caught.value


def test_a_key_that_no_input_has_says_what_they_have(make_task: MakeTask) -> None:
    error = failed(make_task, "sources['ordres']", orders=frame(), regions=ARROW, other=3)
    assert error.what == "KeyError: 'ordres'"
    assert error.hint == (
        "did you mean 'orders'? the inputs and their columns are: orders (order_id, amount, "
        f"{', '.join(f'c{n}' for n in range(18))}); regions (region); other (no columns)"
    )
    assert "c18)" in str(failed(make_task, "{}['nothing']", orders=frame(19)).hint)
    hint = str(failed(make_task, "{}['zzz']", orders=frame(20)).hint)
    assert hint.startswith("the inputs and their columns are: orders (order_id")
    assert hint.endswith("c17 and 2 more)")


@pytest.mark.parametrize(
    "code", ["{}['orders']", "{}['order_id']", "{}[3]", "[][3]", "sources.popitem() and {}.pop(1)"]
)
def test_other_errors_get_no_such_hint(make_task: MakeTask, code: str) -> None:
    assert failed(make_task, code, orders=frame()).hint is None


def test_a_missing_file(make_task: MakeTask) -> None:
    with pytest.raises(ConfigError, match=r"has no transformations\.py"):
        load_transform(make_task())
    with pytest.raises(UsageError, match="no use case"):
        load_transform(TaskFolder(make_task().usecase_dir, "a", "b", "c"))


# ── the user's own error ────────────────────────────────────────────────────────────────────────


def failing(folder: TaskFolder, redactor: Redactor | None = None) -> TransformFailed:
    with pytest.raises(TransformFailed) as caught:
        load_transform(folder, redactor=redactor or Redactor())({}, CONTEXT)
    assert "\n" not in caught.value.what
    assert caught.value.exit_code == 3
    return caught.value


def test_a_failing_transform_shows_the_users_own_frames(make_task: MakeTask) -> None:
    code = (
        "import json\n"
        "from helpers_of_this import parse\n"
        "def transform(sources):\n"
        "    return parse(json.loads)\n"
    )
    folder = make_task(code=code, helpers_of_this__py="def parse(loads):\n    return loads('{')\n")
    error = failing(folder)
    assert error.what.startswith("JSONDecodeError: Expecting property name")
    assert error.frames == [
        f'  File "{folder.transformations_path}", line 4, in transform',
        "    return parse(json.loads)",
        f'  File "{folder.path}/helpers_of_this.py", line 2, in parse',
        "    return loads('{')",
    ]
    assert type(error.__cause__).__name__ == "JSONDecodeError"


def test_code_shared_below_the_usecase_dir_is_the_users_own(
    make_task: MakeTask, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = make_task(
        code="import shared_of_all, installed_one\ndef transform(s):\n    shared_of_all.f(installed_one.g)\n"
    )
    installed = folder.usecase_dir / "venv" / "site-packages"
    installed.mkdir(parents=True)
    (folder.usecase_dir / "shared_of_all.py").write_text("def f(g): g()\n")
    (installed / "installed_one.py").write_text("def g(): raise ValueError('x')\n")
    monkeypatch.syspath_prepend(folder.usecase_dir)
    monkeypatch.syspath_prepend(installed)
    shown = [line for line in failing(folder).frames if line.startswith("  File")]
    assert [Path(line.split('"')[1]).name for line in shown] == ["transformations.py", "shared_of_all.py"]
    for name in ("shared_of_all", "installed_one"):
        monkeypatch.delitem(sys.modules, name)


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("raise ValueError('two\\nlines   here')", "ValueError: two lines here"),
        ("raise ValueError", "ValueError"),
        ("raise KeyError('x')", "KeyError: 'x'"),
        ("raise SystemExit(7)", "SystemExit: the task's code ended the program (status 7)"),
        ("import sys; sys.exit()", "SystemExit: the task's code ended the program (status 0)"),
        ("raise ValueError('x' * 10_000)", "ValueError: " + "x" * 500 + " …"),
        ("return 3", "transform returned a int, not a dict of frames by output name"),
        ("pass", "transform returned a NoneType"),
    ],
)
def test_the_one_line(make_task: MakeTask, body: str, said: str) -> None:
    assert failing(make_task(code=f"def transform(s):\n    {body}\n")).what.startswith(said)


def test_an_error_whose_message_fails(make_task: MakeTask) -> None:
    code = "class E(Exception):\n    def __str__(self): return 1 / 0\ndef transform(s):\n    raise E\n"
    assert failing(make_task(code=code)).what == "E: (its message can't be shown)"


def test_endless_recursion_is_cut(make_task: MakeTask) -> None:
    error = failing(make_task(code="def f(): f()\ndef transform(s):\n    f()\n"))
    assert error.what.startswith("RecursionError")
    assert len(error.frames) < 40
    assert any("more …" in line for line in error.frames)


def test_secrets_are_masked_in_message_and_source(make_task: MakeTask) -> None:
    redactor = Redactor()
    redactor.add("hunter22")
    error = failing(make_task(code="def transform(s):\n    raise ValueError('hunter22')\n"), redactor)
    assert error.what == "ValueError: ***"
    assert "hunter22" not in "".join(error.lines())


@pytest.mark.parametrize(
    ("code", "said", "frame"),
    [
        ("def transform(:\n", "SyntaxError: ", "    def transform(:"),
        ("import no_such_module_anywhere\n", "ModuleNotFoundError: ", "    import no_such_module_anywhere"),
        ("raise SystemExit\n", "SystemExit: ", "    raise SystemExit"),
        (b"x = 1\nx = '\xff'\n", "SyntaxError: ", ""),
        (b"x = '\0'\n", "", ""),
    ],
)
def test_a_file_that_does_not_import(make_task: MakeTask, code: str | bytes, said: str, frame: str) -> None:
    folder = make_task(code=code)
    before = dict(sys.modules)
    error = failing(folder)
    assert error.what.startswith(said)
    if frame:
        assert error.frames[-1] == frame
        assert str(folder.transformations_path) in error.frames[-2]
    assert [name for name in sys.modules if name not in before and "ubunye_task" in name] == []


def test_an_interrupt_and_a_lost_lease_pass(make_task: MakeTask) -> None:
    with pytest.raises(KeyboardInterrupt):
        run(make_task(code="def transform(s):\n    raise KeyboardInterrupt\n"))
    code = (
        "from airflow_provider_ubunye.core.errors import LeaseLost\n"
        "def transform(s):\n    raise LeaseLost('gone')\n"
    )
    with pytest.raises(LeaseLost):
        run(make_task(code=code))


def test_a_refusal_of_a_run_inside_the_transform_is_the_transforms_failure(make_task: MakeTask) -> None:
    code = (
        "from airflow_provider_ubunye.core.errors import BatchFinished\n"
        "def transform(s):\n    raise BatchFinished('already there')\n"
    )
    assert failing(make_task(code=code)).what == "BatchFinished: already there"


# ── what came back ──────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("result", "said"),
    [
        ({}, "transform returned nothing for the output 'orders' of the config"),
        (
            {"ordres": 1},
            "transform returned 'ordres', which is no output of the config; did you mean 'orders'?",
        ),
        ({"orders": 1, 3: 1}, "transform returned 3, which is no output of the config; there is 'orders'"),
        ({"orders": None}, "transform returned None for the output 'orders', not a frame"),
    ],
)
def test_results_that_are_not_the_outputs(result: dict[Any, Any], said: str) -> None:
    with pytest.raises(TransformFailed) as caught:
        check_result(result, ["orders"])
    assert caught.value.what == said


def test_a_result_that_is_right() -> None:
    check_result({"a": 1, "b": 2}, ("b", "a"))


def test_the_context_can_not_be_changed() -> None:
    given = {"a": "1"}
    context = TaskContext("t", variables=given)
    given["a"] = "2"
    assert context.variables == {"a": "1"}
    with pytest.raises(TypeError):
        context.variables["a"] = "3"  # type: ignore[index]


def test_task_is_abstract() -> None:
    with pytest.raises(TypeError):
        Task()  # type: ignore[abstract]
