"""Configurations of a scheduler, given as their profiles."""

from typing import Any

from rebalancer.scheduling.simulator.configuration import Configuration, read_configuration

HEAD = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}


def configured(*profiles: dict[str, Any]) -> Configuration:
    """What the scheduler makes of a file with these profiles."""
    return read_configuration({**HEAD, "profiles": list(profiles)})
