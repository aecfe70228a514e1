"""What kube-scheduler would do with a pod: which nodes may take it, and which of them it would choose.

Nothing here knows of evictions, usage or policies.
"""
