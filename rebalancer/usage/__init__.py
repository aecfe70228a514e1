"""Sources of real usage: metrics-server, Prometheus, load-watcher.

All have one interface: each returns its figures as `rebalancer.cluster.measured.Measured`.  Nothing here decides which
pods are evicted.
"""
