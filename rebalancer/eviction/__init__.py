"""What a strategy may ask, what it hears, and in which order pods should go.

Nothing here decides: reasons to refuse stand in `guards`.
"""
