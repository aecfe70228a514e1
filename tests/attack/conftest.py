"""Random and hostile input: seeded, so that a failure can be had again, and bounded.

`make test` runs it once; `REBALANCER_ATTACK` is a whole number by which it is multiplied (`make attack`).
"""

from tests.functional.conftest import rebalancer, server

__all__ = ["rebalancer", "server"]
