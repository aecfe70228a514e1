"""The DeschedulerPolicy: read, checked against the known plugins, and turned into values.

Reads text only: no file, no cluster, no strategy.  What a policy may name is passed in.
"""

from rebalancer.args.providers import MetricsProvider
from rebalancer.policy.load import decode_policy, load_policy
from rebalancer.policy.schema import policy_schema
from rebalancer.policy.values import LoadedPolicy, Policy, Profile

__all__ = [
    "LoadedPolicy",
    "MetricsProvider",
    "Policy",
    "Profile",
    "decode_policy",
    "load_policy",
    "policy_schema",
]
