"""What a strategy can ask for, what it is told, and in which order pods should go.

Nothing here decides: the rules that refuse evictions are in `engine`.
"""
