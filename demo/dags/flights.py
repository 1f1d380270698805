"""The flights, a day to a DAG run: the same task folder that the shell runs."""

from __future__ import annotations

import datetime
from pathlib import Path

from airflow.sdk import DAG

from airflow_provider_ubunye import UbunyeTaskOperator

with DAG(
    "flights",
    schedule="@daily",
    start_date=datetime.datetime(2013, 1, 1, tzinfo=datetime.UTC),
    end_date=datetime.datetime(2013, 12, 31, 23, tzinfo=datetime.UTC),
    # The feed's days are long past: they are loaded by backfills and by hand.
    catchup=False,
):
    # dt is the logical date, for the schedule is daily. What isn't said: on_finished="fail", on_clear="fail".
    UbunyeTaskOperator(
        task_id="load_flights",
        task="air/daily/load_flights",
        usecase_dir=str(Path(__file__).resolve().parents[1] / "pipelines"),
        retries=2,
        retry_delay=datetime.timedelta(seconds=2),
    )
