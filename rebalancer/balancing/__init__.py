"""How full nodes are, and which pods should move to even that out.

These modules ask for evictions and never grant them; they see figures, and never where the figures come from.
What asks for evictions may raise CycleOver (see `Evict`), which ends the strategy.
"""
