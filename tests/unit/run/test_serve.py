"""Whether health and metrics are served at all."""

from pathlib import Path

import pytest

from rebalancer.run.options import Options, ServingOptions
from rebalancer.run.serve import served
from rebalancer.run.telemetry import Telemetry
from tests.functional.probing import ask
from tests.ports import free_port

IN_POD = {"KUBERNETES_SERVICE_HOST": "10.0.0.1"}


def sockets() -> int:
    links = Path("/proc/self/fd").iterdir()
    return sum(str(link.readlink()).startswith("socket:") for link in links if link.is_symlink())


@pytest.mark.parametrize(("port", "environ"), [(None, {}), (0, {}), (0, IN_POD)])
def test_nothing_is_served_on_a_laptop_or_where_told_so(port, environ) -> None:
    """Outside a pod without a flag, and with port 0 inside of one too."""
    before = sockets()

    with served(ServingOptions(secure_port=port), Telemetry(Options("demo")), environ):
        assert sockets() == before


@pytest.mark.parametrize("environ", [{}, IN_POD])
def test_a_port_that_is_named_is_served(environ) -> None:
    """Anywhere; port 10258, which the descheduler's manifests probe, is the default in a pod."""
    port = free_port()

    with served(ServingOptions(secure_port=port, bind_address="127.0.0.1"), Telemetry(Options("demo")), environ):
        assert ask(port, "/healthz").status == 200
