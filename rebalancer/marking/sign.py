"""The key and value by which a label or a soft taint shows pressure."""

from dataclasses import dataclass

#: The key of the label, and of the soft taint, unless the rules give another.
PRESSURE_KEY = "kube-rebalancer/pressure"


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
