"""Input that others wrote: read within limits, and shown so that it cannot be mistaken for something else.

Knows nothing about policies and clusters, and sends nothing.
"""
