"""What a rerun replaces, beside what its own overwrites list."""

from __future__ import annotations

import logging
from dataclasses import replace

from airflow_provider_ubunye.core import messages
from airflow_provider_ubunye.core.setting import Setting
from airflow_provider_ubunye.core.state import Debt, Finished

logger = logging.getLogger("airflow_provider_ubunye")


def not_listed(earlier: list[Debt], listed: list[Debt]) -> list[Debt]:
    """The earlier run's files without those that an overwrite of this run lists already."""
    seen = {(debt.output.place, claim.final) for debt in listed for claim in debt.output.claims}
    debts = []
    for debt in earlier:
        claims = tuple(c for c in debt.output.claims if (debt.output.place, c.final) not in seen)
        debts.append(replace(debt, output=replace(debt.output, claims=claims)))
    return debts


def say_what_is_replaced(setting: Setting, done: Finished, debts: list[Debt]) -> None:
    """Say before anything is written what is there of the earlier run, and what can't be replaced."""
    found = missing = 0
    for debt in debts:
        path = setting.places.path(debt.output.place)
        there = sum(setting.disk.look(f"{path}/{c.final}") is not None for c in debt.output.claims)
        found, missing = found + there, missing + len(debt.output.claims) - there
    gone = f", {missing} are no longer there" if missing else ""
    logger.info(
        "--rerun: replacing the batch written by run %s (finished %s); its %d file(s) are removed once this run "
        "succeeds%s.",
        messages.who(done.run),
        done.at,
        found,
        gone,
    )
    again = [o.name for o in done.outputs if o.kind == "named"]
    if again:
        logger.warning("--rerun: %s can't be taken back, so the batch is added again.", ", ".join(again))
