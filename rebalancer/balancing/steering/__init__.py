"""Steering: which pods to move, to where, in which waves, and which nodes a wave avoids.

These modules plan moves and ask for evictions.  Taints are written behind the interface `Steer`: in a live run they are
set on nodes, in a dry run they are not, and nothing here knows which.
"""
