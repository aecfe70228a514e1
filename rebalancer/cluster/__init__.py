"""The cluster: its objects as values, the snapshot, and its expected state as pods go and come.

No I/O is done here, no clock is read, nothing is decoded.  The rules of the scheduler and of evictions are elsewhere.
"""
