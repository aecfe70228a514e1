"""A one-shot rebalancer for Kubernetes clusters whose nodes are unevenly loaded."""

__version__ = "0.1.0"
