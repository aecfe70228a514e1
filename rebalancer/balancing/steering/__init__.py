"""Steering: which pods to move, to where, in which waves, and what is avoided meanwhile.

These modules plan moves and ask for evictions.  Taints are written behind the interface `Steer`: in a live run they are
set on nodes, in a dry run they are not, and nothing here knows which.
"""
