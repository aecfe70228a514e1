"""How the program is spoken to on a command line: spellings, accepted flags, the question before a live run.

Nothing here decides about pods or asks the API server anything.
"""
