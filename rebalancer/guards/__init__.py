"""Reasons to refuse a pod whatever a strategy says: protections, filters, limits, PDBs and shares of owners.

A guard answers None or a refusal; it evicts nothing and records nothing.
"""
