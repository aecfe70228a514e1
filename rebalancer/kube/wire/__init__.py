"""The API server's JSON turned into the model; the only place where its lists are decoded.

No request is made here and no file is read: bytes come in, immutable objects go out.
"""
