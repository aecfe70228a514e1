"""The ledger, shown: as a document for programs, as tables for people.

Nothing is decided here, and no cluster is asked.
"""
