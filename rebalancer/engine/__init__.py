"""Runs the strategies, grants or refuses what they ask for, and keeps the ledger.

A guard (protections, filters, limits, PDBs, shares of owners, rest) answers None or a refusal; it evicts nothing and
records nothing.  No I/O is done here: a live run differs from a dry run in the sink it is given, and in nothing else.
"""
