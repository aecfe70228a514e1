"""Volumes of every kind that says where a pod may go, made by the test: no driver runs."""

import copy
from random import Random
from typing import Any

from tests.e2e.api import Api, Object
from tests.e2e.builders import ZONE, claim_volume
from tests.e2e.waiting import wait_for
from tests.fidelity.clusters import ZONES

NAMESPACE = "blue"
DRIVER, ROOMY = "limited.csi.test", "roomy.csi.test"
MODES = ("ReadWriteOnce", "ReadWriteMany", "ReadWriteOncePod")


class VolumeStage:
    def __init__(self, api: Api, random: Random, nodes: int) -> None:
        self._api = api
        self._random = random
        self._nodes = [f"node-{number:03}" for number in range(nodes)]
        self._made: set[str] = set()
        self._shared: list[str] = []

    def set_up(self) -> None:
        """Create what claims hang on; some nodes take few volumes of the limited driver."""
        zonal = {"allowedTopologies": [{"matchLabelExpressions": [{"key": ZONE, "values": [ZONES[0]]}]}]}
        classes = (("static", "kubernetes.io/no-provisioner", {}), ("zonal", DRIVER, zonal), ("roomy", ROOMY, {}))
        for name, provisioner, more in classes:
            made = {"provisioner": provisioner, "volumeBindingMode": "WaitForFirstConsumer", **more}
            self._create("storage.k8s.io/v1", "StorageClass", name, **made)
        self._create("storage.k8s.io/v1", "CSIDriver", ROOMY, spec={"storageCapacity": True, "attachRequired": False})
        for zone in ZONES[:2]:
            room = {"nodeTopology": {"matchLabels": {ZONE: zone}}, "capacity": "5Gi", "storageClassName": "roomy"}
            self._create("storage.k8s.io/v1", "CSIStorageCapacity", f"room-{zone}", NAMESPACE, **room)
        for name in self._nodes:
            if self._random.random() < 0.6:
                driver = {"name": DRIVER, "nodeID": name, "allocatable": {"count": self._random.choice((1, 2))}}
                owner = self._api.read("Node", name)["metadata"]["uid"]
                reference = {"apiVersion": "v1", "kind": "Node", "name": name, "uid": owner}
                metadata = {"name": name, "ownerReferences": [reference]}
                csi_node = {"apiVersion": "storage.k8s.io/v1", "kind": "CSINode", "metadata": metadata}
                self._api.create({**csi_node, "spec": {"drivers": [driver]}})

    def with_claims(self, template: Object, pod: str) -> Object:
        """Return a pod's template with one or two claims, made for it or shared with others."""
        made: Object = copy.deepcopy(template)
        claims = [self._claim(f"{pod}-{number}") for number in range(self._random.choice((0, 1, 1, 2)))]
        if claims:
            made["spec"]["volumes"] = [claim_volume(each) for each in dict.fromkeys(claims)]
        return made

    def _claim(self, name: str) -> str:
        kind = self._random.choice(("bound", "zone", "static", "zonal", "roomy", "shared", "missing"))
        if kind == "missing" and self._random.random() < 0.3:
            return f"{name}-missing"
        if kind == "shared" and self._shared:
            return self._random.choice(self._shared)
        size = self._random.choice(("1Gi", "10Gi"))
        mode = self._random.choice(MODES)
        if kind in ("bound", "zone", "shared", "missing"):
            self._bound(name, kind, size, mode)
            self._shared.append(name)
        else:
            if kind == "static":
                self._volume(f"free-{name}", self._reach("bound"), "20Gi", mode, "static")
            self._made_claim(name, kind, size, mode)
        return name

    def provision(self) -> None:
        """Make volumes for claims whose node the scheduler has chosen, as a driver's provisioner would."""
        for claim in self._api.list("PersistentVolumeClaim", NAMESPACE):
            metadata, spec = claim["metadata"], claim["spec"]
            chosen = metadata.get("annotations", {}).get("volume.kubernetes.io/selected-node")
            name = f"made-{metadata['name']}"
            if chosen and not spec.get("volumeName") and name not in self._made:
                self._made.add(name)
                reach = {"claimRef": {"namespace": NAMESPACE, "name": metadata["name"], "uid": metadata["uid"]}}
                size, (mode,) = spec["resources"]["requests"]["storage"], spec["accessModes"]
                self._volume(name, reach, size, mode, spec["storageClassName"])

    def _bound(self, name: str, kind: str, size: str, mode: str) -> None:
        reach = self._reach(kind)
        reach["claimRef"] = {"namespace": NAMESPACE, "name": name}
        labels = {ZONE: "__".join(self._random.sample(ZONES, 2))} if kind == "zone" else {}
        self._volume(name, reach, size, mode, "", labels)
        self._made_claim(name, "", size, mode, volumeName=name)
        wait_for(
            lambda: self._api.read("PersistentVolumeClaim", name, NAMESPACE).get("status", {}).get("phase") == "Bound",
            f"claim {name} bound",
        )

    def _reach(self, kind: str) -> Object:
        if kind != "bound":
            return {}
        expression = {"key": ZONE, "operator": "In", "values": self._random.sample(ZONES, 2)}
        return {"nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}}}

    def _volume(
        self, name: str, reach: Object, size: str, mode: str, storage: str, labels: Object | None = None
    ) -> None:
        spec = {"capacity": {"storage": size}, "accessModes": [mode], "storageClassName": storage, **reach}
        spec["csi"] = {"driver": DRIVER, "volumeHandle": name}
        self._create("v1", "PersistentVolume", name, labels=labels, spec=spec)

    def _made_claim(self, name: str, storage: str, size: str, mode: str, **more: Any) -> None:
        spec = {"accessModes": [mode], "storageClassName": storage, "resources": {"requests": {"storage": size}}}
        self._create("v1", "PersistentVolumeClaim", name, NAMESPACE, spec={**spec, **more})

    def _create(
        self, version: str, kind: str, name: str, namespace: str = "", labels: Object | None = None, **fields: Any
    ) -> None:
        metadata = {"name": name, "labels": labels or {}}
        self._api.create({"apiVersion": version, "kind": kind, "metadata": metadata, **fields}, namespace)
