"""Four orders of a day, and what a test asks of the run meanwhile."""

import os
import time
from pathlib import Path
from typing import Any

import pandas as pd

from airflow_provider_ubunye import TaskContext


def transform(sources: dict[str, Any], context: TaskContext) -> dict[str, Any]:
    control = context.usecase_dir.parent / "control"
    if once(control, context.dt, "fail"):
        raise ValueError("the feed is not complete")
    if once(control, context.dt, "hold"):
        partial = control / f"{context.dt}.pid.partial"
        partial.write_text(f"{os.getpid()} {os.getppid()}")
        partial.rename(control / f"{context.dt}.pid")
        while not (control / f"{context.dt}.go").exists():
            time.sleep(0.05)
    return {"orders": pd.DataFrame({"dt": context.dt, "region": ["eu", "eu", "us", "us"], "id": range(4)})}


def once(control: Path, dt: str | None, word: str) -> bool:
    """Whether the test asked for this, and nobody has done it yet."""
    try:
        (control / f"{dt}.{word}").unlink()
    except FileNotFoundError:
        return False
    return True
