"""What the command line sets above a kubeconfig or a service account."""

from dataclasses import dataclass

#: After which a credentials plugin that does not answer is ended.
EXEC_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Overrides:
    """As kubectl's flags have it; what is not set here is as the kubeconfig says.

    Attributes:
        user: whom to act as; empty for oneself.
        groups: in which groups to act.
        insecure: whether the API server's certificate is not looked at.
        exec_seconds: how long a credentials plugin may take.
    """

    user: str = ""
    groups: tuple[str, ...] = ()
    insecure: bool = False
    exec_seconds: float = EXEC_SECONDS


NO_OVERRIDES = Overrides()
