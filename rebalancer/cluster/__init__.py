"""The cluster as values: objects, the snapshot, what is left of it as pods go.

No I/O is done here, no clock is read, nothing is decoded, and no rule of the scheduler's or of evictions is known.
"""
