"""A simulated scheduler at work on a few nodes and pods, all other objects read."""

from collections.abc import Sequence
from typing import Any

from rebalancer.cluster.node import Node
from rebalancer.cluster.pod import Pod
from rebalancer.cluster.scheduler_inputs import SchedulerInputs
from rebalancer.scheduling.simulator.configuration import Configuration, read_configuration
from rebalancer.scheduling.simulator.profile import AskLoads, profiles
from rebalancer.scheduling.simulator.simulator import Simulator
from rebalancer.scheduling.simulator.state import NEWEST_MINOR, State
from tests import make

HEAD = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
READ = SchedulerInputs(
    **{name: {} for name in ("services", "replica_sets", "replication_controllers", "stateful_sets")},
    **{name: {} for name in ("claims", "volumes", "storage_classes", "csi_nodes", "csi_drivers")},
    storage_capacities=(),
    attachments=(),
)


def configured(*profiles: dict[str, Any]) -> Configuration:
    """What the scheduler makes of a file with these profiles."""
    return read_configuration({**HEAD, "profiles": list(profiles)})


def simulator(
    nodes: Sequence[Node],
    pods: Sequence[Pod] = (),
    *,
    read: SchedulerInputs = READ,
    minor: int = NEWEST_MINOR,
    configuration: Configuration | None = None,
    ask: AskLoads | None = None,
    **fields: Any,
) -> Simulator:
    state = State(make.snapshot(nodes, pods, **{"namespaces": {}, **fields}), read, minor)
    return Simulator(state, lambda state: profiles(state, configuration, ask))
