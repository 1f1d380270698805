"""Runs example DAGs by ``dag.test()`` in one process and prints what became of each, one JSON line a run.

Arguments: the folder of the DAGs, and a JSON list of [dag id, logical date, conf].
"""

from __future__ import annotations

import contextlib
import datetime
import io
import json
import runpy
import sys
from pathlib import Path
from typing import Any


def run(folder: Path, dag_id: str, date: str, conf: dict[str, Any] | None) -> dict[str, Any]:
    from airflow.models.xcom import XComModel
    from airflow.utils.session import create_session

    dag = runpy.run_path(str(folder / f"{dag_id}.py"))["dag"]
    dag_run = dag.test(logical_date=datetime.datetime.fromisoformat(date), run_conf=conf)
    with create_session() as session:
        values = XComModel.get_many(run_id=dag_run.run_id, dag_ids=dag_id, key="return_value")
        rows: list[Any] = list(session.scalars(values))
        found = {f"{x.task_id}[{x.map_index}]": XComModel.deserialize_value(x) for x in rows}
    return {
        "states": {f"{ti.task_id}[{ti.map_index}]": str(ti.state) for ti in dag_run.get_task_instances()},
        "tries": {f"{ti.task_id}[{ti.map_index}]": ti.try_number for ti in dag_run.get_task_instances()},
        "xcom": found,
    }


def main() -> None:
    folder, runs = Path(sys.argv[1]), json.loads(sys.argv[2])
    results = []
    with contextlib.redirect_stdout(io.StringIO()):
        for dag_id, date, conf in runs:
            results.append(run(folder, dag_id, date, conf))
    for result in results:
        print(json.dumps(result))


if __name__ == "__main__":
    main()
