from __future__ import annotations

from pathlib import Path

import pytest

from airflow_provider_ubunye.core.errors import ConfigError
from airflow_provider_ubunye.core.specs import InputSpec, OutputSpec
from airflow_provider_ubunye.tasks.folder import TaskFolder
from airflow_provider_ubunye.tasks.paths import check_inputs, check_outputs, resolve_path

BASE = Path("/pipelines/shop/daily/load")


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("out", "/pipelines/shop/daily/load/out"),
        ("./out/", "/pipelines/shop/daily/load/out"),
        ("../shared/./out", "/pipelines/shop/daily/shared/out"),
        ("/lake//orders/", "/lake/orders"),
        ("data/*.csv", "/pipelines/shop/daily/load/data/*.csv"),
        ("file:///lake/x", "/lake/x"),
        ("file:/lake/x", "/lake/x"),
        ("FILE://localhost/lake/x", "/lake/x"),
        ("a b/é", "/pipelines/shop/daily/load/a b/é"),
        ("x/~y", "/pipelines/shop/daily/load/x/~y"),
    ],
)
def test_paths(text: str, path: str) -> None:
    assert resolve_path(text, BASE, "K") == path


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "is empty"),
        (" \t", "is empty"),
        ("/lake ", "is padded"),
        ("/la\0ke", "has a control character"),
        ("/la\nke", "has a control character"),
        ("/la\udcffke", "has a control character"),
        ("~/lake", "'~' is not expanded"),
        ("~ama/lake", "'~' is not expanded"),
        ("s3://b/x", r"object storage \(s3://\)"),
        ("S3A://b/x", r"object storage \(s3a://\)"),
        ("gs://b/x", r"object storage \(gs://\)"),
        ("hdfs://n/x", "hdfs:// isn't built yet"),
        ("dbfs:/x", "dbfs:// isn't built yet"),
        ("https://x/y", "https:// isn't built yet"),
        ("file://host/x", "isn't a plain one"),
        ("file:///a%20b", "isn't a plain one"),
        ("secret://env/X", "can't be a secret"),
    ],
)
def test_what_is_no_path(text: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said) as caught:
        resolve_path(text, BASE, "CONFIG.outputs.o.path")
    assert caught.value.what.startswith("CONFIG.outputs.o.path")


def outputs(*entries: tuple[str, str]) -> list[OutputSpec]:
    return [OutputSpec(f"o{i}", "parquet", path, mode) for i, (path, mode) in enumerate(entries)]


def folder(tmp_path: Path) -> TaskFolder:
    return TaskFolder(tmp_path, "shop", "daily", "load")


@pytest.mark.parametrize(
    ("entries", "said"),
    [
        ([("/l/a", "append"), ("/l/a", "overwrite")], "o0 and o1 write to one folder /l/a"),
        ([("/l/a", "overwrite"), ("/l/a", "overwrite")], "write to one folder"),
        ([("/l/a", "errorifexists"), ("/l/a", "append")], "write to one folder"),
        ([("/l", "overwrite"), ("/l/b", "append"), ("/l/a", "append")], "which overwrite replaces"),
        ([("/l/a/b", "append"), ("/l/a", "overwrite_partitions")], "which overwrite_partitions replaces"),
    ],
)
def test_outputs_that_harm_each_other(tmp_path: Path, entries: list[tuple[str, str]], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        check_outputs(outputs(*entries), folder(tmp_path))


@pytest.mark.parametrize(
    "entries",
    [
        [("/l/a", "append"), ("/l/a", "append")],
        [("/l/a", "overwrite"), ("/l/ab", "overwrite")],
        [("/l/a", "append"), ("/l/a/b", "overwrite")],
        [("/l", "append"), ("/l/b", "append")],
    ],
)
def test_outputs_that_get_on(tmp_path: Path, entries: list[tuple[str, str]]) -> None:
    check_outputs(outputs(*entries), folder(tmp_path))


def test_two_names_of_one_folder_are_one(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    entries = outputs((f"{tmp_path}/real/x", "overwrite"), (f"{tmp_path}/link/x", "append"))
    with pytest.raises(ConfigError, match="one folder"):
        check_outputs(entries, folder(tmp_path))


def test_an_output_is_never_the_task_or_the_state(tmp_path: Path) -> None:
    task = folder(tmp_path)
    for mode in ("append", "overwrite"):
        with pytest.raises(ConfigError, match="holds the task itself"):
            check_outputs(outputs((str(task.path), mode)), task)
        for place in (".ubunye", ".ubunye/leases/x"):
            with pytest.raises(ConfigError, match="folder of the state"):
                check_outputs(outputs((str(tmp_path / place), mode)), task)
    with pytest.raises(ConfigError, match="holds the task itself"):
        check_outputs(outputs((str(tmp_path), "overwrite")), task)
    check_outputs(outputs((str(tmp_path), "append")), task)
    check_outputs(outputs((str(task.path / "out"), "overwrite")), task)


@pytest.mark.parametrize(
    ("source", "mode", "columns"),
    [
        ("/l/a", "append", []),
        ("/l", "errorifexists", []),
        ("/l/*", "append", []),
        ("/l/[ab]/", "append", []),
        ("/l/{a,b}", "append", []),
        ("/**/*.csv", "append", []),
        ("/l/a/*.csv", "overwrite", []),
        ("/l/a/*", "append", ["dt"]),
        ("/l/a/*/part-*.csv", "overwrite_partitions", ["dt"]),
    ],
)
def test_an_output_in_what_an_input_reads(source: str, mode: str, columns: list[str]) -> None:
    output = OutputSpec("o", "csv", "/l/a", mode, tuple(columns))
    with pytest.raises(ConfigError) as error:
        check_inputs([InputSpec("i", "csv", source)], [output])
    assert error.value.what == f"CONFIG.outputs.o.path: /l/a lies in what the input 'i' reads, {source}"


@pytest.mark.parametrize("source", ["/l/a/b", "/l/a/b.csv", "/l/a/*/b.csv", "/l/a/x=1/**"])
def test_an_overwrite_of_what_an_input_reads(source: str) -> None:
    inputs = [InputSpec("i", "csv", source)]
    with pytest.raises(ConfigError, match="overwrite would remove what the input 'i' reads"):
        check_inputs(inputs, [OutputSpec("o", "csv", "/l/a", "overwrite")])
    check_inputs(inputs, [OutputSpec("o", "parquet", "/l/a", "append")])


@pytest.mark.parametrize(
    ("source", "file_format"),
    [
        ("/l/b", "csv"),
        ("/l/ab", "csv"),
        ("/l/a.csv", "csv"),
        ("/l/*.csv", "csv"),
        ("/l/b*", "csv"),
        ("/l/{b,c}", "csv"),
        ("/l/a/*.json", "csv"),
        ("/l/*/orders.csv", "csv"),
        ("/l/a/dt=2026-10-31", "csv"),
        ("/l/a", "own"),
    ],
)
def test_inputs_beside_an_output(source: str, file_format: str) -> None:
    outputs = [OutputSpec("o", "csv", "/l/a", "overwrite_partitions", ("dt",))]
    check_inputs([InputSpec("i", file_format, source)], outputs)


def test_a_wildcard_does_not_find_a_hidden_output() -> None:
    check_inputs([InputSpec("i", "csv", "/l/*")], [OutputSpec("o", "csv", "/l/_a")])
    with pytest.raises(ConfigError, match="lies in what"):
        check_inputs([InputSpec("i", "csv", "/*/_a")], [OutputSpec("o", "csv", "/l/_a")])


def test_links_are_followed_to_the_first_wildcard(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    with pytest.raises(ConfigError, match="lies in what"):
        check_inputs(
            [InputSpec("i", "csv", f"{tmp_path}/link/*")], [OutputSpec("o", "csv", f"{tmp_path}/real/x")]
        )
