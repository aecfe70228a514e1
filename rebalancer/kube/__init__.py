"""The API server: requests, what its answers mean, and the way to it.

The only package that knows HTTP, kubeconfig files and the packages `kubernetes`, `urllib3` and `tenacity`.
Nothing here decides which pod goes, and nothing here decodes a list: bytes are handed to a collector that the
caller brings.  `kubernetes` is imported inside functions, since that alone costs half a second.
"""
