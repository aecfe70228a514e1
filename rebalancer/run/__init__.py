"""The composition root: binds policy, cluster, engine and report into runs.

The only package that joins the others to the outside world; it decides nothing about pods.
"""
