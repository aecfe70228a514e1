"""Options in, exit code out: commands, flags, spellings, log lines, the question before a live run.

Nothing here decides about pods or asks the API server anything.
"""
