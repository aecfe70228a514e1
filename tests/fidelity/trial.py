"""One random cluster on a real control plane: pods placed one after another, the simulator asked first."""

import copy
import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import reduce
from pathlib import Path
from random import Random
from typing import Any

import msgspec
import yaml

from rebalancer.cluster.pod import Pod
from rebalancer.cluster.snapshot import Snapshot
from rebalancer.kube.wire.collect import Collection, add_document
from rebalancer.kube.wire.pods import PodDecoder, PodWire
from rebalancer.kube.wire.specs import Specs
from rebalancer.scheduling.simulator.answer import Answer
from rebalancer.scheduling.simulator.configuration import read_configuration
from rebalancer.scheduling.simulator.profile import profiles
from rebalancer.scheduling.simulator.sampling import SamplingWindow
from rebalancer.scheduling.simulator.simulator import Simulator
from rebalancer.scheduling.simulator.state import State
from tests.e2e.api import Api, ApiError, Object
from tests.e2e.builders import ZONE, claim_volume
from tests.e2e.harness import ControlPlane
from tests.e2e.namespace import is_schedulable
from tests.e2e.waiting import wait_for
from tests.fidelity.clusters import APPS, NAMESPACES, ZONES, owners, random_nodes, random_template
from tests.fidelity.comparison import OPTIONS, Comparison, SchedulerLog

KINDS = (
    *("Node", "Pod", "Namespace", "Service", "ReplicationController", "ReplicaSet", "StatefulSet"),
    *("PersistentVolumeClaim", "PersistentVolume", "StorageClass", "CSINode", "CSIDriver", "CSIStorageCapacity"),
    "VolumeAttachment",
)
INVALID = 422
TEMPLATES = 2 * APPS


@dataclass(frozen=True)
class Plan:
    """What a trial does: a seed, so many nodes, so many pods."""

    seed: int
    nodes: int
    placements: int
    configured: bool = False  # whether the scheduler is configured otherwise (`CONFIGURATION`)
    volumes: bool = False  # whether pods have claims; then they have no owners, since the controllers work on


def run(binaries: Path, plan: Plan, comparison: Comparison) -> None:
    options = list(OPTIONS)
    running = ControlPlane(binaries, options)
    if plan.configured:
        options += ["--config", str(running.scheduler_configuration(CONFIGURATION))]
    with running:
        Trial(running, plan, comparison).run()


class Trial:
    def __init__(self, running: ControlPlane, plan: Plan, comparison: Comparison) -> None:
        self._running = running
        self._api: Api = running.api
        self._plan = plan
        self._comparison = comparison
        self._random = Random(plan.seed)
        self._log = SchedulerLog(running.processes.log("kube-scheduler"))
        self._decoder = PodDecoder(Specs())
        self._stage = VolumeStage(self._api, self._random, plan.nodes)
        self._owners: dict[tuple[str, str], Object] = {}

    def run(self) -> None:
        self._set_up()
        templates = [random_template(self._random, number % APPS) for number in range(TEMPLATES)]
        if self._plan.configured:
            for template in templates:
                template["spec"]["schedulerName"] = self._random.choice(PROFILES)
        state, simulator = self._simulator()
        for number in range(self._plan.placements):
            template = self._random.choice(templates)
            if self._plan.volumes:
                template = self._stage.with_claims(template, f"pod-{number:04}")
                state, simulator = self._simulator()
            self._place(f"pod-{number:04}", template, state, simulator)

    def _simulator(self) -> tuple[State, Simulator]:
        snapshot = read(self._api)
        state = State(snapshot, snapshot.scheduler_inputs)
        configuration = read_configuration(CONFIGURATION) if self._plan.configured else None
        return state, Simulator(state, lambda state: profiles(state, configuration))

    def _set_up(self) -> None:
        for each in random_nodes(self._random, self._plan.nodes):
            self._api.create(each)
        for name, labels in NAMESPACES.items():
            self._api.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}})
            # With controllers at work, ReplicaSets would adopt the pods and delete them.
            for owner in () if self._plan.volumes else owners(self._random):
                made = self._api.create(owner, name)
                self._owners[name, f"{owner['kind']}/{owner['metadata']['name']}"] = made
        wait_for(lambda: all(map(is_schedulable, self._api.list("Node"))), "nodes without the controllers' taints", 120)
        if self._plan.volumes:
            self._stage.set_up()
        else:  # controllers would delete pods that their owners do not want
            self._running.processes.kill("kube-controller-manager")

    def _place(self, name: str, template: Object, state: State, simulator: Simulator) -> None:
        namespace = "blue" if self._plan.volumes else self._random.choice(tuple(NAMESPACES))
        owner = self._owner(namespace, template["metadata"]["labels"]["app"])
        metadata = {"name": name, **template["metadata"], **({"ownerReferences": [owner]} if owner else {})}
        manifest = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template["spec"]}
        try:
            created = self._api.create(manifest, namespace)
        except ApiError as error:
            if error.status != INVALID:
                raise
            self._comparison.counts["not a valid pod"] += 1
            return
        before = len(self._comparison.disagreements)
        created["spec"].pop("nodeName", None)
        answer = self._in_all_windows(simulator, self._decoded(created))
        settled = wait_for(lambda: self._decided(name, namespace), f"a decision about {name}", 30)
        known = f"{namespace}/{name}"
        node = settled["spec"].get("nodeName")
        if node:
            self._comparison.bound(known, answer, node, self._log.read(known))
            state.place(self._decoded(settled), node)
        else:
            self._comparison.unschedulable(known, answer, decided_message(settled))
            self._api.delete("Pod", name, namespace, grace=0)
        if len(self._comparison.disagreements) > before:
            self._comparison.disagreements.append(f"{known} is {json.dumps(template)}")

    def _in_all_windows(self, simulator: Simulator, pod: Pod) -> Answer:
        """Return the nodes that win in some window: the scheduler may begin to look anywhere."""
        answer = simulator.ask(pod)
        places = [(number + 0.5) / self._plan.nodes for number in range(self._plan.nodes if answer.sampled else 0)]
        windows = [SamplingWindow(order, place) for order in (0, 1) for place in places]
        return reduce(Answer.or_else, (simulator.ask(pod, each) for each in windows), answer)

    def _decided(self, name: str, namespace: str) -> Object | None:
        if self._plan.volumes:
            self._stage.provision()
        return decided(self._api.read("Pod", name, namespace))

    def _owner(self, namespace: str, app: str) -> Object | None:
        if self._plan.volumes or self._random.random() < 0.2:
            return None
        for kind in ("ReplicaSet", "StatefulSet"):
            owner = self._owners.get((namespace, f"{kind}/{app}"))
            if owner:
                identity = {"kind": kind, "name": app, "uid": owner["metadata"]["uid"], "controller": True}
                return {"apiVersion": "apps/v1", **identity}
        return None

    def _decoded(self, pod: Object) -> Pod:
        return self._decoder.convert(msgspec.json.decode(json.dumps(pod), type=PodWire))


def read(api: Api, kinds: Sequence[str] = KINDS) -> Snapshot:
    collection = Collection()
    for kind in kinds:
        listed = {"kind": f"{kind}List", "items": api.list(kind)}
        add_document(collection, json.dumps(listed).encode())
    return collection.snapshot(datetime.now(UTC))


def decided(pod: Object) -> Object | None:
    """Return a pod that is bound, or that the scheduler has said it cannot place."""
    return pod if pod["spec"].get("nodeName") or decided_message(pod) else None


def decided_message(pod: Object) -> str:
    """Return why the scheduler could not place a pod; empty if it has not said so."""
    said = [each for each in pod["status"].get("conditions", []) if each["type"] == "PodScheduled"]
    return said[0].get("message", "") if said and said[0]["status"] == "False" else ""


PROFILES = ("default-scheduler", "packer")

CONFIGURATION: Object = yaml.safe_load("""
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
percentageOfNodesToScore: 70
profiles:
  - schedulerName: packer
    plugins:
      score: {disabled: [{name: ImageLocality}], enabled: [{name: NodeResourcesFit, weight: 5}]}
      multiPoint: {enabled: [{name: NodeAffinity, weight: 7}], disabled: [{name: NodePorts}]}
    pluginConfig:
      - name: NodeResourcesFit
        args:
          scoringStrategy:
            type: MostAllocated
            resources: [{name: cpu, weight: 3}, {name: memory, weight: 1}, {name: example.com/gpu, weight: 2}]
      - {name: InterPodAffinity, args: {hardPodAffinityWeight: 17}}
      - name: PodTopologySpread
        args:
          defaultingType: List
          defaultConstraints: [{maxSkew: 1, topologyKey: rack, whenUnsatisfiable: ScheduleAnyway}]
  - schedulerName: default-scheduler
    pluginConfig:
      - name: NodeResourcesFit
        args:
          ignoredResources: [example.com/gpu]
          scoringStrategy:
            type: RequestedToCapacityRatio
            resources: [{name: cpu, weight: 2}, {name: memory, weight: 1}]
            requestedToCapacityRatio:
              shape: [{utilization: 0, score: 3}, {utilization: 45, score: 10}, {utilization: 100, score: 0}]
      - name: NodeResourcesBalancedAllocation
        args: {resources: [{name: cpu, weight: 1}, {name: memory, weight: 1}, {name: ephemeral-storage, weight: 1}]}
      - name: NodeAffinity
        args:
          addedAffinity:
            preferredDuringSchedulingIgnoredDuringExecution:
              - {weight: 30, preference: {matchExpressions: [{key: tier, operator: In, values: [bronze]}]}}
""")


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
