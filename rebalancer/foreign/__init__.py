"""What others wrote: read within bounds, and shown so that it cannot pretend to be something else.

Knows nothing of policies and clusters, and sends nothing.
"""
