"""The hook in a TaskFlow function: a lease around any code that makes a frame. No task folder is needed."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

from airflow.sdk import DAG, task

from airflow_provider_ubunye import UbunyeHook

HERE = Path(__file__).parent

with DAG(
    "ubunye_taskflow",
    schedule="@daily",
    start_date=datetime.datetime(2026, 11, 1, tzinfo=datetime.UTC),
    catchup=False,
    tags=["ubunye"],
) as dag:

    @task(retries=2)
    def load_totals(ds: str | None = None) -> dict[str, Any]:
        """Append a day's totals."""
        import pandas as pd

        with UbunyeHook().run("shop/daily/totals", dt=ds, usecase_dir=str(HERE / "pipelines")) as run:
            totals = pd.DataFrame({"dt": [ds, ds], "region": ["eu", "us"], "amount": [12.9, 38.2]})
            run.append(totals, HERE / "lake" / "totals", partition_by=["dt"])
        return {"run": run.id, "rows": run.outcome.rows}

    load_totals()

if __name__ == "__main__":
    dag.test(logical_date=datetime.datetime(2026, 11, 1, tzinfo=datetime.UTC))
