"""A batch for each hour: the day in ``dt``, the hour in a variable, as ``ubunye run`` has ``--var hour=13``.

Both name the batch: the hours of a day never refuse each other, and the shell means the same batch.
"""

from __future__ import annotations

import datetime
from pathlib import Path

from airflow.sdk import DAG

from airflow_provider_ubunye import UbunyeTaskOperator

with DAG(
    "ubunye_hourly",
    schedule="@hourly",
    start_date=datetime.datetime(2026, 11, 1, tzinfo=datetime.UTC),
    catchup=False,
    tags=["ubunye"],
) as dag:
    UbunyeTaskOperator(
        task_id="load_orders",
        task="shop/hourly/load_orders",
        usecase_dir=str(Path(__file__).parent / "pipelines"),
        dt="{{ ds }}",
        variables={"hour": "{{ logical_date.strftime('%H') }}"},
    )

if __name__ == "__main__":
    dag.test(logical_date=datetime.datetime(2026, 11, 1, 13, tzinfo=datetime.UTC))
