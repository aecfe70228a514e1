"""Settings of the command line that override a kubeconfig or a service account."""

from dataclasses import dataclass

#: Seconds after which a credentials plugin that does not answer is killed.
EXEC_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Overrides:
    """The same settings as kubectl's flags; whatever is not set here is taken from the kubeconfig.

    Attributes:
        user: the user to act as; empty for none.
        insecure: whether the API server's certificate is not checked.
        exec_seconds: how long a credentials plugin may take.
    """

    user: str = ""
    groups: tuple[str, ...] = ()
    insecure: bool = False
    exec_seconds: float = EXEC_SECONDS


NO_OVERRIDES = Overrides()
