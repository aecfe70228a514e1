"""Steering: which pods to move, to where, in which waves, and what is avoided meanwhile.

What stands here plans and asks; taints are written by whatever stands behind `Steer`, and nothing here knows what that
is.
"""
