"""Sources of real usage: metrics-server, Prometheus, load-watcher.

Siblings behind one interface: each turns what it is asked for into `rebalancer.cluster.measured.Measured`.  Nothing
here decides about pods.
"""
