from __future__ import annotations

import dataclasses
import json
import subprocess
import sys
from importlib.metadata import EntryPoint, EntryPoints
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from airflow_provider_ubunye.core.errors import ConfigError, UsageError
from airflow_provider_ubunye.core.specs import InputSpec, OutputSpec
from airflow_provider_ubunye.tasks.config import ENTRY_POINTS, TaskConfig, config_digest, load_config
from airflow_provider_ubunye.tasks.folder import TaskFolder
from airflow_provider_ubunye.tasks.secrets import Redactor
from tests.tasks.conftest import CONFIG, MakeTask

DT = {"dt": "2026-11-01"}


def document(**config: Any) -> dict[str, Any]:
    base = {"outputs": {"loaded": {"format": "parquet", "path": "output/loaded"}}}
    return {"MODEL": "etl", "CONFIG": {**base, **config}}


def load(
    make_task: MakeTask, content: Any, variables: dict[str, object] | None = None, **more: Any
) -> TaskConfig:
    text = content if isinstance(content, str) else yaml.safe_dump(content, sort_keys=False)
    return load_config(make_task(config=text), DT if variables is None else variables, **more)


def output(**entry: Any) -> dict[str, Any]:
    return document(outputs={"loaded": {"format": "parquet", "path": "out", **entry}})


def refused(make_task: MakeTask, content: Any, **more: Any) -> ConfigError:
    with pytest.raises(ConfigError) as caught:
        load(make_task, content, **more)
    assert "\n" not in caught.value.what
    assert caught.value.where is not None
    assert caught.value.where.endswith("config.yaml")
    return caught.value


FULL = """\
MODEL: etl
VERSION: "0.1.0"
CONFIG:
  inputs:
    orders:
      format: CSV
      path: "data/{{ dt }}/*.csv"
      options: {header: true, sep: ";", password: secret://env/PW}
  transform:
    params: {smallest: 1, who: "{{ env.WHO }}"}
  outputs:
    loaded:
      format: parquet
      path: "{{ usecase_dir }}/lake/orders"
      mode: Overwrite_Partitions
      partition_by: [dt, region]
      options: {compression: zstd, columns: [a, b]}
    rejected: {format: json, path: output/rejected, mode: null, partition_by: null, options: null}
  batch: [dt]
"""


def test_the_whole_of_it(make_task: MakeTask) -> None:
    redactor = Redactor()
    folder = make_task(config=FULL)
    config = load_config(folder, DT, environ={"WHO": "Amanda"}, redactor=redactor)
    assert config.task == "shop/daily/load_orders"
    assert config.version == "0.1.0"
    assert config.inputs == (
        InputSpec(
            "orders",
            "csv",
            f"{folder.path}/data/2026-11-01/*.csv",
            {"header": True, "sep": ";", "password": "secret://env/PW"},
        ),
    )
    assert config.outputs == (
        OutputSpec(
            "loaded",
            "parquet",
            f"{folder.usecase_dir}/lake/orders",
            "overwrite_partitions",
            ("dt", "region"),
            {"compression": "zstd", "columns": ["a", "b"]},
        ),
        OutputSpec("rejected", "json", f"{folder.path}/output/rejected", "append", (), {}),
    )
    assert config.transform == {"params": {"smallest": 1, "who": "Amanda"}}
    assert config.params == {"smallest": 1, "who": "Amanda"}
    assert config.batch == ("dt",)
    assert config.requires == ()
    assert config.raw == yaml.safe_load(FULL)
    assert config.digest == config_digest(folder)
    assert redactor.mask("Amanda") == "***"
    with pytest.raises(dataclasses.FrozenInstanceError):
        config.batch = None  # type: ignore[misc]


def test_the_least_of_it(make_task: MakeTask) -> None:
    config = load(
        make_task, "CONFIG: {inputs: , transform: {params: }, outputs: {o: {format: csv, path: o}}}"
    )
    assert config.inputs == ()
    assert config.outputs[0].mode == "append"
    assert (config.version, config.batch, config.params) == (None, None, {})
    assert TaskConfig("t", (), ()).params == {}
    assert load(make_task, document(batch=None, requires=None, transform=None)).batch is None


def test_the_digest_is_of_what_is_written_not_of_the_day(make_task: MakeTask) -> None:
    text = FULL.replace("WHO", "HOME")
    first = load(make_task, text, {"dt": "2026-11-01"}).digest
    assert load(make_task, text, {"dt": "2026-11-02"}).digest == first
    assert load(make_task, text.replace("zstd", "snappy")).digest != first


def test_what_an_older_ubunye_wrote(make_task: MakeTask) -> None:
    config = load(
        make_task,
        document(
            inputs={
                "people": {
                    "format": "s3",
                    "file_format": "csv",
                    "path": "{{ task_dir }}/data/people.csv",
                    "options": {"header": "true", "inferSchema": "true"},
                },
                "more": {"format": "S3", "path": "file:///lake/more"},
            },
            transform={},
            requires=[],
            expectations={},
            outputs={
                "adults": {
                    "format": "s3",
                    "file_format": "parquet",
                    "path": "output/adults",
                    "mode": "error",
                    "partitionBy": ["city"],
                    "replace_where": None,
                },
                "one": {"format": "csv", "path": "output/one", "partition_by": "city"},
            },
        ),
    )
    assert [(i.format, Path(i.path).name) for i in config.inputs] == [
        ("csv", "people.csv"),
        ("parquet", "more"),
    ]
    assert config.inputs[0].options == {"header": "true", "inferSchema": "true"}
    assert config.inputs[1].path == "/lake/more"
    adults, one = config.outputs
    assert (adults.format, adults.mode, adults.partition_by) == ("parquet", "errorifexists", ("city",))
    assert one.partition_by == ("city",)


@pytest.mark.parametrize("mode", ["append", "OVERWRITE", " Ignore ", "errorifexists", "overwrite_partitions"])
def test_modes_in_any_case(make_task: MakeTask, mode: str) -> None:
    found = load(make_task, output(mode=mode, partition_by=["region"])).outputs[0]
    assert found.mode == mode.strip().lower()


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ({"MODEL": "etl"}, "CONFIG is missing"),
        ({"CONFIG": "x"}, "CONFIG must be a mapping"),
        ({"CONFIG": {}}, "CONFIG.outputs is missing"),
        (document(outputs={}), "CONFIG.outputs names no output"),
        (document(outputs=["a"]), "CONFIG.outputs must be a mapping of names to values"),
        (document(inputs={"a": "x"}), "CONFIG.inputs.a must be a mapping"),
        (document(outputs={"loaded": {"path": "x"}}), "CONFIG.outputs.loaded.format is missing"),
        (document(inputs={"a": {"format": "csv"}}), "CONFIG.inputs.a.path is missing"),
        (output(path=3), "CONFIG.outputs.loaded.path must be text: put it in quotes"),
        (output(format=3), "CONFIG.outputs.loaded.format must be text"),
        (output(format=" "), "CONFIG.outputs.loaded.format is empty"),
        (output(format="parqet"), "there is no format 'parqet'; did you mean 'parquet'?"),
        (output(mode="apend"), "there is no mode 'apend'; did you mean 'append'?"),
        (output(mode="merge"), "CONFIG.outputs.loaded.mode: merge isn't built yet"),
        (output(mode=3), "CONFIG.outputs.loaded.mode must be text"),
        (output(options=["a"]), "CONFIG.outputs.loaded.options must be a mapping of names to values"),
        (output(partition_by=["a", 3]), "CONFIG.outputs.loaded.partition_by[1] must be text"),
        (output(partition_by=["a", " "]), "CONFIG.outputs.loaded.partition_by has an empty column name"),
        (output(partition_by=["a", "a"]), "CONFIG.outputs.loaded.partition_by names a column twice"),
        (output(partition_by={"a": 1}), "CONFIG.outputs.loaded.partition_by must be a list"),
        (output(partition_by="dt, region"), "CONFIG.outputs.loaded.partition_by is a list: [dt, region]"),
        (
            output(mode="Overwrite_partitions"),
            "CONFIG.outputs.loaded: overwrite_partitions needs partition_by: the columns whose partitions are",
        ),
        (output(mode="overwrite_partitions", partition_by=[]), "overwrite_partitions needs partition_by"),
        (output(partition_by=["a"], partitionBy=["a"]), "has both partition_by and partitionBy"),
        (output(file_format="csv"), "file_format goes with format: s3"),
        ({**document(), "MODEL": "elt"}, "MODEL must be 'etl'"),
        ({"VERSION": 1.1, **document()}, "VERSION must be text: put it in quotes"),
        (document(batch=[]), "CONFIG.batch names no variable"),
        (document(batch=["dt", "dt"]), "CONFIG.batch names a variable twice"),
        (document(batch=["d t"]), "CONFIG.batch has something that is no variable's name"),
        (document(batch="dt"), "CONFIG.batch must be a list"),
        (document(transform={"params": 3}), "CONFIG.transform.params must be a mapping"),
    ],
)
def test_wrong_shapes(make_task: MakeTask, content: dict[str, Any], said: str) -> None:
    assert said in refused(make_task, content).what


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ({**document(), "VERSON": "1"}, "VERSON is not a key of the config; did you mean 'VERSION'?"),
        (document(outptus={}), "CONFIG.outptus is not a key of the config; did you mean 'outputs'?"),
        (
            document(transform={"parms": {}}),
            "CONFIG.transform.parms is not a key of the config; did you mean 'params'?",
        ),
        (document(inputs={"a": {"format": "csv", "path": "x", "pth": "y"}}), "did you mean 'path'?"),
        (output(partition_bye=["a"]), "did you mean 'partition_by'?"),
        (
            document(inputs={"a": {"format": "csv", "path": "x", "mode": "append"}}),
            "CONFIG.inputs.a.mode is not a key",
        ),
    ],
)
def test_unknown_keys(make_task: MakeTask, content: dict[str, Any], said: str) -> None:
    assert said in refused(make_task, content).what


def test_an_option_beside_the_format_gets_the_hint(make_task: MakeTask) -> None:
    assert "under options:" in (refused(make_task, output(header=True)).hint or "")


def test_several_faults_are_counted(make_task: MakeTask) -> None:
    key = "CONFIG.outputs.loaded"
    assert refused(make_task, output(a=1, b=2)).what.count(f"{key}.") == 2
    three = refused(make_task, output(a=1, b=2, c=3)).what
    assert all(f"{key}.{name} is not a key of the config" in three for name in "abc")
    assert "more fault" not in three
    assert refused(make_task, output(a=1, b=2, c=3, d=4)).what.endswith("(and 1 more fault)")
    assert refused(make_task, output(a=1, b=2, c=3, d=4, e=5)).what.endswith("(and 2 more faults)")


def test_a_misspelt_key_is_named_before_what_it_leaves_missing(make_task: MakeTask) -> None:
    error = refused(make_task, {"CONFIG": {"output": {"loaded": {"format": "csv", "path": "x"}}}})
    assert error.what == (
        "CONFIG.output is not a key of the config; did you mean 'outputs'? CONFIG.outputs is missing"
    )


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (document(requires=[{"task": "a/b/c"}]), "CONFIG.requires: upstream checks are not built yet"),
        (
            output(replace_where="dt = 1"),
            "CONFIG.outputs.loaded.replace_where: replace_where is not built yet",
        ),
        (output(merge_keys="id"), "CONFIG.outputs.loaded.merge_keys: merge is not built yet"),
        (output(format="delta"), "the format 'delta' isn't built yet"),
        (output(format="jdbc", url="jdbc:x", table="t"), "the format 'jdbc' isn't built yet"),
        (output(format="s3", file_format="delta"), "the format 'delta' isn't built yet"),
        (document(inputs={"a": {"format": "hive", "table": "t"}}), "the format 'hive' isn't built yet"),
        (
            document(inputs={"a": {"format": "csv", "path": "x", "schema": "a int"}}),
            "schema is not built yet",
        ),
        (document(transform={"type": "noop"}), "CONFIG.transform.type: a named transform is not built yet"),
        (document(expectations={"a": 1}), "CONFIG.expectations: expectations are not built yet"),
        ({**document(), "ENGINE": {"spark_conf": {}}}, "ENGINE: engine settings are not built yet"),
        ({**document(), "ORCHESTRATION": {"type": "airflow"}}, "ORCHESTRATION: orchestration"),
        ({**document(), "MODEL": "ml"}, "MODEL: ml isn't built yet"),
        (output(path="s3://bucket/x"), "object storage (s3://) isn't built yet"),
        (output(path="abfss://c@a/x"), "object storage (abfss://) isn't built yet"),
        (output(path="hdfs://n/x"), "hdfs:// isn't built yet"),
    ],
)
def test_what_is_not_built_says_so(make_task: MakeTask, content: dict[str, Any], said: str) -> None:
    assert said in refused(make_task, content).what


def test_formats_by_entry_point(make_task: MakeTask, monkeypatch: pytest.MonkeyPatch) -> None:
    points = EntryPoints([EntryPoint("Lance", "no.such.module:writer", ENTRY_POINTS)])
    monkeypatch.setattr("importlib.metadata.entry_points", lambda group: points.select(group=group))
    # Only the name is looked up; nothing is loaded.
    assert load(make_task, output(format="Lance")).outputs[0].format == "Lance"
    assert "did you mean 'Lance'?" in refused(make_task, output(format="lence")).what


@pytest.mark.parametrize("name", ["../../x", "/etc", "a\0b", "a\nb", "", ".hidden", " a"])
@pytest.mark.parametrize("section", ["inputs", "outputs"])
def test_names_are_one_path_segment(make_task: MakeTask, name: str, section: str) -> None:
    content = document(**{section: {name: {"format": "csv", "path": "x"}}})
    said = refused(make_task, json.dumps(content)).what
    assert said.startswith(f"CONFIG.{section}")


def test_templates_know_the_run(make_task: MakeTask) -> None:
    content = output(path="{{ usecase_dir }}/{{ mode }}/{{ dt }}/{{ region }}/{{ hour }}")
    folder = make_task(config=yaml.safe_dump(content, sort_keys=False))
    variables = {"dt": "2026-11-01", "mode": "prod", "region": "eu", "hour": 13, "none": None}
    assert load_config(folder, variables).outputs[0].path == f"{folder.usecase_dir}/PROD/2026-11-01/eu/13"


@pytest.mark.parametrize("dt", ["{{ ds }}", "None", "null", "", " 2026-11-01"])
def test_a_date_that_is_none(make_task: MakeTask, dt: str) -> None:
    with pytest.raises(UsageError):
        load(make_task, CONFIG, {"dt": dt})


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("{{ region }}", "CONFIG.outputs.loaded.path: needs --var region=…; given: dt"),
        ("{{ ''.__class__.__mro__ }}", "CONFIG.outputs.loaded.path: not allowed in a template"),
        ("{{ env.__class__ }}", "CONFIG.outputs.loaded.path: not allowed in a template"),
    ],
)
def test_a_template_at_fault_is_one_line_with_its_key(make_task: MakeTask, path: str, said: str) -> None:
    assert refused(make_task, output(path=path)).what.startswith(said)


def test_a_value_of_the_environment_is_not_in_an_error(make_task: MakeTask) -> None:
    environ = {"X": "hunter22"}
    for content in (
        output(mode="{{ env.X }}"),
        output(format="{{ env.X }}"),
        {**document(), "MODEL": "{{ env.X }}"},
        document(batch=["{{ env.X }}-"]),
        output(path="{{ env.X }}://x"),
    ):
        error = refused(make_task, content, environ=environ)
        assert "hunter22" not in "".join([*error.lines(), str(error)])
    error = refused(make_task, output(options={"x": "a secret://{{ env.X }}"}), environ=environ)
    assert "hunter22" not in error.what


def test_secrets_have_their_places(make_task: MakeTask) -> None:
    assert "must be the whole value" in refused(make_task, output(options={"a": ["x secret://env/X"]})).what
    assert (
        "params.a.b: "
        in refused(make_task, document(transform={"params": {"a": {"b": "secret://env"}}})).what
    )
    assert "can't be a secret" in refused(make_task, output(path="secret://env/X")).what
    assert "no place here" in refused(make_task, output(format="secret://env/X")).what
    assert "no place here" in refused(make_task, output(partition_by=["secret://env/X"])).what


def test_a_missing_task_or_config(make_task: MakeTask) -> None:
    folder = make_task(config=None)
    with pytest.raises(ConfigError, match=r"has no config\.yaml"):
        load_config(folder, DT)
    with pytest.raises(UsageError, match="no task 'nope'; there is 'load_orders'"):
        load_config(TaskFolder(folder.usecase_dir, "shop", "daily", "nope"), DT)


keys = st.sampled_from(
    [
        "MODEL",
        "CONFIG",
        "inputs",
        "outputs",
        "format",
        "path",
        "mode",
        "options",
        "batch",
        "transform",
        "params",
        "a",
    ]
)
values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.text(max_size=6)
    | st.sampled_from(["csv", "{{ dt }}", "x"]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(keys, inner, max_size=3),
    max_leaves=12,
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=150, deadline=None)
@given(st.fixed_dictionaries({"CONFIG": values}))
def test_any_document_is_a_config_or_one_line(make_task: MakeTask, content: dict[str, Any]) -> None:
    folder = make_task(config=json.dumps(content))
    try:
        config = load_config(folder, DT)
    except UsageError as error:
        said = error.what
    else:
        said = config.task
    assert "\n" not in said


def test_pydantic_is_imported_only_when_a_config_is_read() -> None:
    script = (
        "import sys; import airflow_provider_ubunye.tasks.config\n"
        "assert not {'pydantic', 'yaml', 'jinja2'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", script], check=True)
