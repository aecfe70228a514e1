"""What kube-scheduler would do with a pod: which nodes may take it, and which of them it would choose.

What runs where is asked of the cluster, which follows what goes and comes; nothing is kept here that could differ from
it.  Nothing here knows of usage or policies, and of evictions only how causes are told.
"""
