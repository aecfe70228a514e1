"""Where the program runs."""

import os
from collections.abc import Mapping


def in_pod(environ: Mapping[str, str] = os.environ) -> bool:
    """Return whether this is a pod, also one that has a kubeconfig mounted."""
    return bool(environ.get("KUBERNETES_SERVICE_HOST"))
