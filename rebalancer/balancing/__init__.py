"""How full nodes are, and which pods should move to even that out.

What stands here asks for evictions and never grants them; it sees figures and never their source.
"""
