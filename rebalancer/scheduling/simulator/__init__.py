"""kube-scheduler, simulated: its plugins, one module each, and what becomes of a pod.

Nothing here knows of evictions, usage sources or policies, and no I/O is done.
"""
