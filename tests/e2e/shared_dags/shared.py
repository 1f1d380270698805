"""DAGs that several Airflows run on one state folder."""

from __future__ import annotations

import datetime
from typing import Any

from airflow.sdk import DAG

from airflow_provider_ubunye import UbunyeTaskOperator

START = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
WORDS: dict[str, dict[str, Any]] = {
    "fails": {"on_held": "fail"},
    "waits": {"on_held": "defer", "on_finished": "skip", "poll_interval": 0.5},
}
DAGS: dict[str, DAG] = {}
for dag_id, words in WORDS.items():
    with DAG(dag_id, schedule="@daily", start_date=START, catchup=False) as made:
        UbunyeTaskOperator(task_id="load", task="shop/daily/load_orders", retries=0, **words)
    DAGS[dag_id] = made
