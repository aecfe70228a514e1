"""The composition root: binds policy, cluster, engine and report into runs.

The only package that holds the edges; it decides nothing about pods.
"""
