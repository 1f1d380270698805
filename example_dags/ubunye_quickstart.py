"""A task folder's task, once a day.

Clear it, retry it, kill it, trigger the day again: its rows are there once.
"""

from __future__ import annotations

import datetime
from pathlib import Path

from airflow.sdk import DAG

from airflow_provider_ubunye import UbunyeTaskOperator

with DAG(
    "ubunye_quickstart",
    schedule="@daily",
    start_date=datetime.datetime(2026, 11, 1, tzinfo=datetime.UTC),
    catchup=False,
    tags=["ubunye"],
) as dag:
    # dt is the logical date: the schedule is daily.
    UbunyeTaskOperator(
        task_id="load_orders",
        task="shop/daily/load_orders",
        usecase_dir=str(Path(__file__).parent / "pipelines"),
        retries=2,
        retry_delay=datetime.timedelta(seconds=10),
    )

if __name__ == "__main__":
    dag.test(logical_date=datetime.datetime(2026, 11, 1, tzinfo=datetime.UTC))
