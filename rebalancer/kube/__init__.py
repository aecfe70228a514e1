"""The API server: requests, what its answers mean, and how to reach it.

Whatever asks the API server raises a `ClusterError` where it has no answer of use (`answers` has the kinds of it), and
`NoCredentials` where a kubeconfig or what it names is wrong.

The only package that knows kubeconfig files and the package `kubernetes`.  Nothing here decides which pod is evicted,
and only `kube.wire` decodes lists: the bytes go to a collector that the caller passes in.  `kubernetes` is imported
inside functions, since this import alone takes half a second.
"""
