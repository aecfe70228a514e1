"""Which nodes are shown to be under pressure: the rules, and what follows from their readings.

Values and pure functions only: no clock, no request, nothing that is written.
"""
