"""The situations that the outcome is measured in."""

from dataclasses import dataclass
from pathlib import Path

POLICIES = Path(__file__).with_name("policies")


@dataclass(frozen=True)
class Scenario:
    """One situation.

    Attributes:
        name: On the command line.
        about: What it is, in a line.
        policy: The policy of the program.
        pods: How many.
        half: Whether they are placed on half of the nodes, and the other half is opened then.
        spread: How uneven what pods use is; see `make_load`.
        cycles: How many, unless configured otherwise.
        varies: By which share what pods use varies from cycle to cycle.
        zones: Whether there are zones, and pods that wish something of them; see `zones`.
        load_aware: Whether a second scheduler, which knows load, places the pods.
        scattered: Whether they begin on nodes drawn at random, which no scheduler has chosen; see `scattered`.
        scheduler: A KubeSchedulerConfiguration of the scheduler; None for its defaults.
    """

    name: str
    about: str
    policy: Path
    pods: int = 600
    half: bool = True
    spread: float = 1.0
    cycles: int = 6
    varies: float = 0.0
    zones: bool = False
    load_aware: bool = False
    scattered: bool = False
    scheduler: Path | None = None


SCENARIOS = {
    scenario.name: scenario
    for scenario in (
        Scenario("half", "15 hot nodes, 15 empty ones, targets of 55 %", POLICIES / "half.yaml"),
        Scenario("deviation", "the same, 10 points around the mean", POLICIES / "deviation.yaml"),
        Scenario(
            "open",
            "all nodes open from the start: even by requests, uneven by load; 10 points around the mean",
            POLICIES / "deviation.yaml",
            pods=900,
            half=False,
        ),
        Scenario(
            "varying",
            "as half, what pods use varying by 10 % from cycle to cycle",
            POLICIES / "half.yaml",
            cycles=10,
            varies=0.1,
        ),
        Scenario(
            "hot",
            "all nodes open, their load 85 % of what the targets allow together",
            POLICIES / "hot.yaml",
            pods=900,
            half=False,
        ),
        Scenario(
            "zones",
            "as open, in three zones: pods spread over them, are tied to one by a volume, or prefer one",
            POLICIES / "deviation.yaml",
            pods=900,
            half=False,
            zones=True,
        ),
        Scenario(
            "trimaran",
            "as half, with a scheduler that knows load (Trimaran)",
            POLICIES / "trimaran.yaml",
            load_aware=True,
        ),
        Scenario(
            "balanced",
            "even by requests and by load; 10 points around the mean",
            POLICIES / "deviation.yaml",
            half=False,
            spread=0.0,
            cycles=3,
        ),
        Scenario(
            "pack",
            "300 pods on 30 nodes, even by requests: nodes are emptied for an autoscaler",
            POLICIES / "pack.yaml",
            pods=300,
            half=False,
            cycles=3,
        ),
        Scenario(
            "pack-usage",
            "300 pods on any of 30 nodes: half of these are emptied, by real usage",
            POLICIES / "pack-usage.yaml",
            pods=300,
            half=False,
            cycles=3,
            scattered=True,
        ),
        Scenario(
            "pack-most",
            "the same, by requests, with a scheduler that packs (MostAllocated)",
            POLICIES / "pack-most.yaml",
            pods=300,
            half=False,
            cycles=3,
            scattered=True,
            scheduler=POLICIES / "most-allocated.json",
        ),
    )
}
