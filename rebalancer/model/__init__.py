"""The cluster as values: objects, the snapshot, and the rules of Kubernetes on them.

No I/O is done here, no clock is read, nothing is decoded.
"""
