"""The scenarios, each with the bound up to which the default test run explores it."""

from __future__ import annotations

from airflow_provider_ubunye.core.request import RELEASE, RERUN, RESUME
from tests.core.model.explore import Budget
from tests.core.model.scenario import LOST, OUT, Actor, Job, Output, Scenario

DAY = Job()
PARTS = Job(outputs=(Output(parts=("region=1", "region=2")),))
TWO = Job(
    outputs=(Output(name="a", folder="lake/a", parts=("",)), Output(name="b", folder="lake/b", parts=("",)))
)
ONE = Job(outputs=(Output(parts=("",)),))
OTHER_DAY = Job(dt="2026-11-02", outputs=(Output(parts=("",)),))
UNNAMED = Job(dt=None, outputs=(Output(parts=("",)),))
OVERWRITE = Job(outputs=(Output("overwrite", parts=("",)),))
BY_PARTITION = Job(outputs=(Output("overwrite_partitions", parts=("region=1",)),))
NEXT_DAY = Job(dt="2026-11-02", outputs=(Output(),))

SCENARIOS = (
    Scenario("two plain runs", (Actor("A", ONE), Actor("B", ONE)), Budget(2, 0, 1, 0)),
    Scenario("two files, one run killed", (Actor("A", DAY), Actor("B", DAY)), Budget(2, 1, 0, 0)),
    Scenario("killed after it woke", (Actor("A", ONE), Actor("B", ONE)), Budget(1, 1, 1, 0)),
    Scenario("takers killed too", (Actor("A", ONE), Actor("B", ONE), Actor("C", ONE)), Budget(0, 2, 0, 0)),
    Scenario(
        "staged in the output, partitions",
        (Actor("A", PARTS), Actor("B", PARTS)),
        Budget(1, 0, 1, 0),
        shared_disk=False,
    ),
    Scenario("partitions, killed", (Actor("A", PARTS), Actor("B", PARTS)), Budget(0, 2, 0, 0)),
    Scenario("two outputs", (Actor("A", TWO), Actor("B", TWO)), Budget(1, 0, 1, 0)),
    Scenario("two outputs, killed", (Actor("A", TWO), Actor("B", TWO)), Budget(0, 2, 0, 0)),
    Scenario("three runs", (Actor("A", ONE), Actor("B", ONE), Actor("C", ONE)), Budget(1, 0, 2, 0)),
    Scenario(
        "a sleeper beside a rerun",
        (Actor("A", ONE), Actor("B", ONE), Actor("C", ONE, RERUN)),
        Budget(1, 0, 1, 0),
    ),
    Scenario(
        "two reruns",
        (Actor("A", ONE, RERUN), Actor("B", ONE, RERUN)),
        Budget(1, 1, 1, 0),
        before=(Actor("P", ONE),),
    ),
    Scenario(
        "a rerun killed, then resumed",
        (Actor("A", ONE, RERUN), Actor("B", ONE, RESUME)),
        Budget(1, 1, 1, 0),
        before=(Actor("P", ONE),),
    ),
    Scenario(
        "a rerun that fails",
        (Actor("A", ONE, RERUN, fails=True), Actor("B", ONE, RERUN)),
        Budget(1, 1, 0, 0),
        before=(Actor("P", ONE),),
    ),
    Scenario("released by hand", (Actor("A", ONE), Actor("R", ONE, RELEASE)), Budget(1, 1, 1, 0)),
    Scenario(
        "released by hand, then run again",
        (Actor("A", ONE), Actor("R", ONE, RELEASE), Actor("B", ONE)),
        Budget(1, 0, 1, 0),
    ),
    Scenario(
        "an answer lost during a takeover",
        (Actor("A", ONE), Actor("B", ONE)),
        Budget(1, 0, 1, 1),
        losses=LOST,
    ),
    Scenario("the store away", (Actor("A", ONE), Actor("B", ONE)), Budget(1, 0, 0, 1), losses=OUT),
    Scenario(
        "answers lost of a rerun", (Actor("A", ONE, RERUN),), Budget(0, 0, 0, 2), before=(Actor("P", ONE),)
    ),
    Scenario("unnamed", (Actor("A", UNNAMED), Actor("B", UNNAMED)), Budget(1, 1, 0, 0)),
    Scenario(
        "overwrite",
        (Actor("A", OVERWRITE), Actor("B", OVERWRITE)),
        Budget(1, 0, 1, 0),
        before=(Actor("P", OVERWRITE),),
        strangers=("lake/orders/old.csv",),
    ),
    Scenario(
        "overwrite, killed",
        (Actor("A", OVERWRITE), Actor("B", OVERWRITE)),
        Budget(1, 1, 0, 0),
        before=(Actor("P", OVERWRITE),),
        strangers=("lake/orders/old.csv",),
    ),
    Scenario(
        "overwrite_partitions",
        (Actor("A", BY_PARTITION), Actor("B", BY_PARTITION)),
        Budget(1, 1, 0, 0),
        before=(Actor("P", BY_PARTITION),),
    ),
    Scenario(
        "overwrite beside an append",
        (Actor("A", OVERWRITE), Actor("B", NEXT_DAY)),
        Budget(2, 0, 0, 0),
        expected=frozenset({"LandingFailed"}),
    ),
    Scenario(
        "overwrite beside an append that dies",
        (Actor("A", OVERWRITE), Actor("B", NEXT_DAY)),
        Budget(1, 1, 0, 0),
        expected=frozenset({"LandingFailed"}),
    ),
    Scenario(
        "two batches into one new folder",
        (Actor("A", ONE), Actor("B", OTHER_DAY, fails=True)),
        Budget(2, 0, 0, 0),
    ),
)


def named(name: str) -> Scenario:
    """A scenario by its name."""
    return next(s for s in SCENARIOS if s.name == name)
