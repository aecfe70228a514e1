"""What kube-scheduler would do with a pod: which nodes may take it, and which of them it would choose.

The cluster is the only source of what runs where: every index here follows it, so none can differ from it.  This
package knows nothing of usage or policies; of the eviction package it uses only the causes.
"""
