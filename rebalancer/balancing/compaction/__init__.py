"""Compaction: empty nodes one after the other, each as a whole, onto the nodes that stay in use.

Nothing else of balancing may know it; it asks the simulated scheduler, and steers where replacements are steered.
"""
