"""`rebalancer mark`: nodes are read, sources are asked, and marks are written, once or again and again.

What follows from the figures is decided in `rebalancer.marking`; what a mark is on a node, in `rebalancer.kube`.
"""
