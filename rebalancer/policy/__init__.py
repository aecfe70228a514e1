"""The DeschedulerPolicy: read, checked against the known plugins, and turned into values.

Also the KubeSchedulerConfiguration, for clusters whose scheduler does not have the default configuration, and the rules
of `rebalancer mark`.

Reads text only: no file, no cluster, no strategy.  The plugins that a policy may name are passed in.
"""

from rebalancer.args.providers import MetricsProvider
from rebalancer.policy.load import decode_policy, load_policy
from rebalancer.policy.marking_rules import load_marking_rules, measured_utilization
from rebalancer.policy.scheduler_configuration import SchedulerConfiguration, load_scheduler_configuration
from rebalancer.policy.schema import policy_schema
from rebalancer.policy.values import LoadedPolicy, Policy, Profile

__all__ = [
    "LoadedPolicy",
    "MetricsProvider",
    "Policy",
    "Profile",
    "SchedulerConfiguration",
    "decode_policy",
    "load_marking_rules",
    "load_policy",
    "load_scheduler_configuration",
    "measured_utilization",
    "policy_schema",
]
