"""Dynamic task mapping: a batch for each region, named by a variable. Regions run side by side."""

from __future__ import annotations

import datetime
from pathlib import Path

from airflow.sdk import DAG, task

from airflow_provider_ubunye import UbunyeTaskOperator

with DAG(
    "ubunye_regions",
    schedule="@daily",
    start_date=datetime.datetime(2026, 11, 1, tzinfo=datetime.UTC),
    catchup=False,
    tags=["ubunye"],
) as dag:

    @task
    def regions() -> list[dict[str, str]]:
        """What there is to load today."""
        return [{"region": "eu"}, {"region": "us"}]

    UbunyeTaskOperator.partial(
        task_id="load_region",
        task="shop/daily/load_region",
        usecase_dir=str(Path(__file__).parent / "pipelines"),
        retries=2,
    ).expand(variables=regions())

if __name__ == "__main__":
    dag.test(logical_date=datetime.datetime(2026, 11, 1, tzinfo=datetime.UTC))
