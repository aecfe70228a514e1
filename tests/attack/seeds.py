"""How long an attack lasts."""

import os

VARIABLE = "REBALANCER_ATTACK"


def seeds(count: int) -> range:
    """Return so many seeds, times what the environment asks for; a seed names its round for ever."""
    return range(count * int(os.environ.get(VARIABLE) or 1))
