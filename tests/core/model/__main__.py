"""Explores scenarios up to a larger bound than the tests do::

    python -m tests.core.model --bound 3,1,1,0 [--only "two reruns"] [--limit 500000]

The bound is preemptions, kills, misjudged runs, lost answers. Exit 1 when an invariant is broken; the schedule
that breaks it is printed.
"""

from __future__ import annotations

import argparse
import gc
import sys

from tests.core.model.check import check
from tests.core.model.explore import Budget
from tests.core.model.scenarios import SCENARIOS


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.core.model", description=__doc__)
    parser.add_argument("--bound", help="preemptions,kills,misjudged,losses; each scenario's own by default")
    parser.add_argument("--only", default="", help="scenarios whose name holds this text")
    parser.add_argument("--limit", type=int, help="the most executions of one scenario")
    asked = parser.parse_args()
    bound = None if asked.bound is None else Budget(*map(int, asked.bound.split(",")))
    gc.disable()  # nothing here is freed by it but between scenarios, and it would look at every state again
    broken = 0
    for scenario in SCENARIOS:
        if asked.only in scenario.name:
            checked = check(scenario, bound, asked.limit)
            print(checked.line(), flush=True)
            if checked.violation is not None:
                print(checked.violation)
                broken += 1
            gc.collect()
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
