"""What is known of earlier cycles, and what follows from it: a document, and rules as pure functions of it.

How it is read and written is `rebalancer.kube.leases`'s business.
"""
