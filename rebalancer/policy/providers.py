"""What a policy may say about where real usage comes from: the items of `metricsProviders`.

The descheduler's keys are source, prometheus.url and prometheus.authToken; the others are ours.
"""

from datetime import timedelta

from pydantic import Field

from rebalancer.policy.arguments import Duration, Part


class SecretReference(Part):
    """The Secret that holds a bearer token, under its key `prometheusAuthToken`."""

    namespace: str = Field("", description="Namespace of the Secret.")
    name: str = Field("", description="Name of the Secret.")


class AuthToken(Part):
    """Where the bearer token for Prometheus lives."""

    secret_reference: SecretReference | None = Field(None, description="The Secret with the token.")


class BasicAuth(Part):
    """A name and a password."""

    username: str = Field("", description="The name.")
    password_file: str = Field("", description="A file with the password.")


class Prometheus(Part):
    """A Prometheus server, or another that answers PromQL."""

    url: str = Field("", description="Base URL, like http://prometheus.monitoring:9090.")
    auth_token: AuthToken | None = Field(
        None, description="Absent: over https in a pod its service account's token, if no other way is given."
    )
    token_file: str = Field("", description="A file with a bearer token, instead of authToken.")
    basic_auth: BasicAuth | None = Field(None, description="Instead of a token.")
    ca_file: str = Field("", description="Certificates to trust; absent: those of the system and of the cluster.")
    allow_token_over_http: bool = Field(
        False, alias="allowTokenOverHTTP", description="Send the token or password also over plain http."
    )
    timeout: Duration = Field(timedelta(seconds=30), description="For all that a strategy asks of it.")

    @property
    def credentials(self) -> tuple[str, ...]:
        """The keys that say how to log in; more than one is a mistake."""
        given = {"authToken": self.auth_token, "tokenFile": self.token_file, "basicAuth": self.basic_auth}
        return tuple(key for key, value in given.items() if value)


class LoadWatcher(Part):
    """A load-watcher."""

    url: str = Field("", description="Base URL, like http://load-watcher.loadwatcher:2020.")
    timeout: Duration = Field(timedelta(seconds=30), description="For its answer.")


class MetricsProvider(Part):
    """A source of real usage; each source at most once."""

    source: str = Field("", description="KubernetesMetrics, Prometheus or LoadWatcher.")
    prometheus: Prometheus | None = Field(None, description="Needed by the source Prometheus.")
    load_watcher: LoadWatcher | None = Field(None, description="Needed by the source LoadWatcher.")
