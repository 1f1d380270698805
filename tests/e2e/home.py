"""One of several Airflows that share a state folder: runs DAGs by ``dag.test()``, in step with the others.

Arguments: its name, how many there are, the folder where they meet, the file of the DAGs, and a JSON list of
[dag id, date]. What became of a round stands in ``<folder>/<round>.<name>.json``.
"""

from __future__ import annotations

import datetime
import json
import runpy
import sys
import time
from pathlib import Path


def meet(folder: Path, number: int, name: str, count: int) -> None:
    """Go on when all have come this far, so that they start at once."""
    (folder / f"{number}.{name}.here").touch()
    end = time.monotonic() + 120
    while len(list(folder.glob(f"{number}.*.here"))) < count:
        if time.monotonic() > end:
            raise SystemExit(f"round {number}: the others did not come")
        time.sleep(0.001)


def main() -> None:
    name, count, folder = sys.argv[1], int(sys.argv[2]), Path(sys.argv[3])
    dags = runpy.run_path(sys.argv[4])["DAGS"]
    for number, (dag_id, date) in enumerate(json.loads(sys.argv[5])):
        meet(folder, number, name, count)
        day = datetime.datetime.fromisoformat(date).replace(tzinfo=datetime.UTC)
        (ti,) = dags[dag_id].test(logical_date=day).get_task_instances()
        partial = folder / f"{number}.{name}.partial"
        partial.write_text(json.dumps({"state": str(ti.state), "name": name}))
        partial.rename(folder / f"{number}.{name}.json")


if __name__ == "__main__":
    main()
