"""Reasons to refuse a pod whatever a strategy says: protections, filters, limits, PDBs, shares of owners and rest.

A guard answers None or a refusal; it evicts nothing and records nothing.
"""
