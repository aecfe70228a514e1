"""Runs the strategies, grants or refuses what they ask for, and keeps the ledger.

No I/O is done here: a live run differs from a dry run in the sink it is given, and in nothing else.
"""
