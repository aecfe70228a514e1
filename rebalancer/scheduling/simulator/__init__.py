"""kube-scheduler, simulated: its plugins, one module each, and where a pod goes.

Nothing here knows of evictions, usage sources or policies, and no I/O is done.
"""
