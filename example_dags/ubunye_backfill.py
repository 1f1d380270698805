r"""Days that can be loaded again, on purpose.

A plain run of a finished day is refused. After a correction, ask for a rerun, of one day by the param in the
trigger form, or of many by a backfill::

    airflow backfill create --dag-id ubunye_backfill --from-date 2026-11-01 --to-date 2026-11-07 \
        --reprocess-behavior completed --dag-run-conf '{"ubunye": {"rerun": true}}'

The new rows land, then the earlier run's go: a reader never misses the day.
"""

from __future__ import annotations

import datetime
from pathlib import Path

from airflow.sdk import DAG, Param

from airflow_provider_ubunye import UbunyeTaskOperator

with DAG(
    "ubunye_backfill",
    schedule="@daily",
    start_date=datetime.datetime(2026, 11, 1, tzinfo=datetime.UTC),
    catchup=False,
    params={"ubunye_rerun": Param(False, type="boolean", description="Replace a day that is finished.")},
    tags=["ubunye"],
) as dag:
    UbunyeTaskOperator(
        task_id="load_orders",
        task="shop/daily/load_orders",
        usecase_dir=str(Path(__file__).parent / "pipelines"),
    )

if __name__ == "__main__":
    dag.test(logical_date=datetime.datetime(2026, 11, 1, tzinfo=datetime.UTC))
