"""The cluster: its objects as values, the snapshot, and what will be as pods go and come.

No I/O is done here, no clock is read, nothing is decoded, and no rule of the scheduler's or of evictions is known.
"""
