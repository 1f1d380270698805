"""What ``ubunye init`` writes: a task that runs at once, on pandas and on Spark alike."""

from __future__ import annotations

from pathlib import Path

from airflow_provider_ubunye.core.errors import UsageError
from airflow_provider_ubunye.tasks.folder import TaskFolder

_CONFIG = """\
MODEL: etl
VERSION: "0.1.0"
CONFIG:
  # A relative path starts at this folder. {{ dt }}, {{ mode }}, {{ env.NAME }} and every --var work in values.
  inputs:
    orders:
      format: csv
      path: data/orders.csv
  transform:
    params:
      smallest: 1
  outputs:
    large_orders:
      format: parquet
      # A folder of its own for each mode: DEV runs never mix with PROD ones.
      path: "output/{{ mode | lower }}/large_orders"
      mode: append
"""

_TRANSFORMATIONS = '''\
"""The task's own code."""


def transform(sources, context):
    """Return a frame for each output of config.yaml.

    sources: a frame by the name of each input.
    context: the run: dt, dtf, mode, variables, params, task, task_dir.
    """
    orders = sources["orders"]
    return {"large_orders": orders[orders["amount"] >= context.params["smallest"]]}
'''

_ORDERS = """\
order_id,customer,amount
1,Ama,12.50
2,Ben,0.40
3,Chidi,7.00
4,Dina,31.20
"""


def write_task(folder: TaskFolder) -> list[Path]:
    """Write the task's files and return their paths.

    :raises UsageError: one of them is there already, or can't be made; nothing is ever written over. Where one
        appears between the look and the writing, the files written so far stay.
    """
    files = {
        folder.config_path: _CONFIG,
        folder.transformations_path: _TRANSFORMATIONS,
        folder.path / "data" / "orders.csv": _ORDERS,
    }
    for path in files:
        if path.exists() or path.is_symlink():
            raise UsageError(
                f"{folder.name} has a {path.name} already; nothing was written",
                where=str(path),
                hint="choose another task name",
            )
    for path, text in files.items():
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("x", encoding="utf-8", newline="\n") as file:
                file.write(text)
        except OSError as error:
            raise UsageError(f"{path.name} can't be written: {error.strerror}", where=str(path)) from error
    return list(files)
