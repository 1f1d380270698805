from __future__ import annotations

import resource
import subprocess
import sys
from collections.abc import Iterator

import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_ubunye.core.errors import ConfigError, UsageError
from airflow_provider_ubunye.tasks.template import Scope, render, render_tree

ENVIRON = {
    "HOME": "/home/ama",
    "DB_PASSWORD": "hunter22",
    "_ODD": "odd",
    "get": "got",
    "REGION": "eu-west",
    "S": "s",
}


def scope(hidden: list[str] | None = None, **variables: str) -> Scope:
    return Scope(
        variables={"dt": "2026-11-01", "mode": "DEV", **variables},
        environ=ENVIRON,
        task_dir="/pipelines/shop/daily/load",
        usecase_dir="/pipelines",
        hide=(hidden if hidden is not None else []).append,
    )


@pytest.mark.parametrize(
    ("text", "done"),
    [
        ("plain { text }", "plain { text }"),
        ("{{ dt }}", "2026-11-01"),
        ("{{ dt[:4] }}/{{ mode | lower }}", "2026/dev"),
        ("{{ region | default('none yet') }}", "none yet"),
        ("{{ task_dir }} {{ usecase_dir }}", "/pipelines/shop/daily/load /pipelines"),
        ("{{ env.HOME }} {{ env['HOME'] }}", "/home/ama /home/ama"),
        ("{{ env._ODD }}", "odd"),
        ("{{ env['get'] }}", "got"),
        ("{{ env.NOPE | default('d') }}", "d"),
        ("{{ env.get('NOPE', 'e') }} {{ env.get('REGION', 'e') }}", "e eu-west"),
        ("{{ env.get('NOPE') | default('f') }}", "f"),
        ("{{ 'NOPE' in env }} {{ 'HOME' in env }}", "False True"),
        ("{% if mode == 'DEV' %}a{% else %}b{% endif %}", "a"),
        ("{# gone #}x\n", "x\n"),
        ("{{ 5 }}", "5"),
        ("{{ nope is defined }}", "False"),
    ],
)
def test_what_templates_may_do(text: str, done: str) -> None:
    assert render(text, scope(), "CONFIG.transform.params.x") == done


def test_a_variable_that_looks_like_the_missing_one_is_named() -> None:
    with pytest.raises(ConfigError) as caught:
        render("{{ region }}", scope(reigon="eu"), "CONFIG.outputs.o.path")
    assert caught.value.what == (
        "CONFIG.outputs.o.path: needs --var region=…; given: dt, reigon; did you mean 'region' by 'reigon'?"
    )
    assert caught.value.hint is None
    with pytest.raises(ConfigError, match=r"needs -dt …; given: none$"):
        render("{{ dt }}", Scope({"mode": "DEV"}, {}, "/t", "/u", print), "K")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{{ region }}", "needs --var region=…; given: dt"),
        ("{{ dtf }}", "needs -dtf …; given: dt"),
        ("{{ nope == 1 }}", "needs --var nope=…"),
        ("{% if nope %}x{% endif %}", "needs --var nope=…"),
        ("{{ taskdir }}", "needs --var taskdir=…; given: dt; did you mean 'task_dir'?"),
        ("{{ dt.nope }}", "has no attribute 'nope'"),
        ("{{ env.NOPE }}", "the environment variable 'NOPE' is not set"),
        ("{{ env.get('NOPE') }}", "the environment variable 'NOPE' is not set"),
        ("{{ env[env.DB_PASSWORD] }}", "the environment variable '***' is not set"),
        ("{{ ''.__class__.__mro__ }}", "not allowed in a template"),
        ("{{ ''.__class__ | default('x') }}", "not allowed in a template"),
        ("{{ env.__class__ }}", "not allowed in a template"),
        ("{{ env['__class__'] }}", "not allowed in a template"),
        ("{{ env._environ }}", "not allowed in a template"),
        ("{{ env.get.__globals__ }}", "not allowed in a template"),
        ("{{ dt | attr('__class__') }}", "not allowed in a template"),
        ("{{ '{0.__class__}'.format(dt) }}", "not allowed in a template"),
        ("{{ ['a'] | map(attribute='__class__') | list }}", "not allowed in a template"),
        ("{{ cycler.__init__.__globals__.os.popen('id').read() }}", "not allowed in a template"),
        ("{{ self.__init__.__globals__ }}", "not allowed in a template"),
        ("{{ range(3) | join }}", "needs --var range=…"),
        ("{{ [].append(1) }}", "not allowed in a template"),
        ("{{ dt", "not a valid template"),
        ("{% for x in [1] %}", "not a valid template"),
        ("{{ dt | nope }}", "not a valid template"),
        ("{% include '/etc/passwd' %}", "failed with TypeError"),
        ("{{ none }}", "gives None"),
        ("{{ env }}", "gives a value of type Env"),
        ("{{ [dt] }}", "gives a value of type list"),
        ("{{ 1 / 0 }}", "failed with ZeroDivisionError"),
        ("{{ 'a\0' }}", "control character"),
        ("{{ 'secret:' ~ '//env/HOME' }}", "may not bring a secret://"),
    ],
)
def test_what_templates_may_not_do(text: str, said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        render(text, scope(), "CONFIG.transform.params.x")
    assert caught.value.what.startswith("CONFIG.transform.params.x: ")
    assert said in caught.value.what
    assert "\n" not in caught.value.what


@pytest.mark.parametrize(
    "text",
    [
        "{{ env.DB_PASSWORD + 1 }}",
        "{{ env.DB_PASSWORD | round }}",
        "{{ dt[env.DB_PASSWORD] }}",
        "{{ nope[env.DB_PASSWORD] }}",
    ],
)
def test_an_error_never_shows_a_value_of_the_environment(text: str) -> None:
    with pytest.raises(ConfigError) as caught:
        render(text, scope(), "CONFIG.x")
    assert "hunter22" not in "".join(caught.value.lines())
    assert caught.value.__cause__ is None


def test_a_variable_may_not_bring_a_secret_reference() -> None:
    with pytest.raises(ConfigError, match="may not bring"):
        render("{{ region }}", scope(region="secret://env/HOME"), "CONFIG.x")
    assert render("secret://env/{{ region }}", scope(region="eu"), "CONFIG.x") == "secret://env/eu"


@pytest.mark.parametrize("value", ["..", ".", "../x", "a/../../x", "a\\..\\x", "/etc/..", "x/."])
def test_a_variable_can_not_move_a_path(value: str) -> None:
    with pytest.raises(ConfigError, match=r"gives a '\.' or '\.\.'"):
        render("/lake/{{ region }}/orders", scope(region=value), "CONFIG.outputs.orders.path")
    # Elsewhere it is just text.
    assert render("{{ region }}", scope(region=value), "CONFIG.outputs.orders.options.path") == value


def test_an_expression_in_a_path_can_not_be_empty() -> None:
    with pytest.raises(ConfigError, match="is empty"):
        render("/lake/{{ '' }}/orders", scope(), "CONFIG.inputs.orders.path")
    assert render("/lake/..a/{{ dt }}", scope(), "CONFIG.inputs.orders.path") == "/lake/..a/2026-11-01"


def test_what_of_the_environment_is_masked() -> None:
    hidden: list[str] = []
    names = scope(hidden)
    # Where it says where things are, only names that speak of a secret.
    render("/{{ env.REGION }}/x", names, "CONFIG.outputs.o.path")
    assert hidden == []
    render("/{{ env.DB_PASSWORD }}/x", names, "CONFIG.outputs.o.path")
    assert hidden == ["hunter22"]
    # In options and parameters every one, but for what is too short or common to be hidden.
    render("{{ env.REGION }}{{ env.S }}", names, "CONFIG.outputs.o.options.user")
    assert hidden == ["hunter22", "eu-west"]


def test_what_was_read_by_a_failed_template_is_not_taken_for_another_ones() -> None:
    hidden: list[str] = []
    names = scope(hidden)
    with pytest.raises(ConfigError):
        render("{{ env.REGION }}{{ nope }}", names, "CONFIG.transform.params.x")
    render("{{ dt }}", names, "CONFIG.transform.params.y")
    assert hidden == []


def test_the_key_of_the_leaf_is_named() -> None:
    tree = {"CONFIG": {"outputs": {"o": {"options": {"l": ["a", {"x": "{{ nope }}"}]}}}}}
    with pytest.raises(ConfigError) as caught:
        render_tree(tree, scope())
    assert caught.value.what == "CONFIG.outputs.o.options.l[1].x: needs --var nope=…; given: dt"


@pytest.mark.parametrize("name", ["env", "task_dir", "usecase_dir"])
def test_a_variable_may_not_take_a_name_of_the_templates(name: str) -> None:
    with pytest.raises(UsageError, match=name):
        scope(None, **{name: "x"})


@given(st.text(max_size=40))
def test_a_value_stays_in_its_leaf(value: str) -> None:
    tree = {"a": "{{ x }}", "b": ["-{{ x }}-", 3, None, True]}
    try:
        done = render_tree(tree, scope(x=value))
    except ConfigError:
        return
    assert done == {"a": value, "b": [f"-{value}-", 3, None, True]}


@given(st.text(alphabet=st.sampled_from(list("{}%#| ._'\"[]()dtenv|~+-=:,0")), max_size=25))
def test_any_template_renders_or_fails_in_one_line(text: str) -> None:
    try:
        done = render(text, scope(), "CONFIG.x")
    except ConfigError as error:
        done = error.what
        assert "\n" not in done
    assert "jinja2" not in done


def test_jinja_is_imported_only_for_a_template() -> None:
    script = (
        "import sys\n"
        "from airflow_provider_ubunye.tasks.template import Scope, render\n"
        "s = Scope({'dt': 'x'}, {}, '/t', '/u', print)\n"
        "render('plain', s, 'k'); assert 'jinja2' not in sys.modules\n"
        "render('{{ dt }}', s, 'k'); assert 'jinja2' in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


HUGE = [
    "{{ 'a' * 10**9 }}",
    "{{ 10**9 * 'a' }}",
    "{{ ['a'] * 10**9 }}",
    "{{ ('ab' * 3000000) + ('ab' * 3000000) }}",
    "{{ 10**(10**9) }}",
    "{% set a = 10**20000 %}{% set b = a * a %}{{ b % 7 }}",
    "{{ '%1000000000d' % 1 }}",
    "{{ '%*d' % (1000000000, 1) }}",
    "{{ '%(a)1000000000d' % {'a': 1} }}",
    "{{ '%1000000000d' | format(1) }}",
    "{{ '{:1000000000}'.format(1) }}",
    "{{ '{:{}}'.format(1, 1000000000) }}",
    "{{ '{a:{b}}'.format_map({'a': 1, 'b': 1000000000}) }}",
    "{{ ('a' * 9000000) }}",
    "{{ '{a:1000000000}'.format_map({'a': 1}) }}",
    "{{ ('{0}' * 2000).format('x' * 10000) }}",
    "{{ 'a'.center(1000000000) }}",
    "{{ 'a' | center(1000000000) }}",
    "{{ 'a' | center(width=1000000000) }}",
    "{{ 'a\nb' | indent(1000000000) }}",
    "{{ ('a' * 100000).replace('a', 'b' * 100000) }}",
    "{{ ('a' * 100000) | replace('a', 'b' * 100000) }}",
    "{{ ('a' * 100000) | map('upper') | join('b' * 100000) }}",
    "{{ ('a' * 100000) | join('b' * 100000) }}",
    "{{ ['a', 'b'] | batch(1000000000, 'x') | list | length }}",
    "{{ 1.5 | round(1000000000) }}",
    "{% for a in 'x' * 100000 %}{% for b in 'x' * 1000 %}{{ a }}{% endfor %}{% endfor %}",
]


@pytest.fixture
def little_memory() -> Iterator[None]:
    """Half a gigabyte more than the process has taken."""
    render("{{ dt }}", scope(), "x")
    before = resource.getrlimit(resource.RLIMIT_AS)
    most = psutil.Process().memory_info().vms + (1 << 29)
    resource.setrlimit(resource.RLIMIT_AS, (most, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_AS, before)


@pytest.mark.parametrize("text", HUGE)
@pytest.mark.usefixtures("little_memory")
def test_a_template_that_gives_very_much_is_refused_before_it_fills_the_memory(text: str) -> None:
    with pytest.raises(ConfigError, match=r"^CONFIG\.x: it gives more than 10?,000,000 characters$"):
        render(text, scope(), "CONFIG.x")


@pytest.mark.parametrize(
    ("text", "done"),
    [
        ("{{ '-' * 20 }}", "-" * 20),
        ("{{ 3 * 4 + 2**10 }}", "1036"),
        ("{{ 2.5 ** 2 }} {{ 2 ** -1 }} {{ 0 ** 5 }}", "6.25 0.5 0"),
        ("{{ 86400000 * 1000 }} {{ '%05d' % 42 }} {{ 7 % 4 }}", "86400000000 00042 3"),
        ("{{ '%s rows' % 500000000 }}", "500000000 rows"),
        ("{{ '{:>8}'.format(dt[:4]) }} {{ '{0}-{n}'.format('a', n=5) }}", "    2026 a-5"),
        ("{{ '%s/%s' | format(dt, mode) }}", "2026-11-01/DEV"),
        ("{{ dt.replace('-', '/') }} {{ dt | replace('-', '') }}", "2026/11/01 20261101"),
        ("{{ ['a', 'b'] | map('upper') | join(', ') }} {{ '-'.join(['a', 'b']) }}", "A, B a-b"),
        ("{{ '7'.zfill(3) }} {{ 'a' | center(5) }}| {{ 1.256 | round(1) }}", "007   a  | 1.3"),
        ("{{ nope | default(10000000000) }} {{ {'a': [1, 2.5]} | tojson }}", '10000000000 {"a": [1, 2.5]}'),
        ("{{ v | replace('x', 'ab') | length }}", "131072"),
    ],
)
def test_what_templates_do_every_day_is_within_the_limits(text: str, done: str) -> None:
    assert render(text, scope(v="x" * 65536), "CONFIG.transform.params.x") == done
