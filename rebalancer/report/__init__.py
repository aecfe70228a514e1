"""Shows the ledger: as a document for programs, as tables for people.

Decides nothing, and sends no request to a cluster.
"""
