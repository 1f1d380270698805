"""What is typed: read as meant, or refused in one line with exit code 2 and nothing written."""

from __future__ import annotations

import pytest
from click.shell_completion import ShellComplete

from airflow_provider_ubunye.cli.app import program
from tests.cli.kit import DAY, Shop


def test_help_and_version(shop: Shop) -> None:
    assert shop.ubunye("--version").out == "ubunye, version 0.1.0\n"
    for flag in ("-h", "--help"):
        said = shop.ubunye(flag)
        assert said.code == 0
        assert all(name in said.out for name in ("init", "run", "plan", "validate", "leases", "UBUNYE_STATE"))
        for command in ("init", "run", "plan", "validate"):
            assert shop.ubunye(command, flag).code == 0
        for command in ("list", "show", "release"):
            assert shop.ubunye("leases", command, flag).code == 0


def test_short_options_of_two_letters_and_of_one(shop: Shop) -> None:
    said = shop.do("run", "-dt", DAY, "-dtf", "%Y-%m-%d", "-m", "prod", "--var", "hour=13", "--json")
    assert said.code == 0
    assert said.json["variables"] == {"dt": DAY, "dtf": "%Y-%m-%d", "mode": "PROD", "hour": "13"}


def test_long_options_and_values_behind_an_equals_sign(shop: Shop) -> None:
    said = shop.ubunye(
        "run",
        f"--usecase-dir={shop.root}",
        "--usecase=shop",
        "--package=daily",
        "--task-list=load",
        f"-dt={DAY}",
        "--data-timestamp-format=%d",
        "--mode=PROD",
        "--backend=pandas",
        "--deploy-mode=client",
        "--json",
    )
    assert said.code == 0
    assert said.json["variables"] == {"dt": DAY, "dtf": "%d", "mode": "PROD"}


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["-dt2026-11-01"], "put a blank after -dt"),
        (["-dtf%Y"], "put a blank after -dt"),
        (["-dt", DAY, "-dt", "2026-11-02"], "-dt is given 2 times"),
        (["-dt", DAY, "-m", "a", "-m", "b"], "-m is given 2 times"),
        (["--bakend", "pandas"], "--backend"),
        (["--backend", "panda"], "did you mean 'pandas'?"),
        (["--backend", "spark"], "not part of this version"),
        (["--deploy-mode", "cluster"], "there is client"),
        (["-dt"], "requires an argument"),
        (["stray"], "stray"),
        (["-dt", DAY, "--rerun", "--resume"], "--rerun and --resume"),
        (["--rerun"], "needs a -dt or a --var"),
        (["--resume"], "needs a -dt or a --var"),
        (["--resume", "-m", "PROD", "-dtf", "%Y"], "needs a -dt or a --var"),
        (["-dt", DAY, "--wait", "soon"], "no time span"),
        (["-dt", DAY, "--wait", "-5"], "no time span"),
        (["-dt", DAY, "--wait", "nan"], "no time span"),
        (["-dt", DAY, "--wait", ""], "no time span"),
        (["-dt", DAY, "--wait", "9999h"], "longer than a year"),
        (["-dt", DAY, "--takeover-after", "0"], "positive"),
        (["--var", "hour"], "NAME=VALUE"),
        (["--var", "=13"], "NAME=VALUE"),
        (["--var", "a-b=13"], "NAME=VALUE"),
        (["--var", "mode=PROD"], "-m"),
        (["--var", "env=x"], "meaning of its own"),
        (["--var", "task_dir=x"], "meaning of its own"),
        (["--var", "hour=1", "--var", "hour=2"], "given twice"),
        (["-dt", DAY, "--var", "dt=2026-11-02"], "given twice"),
        (["--var", "hour="], "empty"),
        # case 25
        (["-dt", "{{ ds }}"], "unrendered template"),
        (["-dt", "None"], "no value"),
        (["-dt", "null"], "no value"),
        (["-dt", ""], "empty"),
        (["-dt", "   "], "empty"),
        (["-dt", f" {DAY} "], "padded"),
        (["-dt", "2026\n11"], "control character"),
        (["-dt", "\x1b[31m"], "control character"),
        (["-m", ""], "empty"),
        (["-dt", "x" * 70_000], "longer than"),
        (["-dt", DAY, "--all"], "--all and -t"),
        (["-dt", DAY, "-t", "load"], "named twice"),
        (["-dt", DAY, "-t", "laod"], "did you mean 'load'?"),
        # case 35
        (["-dt", DAY, "-t", "../../x"], "starts with a dot"),
        (["-dt", DAY, "-t", "/etc"], "not one path segment"),
        (["-dt", DAY, "-t", "a\nb"], "control character"),
        (["-dt", DAY, "-t", "a\0b"], "control character"),
        (["-dt", DAY, "-t", ""], "empty"),
        (["-dt", DAY, "-t", "x" * 300], "longer than 200 bytes"),
        (["-dt", DAY, "-t", "\udcff"], "control character"),
        (["-dt", DAY, "--state", ""], "empty"),
        (["-dt", DAY, "--state", "s3://bucket/state"], "not built yet"),
        (["-dt", DAY, "--state", "a\0b"], "NUL"),
    ],
)
def test_what_can_not_be_meant_is_refused(shop: Shop, more: list[str], said: str) -> None:
    before = shop.everything()
    answer = shop.do("run", *more)
    assert answer.code == 2
    assert len(answer.errors) == 1
    assert said in answer.err
    assert answer.out == ""
    assert "\x1b" not in answer.err
    assert shop.everything() == before


@pytest.mark.parametrize("missing", ["-d", "-u", "-p"])
def test_a_missing_option_is_named(shop: Shop, missing: str) -> None:
    args = shop.args("run", "-dt", DAY)
    at = args.index(missing)
    answer = shop.ubunye(*args[:at], *args[at + 2 :])
    assert answer.code == 2
    assert f"'{missing}'" in answer.errors[0]


@pytest.mark.parametrize(
    ("args", "said"),
    [
        ([], "Missing command"),
        (["rnu"], "did you mean 'run'?"),
        (["runs"], "did you mean 'run'?"),
        (["leases", "lst"], "did you mean 'list'?"),
        (["leases"], "Missing command"),
        ([], "Write a new task that runs at once."),
        (["leases"], "Free a batch that a dead run holds."),
        (["leases", "list"], "give -d or --state (usecase_dir= or state= in Python)"),
        (["leases", "show"], "ID"),
        (["--nonsense"], "--nonsense"),
    ],
)
def test_commands_that_are_not_there(shop: Shop, args: list[str], said: str) -> None:
    answer = shop.ubunye(*args)
    assert answer.code == 2
    assert said in answer.err
    assert len(answer.errors) == 1


def test_a_shell_completes_lines(shop: Shop) -> None:
    """The line is parsed before it is whole: nothing that is missing may raise."""
    complete = ShellComplete(program, {}, "ubunye", "_UBUNYE_COMPLETE")
    assert "leases" in [item.value for item in complete.get_completions([], "")]
    assert "--rerun" in [item.value for item in complete.get_completions(["run", "-d", "x"], "--re")]
    assert "--force" in [item.value for item in complete.get_completions(["leases", "release"], "--")]


def test_folders_that_are_not_there_are_named_with_what_is(shop: Shop) -> None:
    for args, said in (
        (["-d", str(shop.root / "no"), "-u", "shop", "-p", "daily", "-t", "load"], "does not exist"),
        (["-d", str(shop.root), "-u", "shpo", "-p", "daily", "-t", "load"], "did you mean 'shop'?"),
        (["-d", str(shop.root), "-u", "shop", "-p", "dayly", "-t", "load"], "did you mean 'daily'?"),
        (["-d", str(shop.root), "-u", "shop", "-p", "daily"], "there is load"),
    ):
        answer = shop.ubunye("run", *args)
        assert answer.code == 2
        assert said in answer.err


@pytest.mark.parametrize(
    "config",
    [
        "CONFIG: {outputs: {kept: {format: parquet, path: \"{{ ''.__class__.__mro__ }}\"}}}",
        'CONFIG: {outputs: {kept: {format: parquet, path: "{{ nowhere }}"}}}',
        "CONFIG: {outputs: {kept: {fromat: parquet, path: x}}}",
        "CONFIG: {outputs: {../kept: {format: parquet, path: x}}}",
        "CONFIG: [",
        "!!python/object/apply:os.system ['touch /tmp/ubunye-was-here']",
        "",
    ],
)
def test_a_wrong_config_is_one_line(shop: Shop, config: str) -> None:
    (shop.root / "shop/daily/load/config.yaml").write_text(config)
    answer = shop.do("run", "-dt", DAY)
    assert answer.code == 2
    assert len(answer.errors) == 1
    assert not shop.state.exists()
    assert shop.do("validate", "-dt", DAY).code == 2
    assert shop.do("plan", "-dt", DAY).code == 2


def test_a_usage_error_is_a_document_too(shop: Shop) -> None:
    told = shop.do("run", "--wait", "soon", "--json").json
    assert told["status"] == "invalid"
    assert (told["reason"], told["exit_code"]) == ("usage", 2)
    assert "no time span" in told["error"]["what"]
    assert shop.ubunye("run", "--json", "--nonsense").json["exit_code"] == 2


def test_the_environment_is_checked_as_well(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UBUNYE_TAKEOVER_AFTER", "soon")
    answer = shop.do("run", "-dt", DAY)
    assert answer.code == 2
    assert "UBUNYE_TAKEOVER_AFTER" in answer.err
