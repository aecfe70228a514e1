"""The key and value by which a label or a soft taint shows pressure."""

from dataclasses import dataclass

from rebalancer.cluster.selectors import check_label_value, key_fault

#: The key of the label, and of the soft taint, unless the rules give another.
PRESSURE_KEY = "kube-rebalancer/pressure"

#: Domains whose labels and taints belong to Kubernetes.
_RESERVED = ("kubernetes.io", "k8s.io")


@dataclass(frozen=True, slots=True)
class Sign:
    """A label or a soft taint that shows pressure.

    Attributes:
        key: of the label or taint.
        value: the same on all nodes; empty where each node gets the name of its first rule.
    """

    key: str
    value: str = ""

    def on(self, rule: str) -> "Sign":
        """Return the sign as a node carries it that is marked by this rule."""
        return Sign(self.key, self.value or rule)

    def __str__(self) -> str:
        return f"{self.key}={self.value}" if self.value else self.key

    def covers(self, key: str, value: str) -> bool:
        """Return whether a label or taint with this key and value is one of ours."""
        return key == self.key and self.value in ("", value)


def read_sign(text: str) -> Sign:
    """Read KEY or KEY=VALUE.

    Raises:
        ValueError: the API server would refuse it, or the key belongs to Kubernetes.
    """
    key, equals, value = text.partition("=")
    if fault := key_fault(key):
        raise ValueError(f"{key!r} cannot be the key of a mark: {fault}")
    prefix = key.rpartition("/")[0]
    if any(prefix == domain or prefix.endswith(f".{domain}") for domain in _RESERVED):
        raise ValueError(f"{key!r} cannot be the key of a mark: keys under {prefix} belong to Kubernetes")
    if equals and not value:
        raise ValueError(f"{text!r} has no value: leave out the =, and the value is the name of the rule")
    check_label_value(value)
    return Sign(key, value)
