"""``@task.ubunye``: as the operator, around a plain function.

The function is not called at all where an earlier try of it committed the batch; while another run holds the
batch the task waits in the triggerer.
"""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from airflow.sdk import DAG, task

if TYPE_CHECKING:
    from airflow_provider_ubunye.api import BatchRun

HERE = Path(__file__).parent

with DAG(
    "ubunye_decorator",
    schedule="@daily",
    start_date=datetime.datetime(2026, 11, 1, tzinfo=datetime.UTC),
    catchup=False,
    tags=["ubunye"],
) as dag:

    @task.ubunye(task="shop/daily/customers", usecase_dir=str(HERE / "pipelines"), retries=2)
    def load_customers(run: BatchRun, ds: str | None = None) -> None:
        """Append a day's new customers."""
        import pandas as pd

        customers = pd.DataFrame({"dt": ds, "name": ["Ama", "Ben", "Chidi"]})
        run.append(customers, HERE / "lake" / "customers", partition_by=["dt"])

    load_customers()

if __name__ == "__main__":
    dag.test(logical_date=datetime.datetime(2026, 11, 1, tzinfo=datetime.UTC))
