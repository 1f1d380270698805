"""What a rerun replaces beside what its own overwrites list, and what a run says of what it replaced."""

from __future__ import annotations

import logging
from dataclasses import replace

from airflow_provider_ubunye.core import messages
from airflow_provider_ubunye.core.decide import appends
from airflow_provider_ubunye.core.outcome import Outcome
from airflow_provider_ubunye.core.setting import Setting
from airflow_provider_ubunye.core.state import REPLACED, Debt, Finished, Written
from airflow_provider_ubunye.core.takeback import OLDER_RUN, Settled

logger = logging.getLogger("airflow_provider_ubunye")


def not_listed(earlier: list[Debt], listed: list[Debt]) -> list[Debt]:
    """The earlier run's files without those that an overwrite of this run lists already."""
    seen = {(debt.output.place, claim.final) for debt in listed for claim in debt.output.claims}
    debts = []
    for debt in earlier:
        claims = tuple(c for c in debt.output.claims if (debt.output.place, c.final) not in seen)
        debts.append(replace(debt, output=replace(debt.output, claims=claims)))
    return debts


def name_of(debt: Debt, done: Finished) -> str:
    """The run that wrote what a rerun replaces: the debt's, but for an older Ubunye's, which has another id."""
    return done.run if debt.run in (None, OLDER_RUN) else debt.run


def say_what_is_replaced(setting: Setting, done: Finished, debts: list[Debt]) -> None:
    """Say before anything is written what is there of the earlier run, and what can't be replaced."""
    found = 0
    for debt in debts:
        path = setting.places.path(debt.output.place)
        there = sum(setting.disk.look(f"{path}/{c.final}") is not None for c in debt.output.claims)
        found += there
        if missing := len(debt.output.claims) - there:
            logger.warning("--rerun: %s", messages.gone(missing, name_of(debt, done), path))
    logger.info(
        "--rerun: replacing the batch written by run %s (finished %s); its %s removed once this run succeeds.",
        messages.who(done.run),
        done.at,
        f"{messages.count(found, 'file')} {'is' if found == 1 else 'are'}",
    )
    again = [o.name for o in done.outputs if o.kind == "named"]
    if again:
        logger.warning("--rerun: %s can't be taken back, so the batch is added again.", ", ".join(again))


def say_what_was_replaced(setting: Setting, settled: Settled, earlier: Finished | None) -> None:
    """Say after the commit what was removed: for each overwrite what stood there, for a rerun the earlier batch.

    :param earlier: what a rerun replaced, None for another run.
    """
    replaced = [(debt, removed) for debt, removed in settled.counts if debt.why == REPLACED]
    overwritten = [(debt, removed) for debt, removed in replaced if debt.run is None]
    for debt, removed in overwritten:
        logger.info(
            "Overwrote %s: removed %s that stood in %s.",
            debt.output.name,
            messages.count(removed, "file"),
            setting.places.path(debt.output.place),
        )
    if earlier is None:
        return
    runs: dict[str, int] = {}
    for debt, removed in replaced:
        if debt.run is not None and debt.output.claims:
            run = name_of(debt, earlier)
            runs[run] = runs.get(run, 0) + removed
    if not runs and not overwritten:
        runs[earlier.run] = 0
    for run, removed in runs.items():
        logger.info(
            "Replaced the batch: removed %s of run %s.", messages.count(removed, "file"), messages.who(run)
        )


def say_what_is_empty(outcome: Outcome, written: list[Written]) -> None:
    """Warn of outputs to which a named batch added nothing: its next plain run will be refused all the same."""
    for output in written:
        rows = outcome.rows.get(output.name, len(output.claims))
        if appends(output.mode) and output.kind == "files" and not rows:
            logger.warning(
                "%s: 0 rows were written; the batch counts as finished: when the data comes, run it with --rerun",
                output.name,
            )
