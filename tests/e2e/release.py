"""The chart, installed on the control plane with the real helm."""

from dataclasses import dataclass
from typing import Self

from tests.chart.helm import CHART, helm
from tests.e2e.access import all_in_force
from tests.e2e.harness import ControlPlane
from tests.e2e.waiting import wait_for


@dataclass
class Release:
    """An installation of the chart; also a context manager, which installs and uninstalls it."""

    controlplane: ControlPlane
    values: str
    name: str = "rebalancer"
    namespace: str = "kube-system"
    notes: str = ""

    def __enter__(self) -> Self:
        self.notes = self._helm("install", "--values", "-")
        wait_for(self._in_force, "the permissions in force")
        return self

    def __exit__(self, *_: object) -> None:
        self._helm("uninstall")

    def upgrade(self, values: str) -> None:
        self.values = values
        self._helm("upgrade", "--values", "-")
        wait_for(self._in_force, "the permissions in force")

    def _in_force(self) -> bool:
        api, account = self.controlplane.api, f"{self.namespace}:{self.name}"
        own = {"labelSelector": f"app.kubernetes.io/instance={self.name}"}
        roles = [*api.list("ClusterRole", **own), *api.list("Role", **own)]
        return bool(roles) and all_in_force(api, account, roles)

    def _helm(self, verb: str, *options: str) -> str:
        chart = () if verb == "uninstall" else (str(CHART),)
        where = ("--namespace", self.namespace, "--kubeconfig", self.controlplane.kubeconfig)
        return helm(verb, self.name, *chart, *options, *where, text=self.values).stdout
