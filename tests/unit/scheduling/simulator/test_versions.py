"""What changed in the scheduler from 1.28 to 1.36, each change as a scene worked by hand, in every version."""

from collections.abc import Callable
from typing import Any, NamedTuple

import msgspec
import pytest

from rebalancer.cluster.node import Node, NodeImage
from rebalancer.cluster.pod import HostPort, Placement, Pod
from rebalancer.cluster.scheduler_inputs import Attachment, Claim, CsiNode, Volume
from rebalancer.scheduling.simulator.answer import Answer
from rebalancer.scheduling.simulator.state import newest_minor
from tests import make
from tests.unit.scheduling.simulator.scheduler import READ, configured, simulator

MINORS = range(28, 37)
ZONE, OLDER_ZONE = "topology.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/zone"
BIG = 1000 << 20


def ask(minor: int, nodes: list[Node], pod: Pod, *residents: Pod, **read: Any) -> Answer:
    return simulator(nodes, residents, read=msgspec.structs.replace(READ, **read), minor=minor).ask(pod)


def image_score(minor: int, placement: Placement) -> int:
    """One of two nodes has the image, of 1000 MiB: it counts with half of that."""
    nodes = [make.node("n1", images=(NodeImage(("big:1",), BIG),)), make.node("n2")]
    return ask(minor, nodes, make.pod("p", placement=placement)).scores("n1")["ImageLocality"]


CLAIMS = {("default", "c"): Claim(namespace="default", name="c", volume="v", bound=True)}
USER = make.pod("p", claims=("c",))


def init_image(minor: int) -> int:
    """Since then (500 - 23) / (2 * 1000 - 23), in percent and cut off."""
    return image_score(minor, Placement(images=("other:1",), init_images=("big:1",)))


def volume_image(minor: int) -> int:
    """Since then (500 - 23) / (1000 - 23): the volume is not a container, so the divisor is that of one."""
    return image_score(minor, Placement(images=("other:1",), volume_images=("big:1",)))


def sidecar_port(minor: int) -> tuple[str, ...]:
    """A sidecar on n1 has port 80, which the pod wants."""
    there = make.pod("r", node="n1", placement=Placement(sidecar_ports=(HostPort(80),)))
    wants = make.pod("p", placement=Placement(host_ports=(HostPort(80),)))
    return ask(minor, [make.node("n1"), make.node("n2", cpu="1", memory="1Gi")], wants, there).nodes


def volume_with_older_label(minor: int) -> tuple[str, ...]:
    """Both nodes are labelled as today; the volume says by the older label that it is in the east."""
    nodes = [make.node("n1", labels={ZONE: "east"}), make.node("n2", labels={ZONE: "west"})]
    return ask(minor, nodes, USER, claims=CLAIMS, volumes={"v": Volume(name="v", labels={OLDER_ZONE: "east"})}).nodes


def attached_volume(minor: int) -> tuple[str, ...]:
    """Each node takes one volume of the driver; to n1 one is attached that no pod there has."""
    read = {
        "claims": CLAIMS,
        "volumes": {name: Volume(name=name, driver="disks", handle=name) for name in ("v", "old")},
        "csi_nodes": {name: CsiNode(name=name, limits={"disks": 1}) for name in ("n1", "n2")},
        "attachments": (Attachment(node="n1", driver="disks", volume="old"),),
    }
    nodes = [make.node("n1"), make.node("n2", cpu="2")]
    return ask(minor, nodes, USER, **read).nodes


def sidecars_of_running_pods(minor: int) -> int:
    """A container that requests nothing runs beside a sidecar of 1 core, on 4 cores and 16 GiB.

    Up to 1.31 the larger of the two counts: 1000m and 200Mi.  With the pod's 100m and 200Mi there are left 72 % and
    97 %, so 84 %.  Since then both together: 1100m and 400Mi, so 70 % and 96 %, which makes 83 %.
    """
    together = Placement(
        assumed={"cpu": 1100, "memory": 400 << 20}, assumed_without_sidecars={"cpu": 1000, "memory": 200 << 20}
    )
    there = make.pod("r", node="n1", cpu="1", placement=together)
    return ask(minor, [make.node("n1"), make.node("n2")], make.pod("p", cpu=None), there).scores("n1")[
        "NodeResourcesFit"
    ]


def balance(minor: int, **requests: Any) -> int | None:
    """Half of the cpu and a quarter of the memory of n1 are requested."""
    there = make.pod("a", node="n1", cpu="2", memory="4Gi")
    nodes = [make.node("n1", cpu="4", memory="16Gi"), make.node("n2")]
    found = ask(minor, nodes, make.pod("b", **requests), there)
    return found.scores("n1").get("NodeResourcesBalancedAllocation")


def balance_with_more_cpu(minor: int) -> int | None:
    """Shares of 3/4 and 1/4: 100 less a deviation of 25.  Since 1.36 from 87 to 75: 50 + (50 - 12) / 2, cut off."""
    return balance(minor, cpu="1", memory="0")


def balance_of_no_requests(minor: int) -> int | None:
    return balance(minor, cpu=None)


class Change(NamedTuple):
    """A rule that changed: since which minor version, and what a scene comes to up to then and since."""

    scene: Callable[[int], Any]
    since: int
    before: Any
    after: Any


TABLE = (
    Change(volume_with_older_label, 29, (), ("n1",)),
    Change(init_image, 30, 0, 24),
    Change(attached_volume, 32, ("n1",), ("n2",)),
    Change(sidecars_of_running_pods, 32, 84, 83),
    Change(sidecar_port, 34, ("n1",), ("n2",)),
    Change(balance_of_no_requests, 33, 87, None),
    Change(volume_image, 36, 0, 48),
    Change(balance_with_more_cpu, 36, 75, 69),
)


@pytest.mark.parametrize("minor", MINORS)
@pytest.mark.parametrize("change", TABLE, ids=lambda change: change.scene.__name__)
def test_each_rule_is_that_of_the_version(change: Change, minor: int) -> None:
    """As worked out beside each scene."""
    assert change.scene(minor) == (change.after if minor >= change.since else change.before)


@pytest.mark.parametrize("minor", MINORS)
def test_what_did_not_change(minor: int) -> None:
    """Weights, how scores are scaled, spreading and affinity: the same in every version.

    n1 has 3 of 4 cores and 12 of 16 GiB left with the pod, 75 % each; of two soft taints on n2 none is tolerated.  By
    default spreading n2 has no replica, n1 one: log(2 + 2) = 1.39 times 1, and 2 for a skew of 3, rounded 3; n2 has 2.
    So n2 scores 100 and n1 100 * 2 // 3 = 66, twice.
    """
    nodes = [make.node("n1"), make.node("n2", taints=["a:PreferNoSchedule", "b:PreferNoSchedule"])]
    web = {"services": {("default", "web"): make.selector(app="web")}}
    there = make.pod("r", node="n1", cpu="500m", memory="2Gi", labels={"app": "web"})
    pod = make.pod("p", cpu="500m", memory="2Gi", labels={"app": "web"})

    found = ask(minor, nodes, pod, there, **web).scores

    fixed = ("TaintToleration", "NodeResourcesFit", "PodTopologySpread")
    assert [found("n1")[each] for each in fixed] == [300, 75, 2 * 66]
    assert [found("n2")[each] for each in fixed] == [0, 87, 2 * 100]


def test_plugins_of_other_versions_are_no_strangers() -> None:
    """Up to 1.30 a profile may name the limits of disks that CSI drivers have taken over."""
    named = {"plugins": {"filter": {"enabled": [{"name": "EBSLimits"}, {"name": "AzureDiskLimits"}]}}}

    found = simulator([make.node("n1")], minor=30, configuration=configured(named))

    assert found.ask(make.pod("p")).nodes == ("n1",)


@pytest.mark.parametrize(("limit", "used", "goes"), [(1, False, False), (2, False, True), (1, True, True)])
def test_a_wanted_volume_that_is_attached_counts_twice_unless_a_pod_there_uses_it(limit, used, goes) -> None:
    """As attached and as new: seen with the scheduler of 1.36."""
    read = {
        "claims": CLAIMS,
        "volumes": {"v": Volume(name="v", driver="disks", handle="v")},
        "csi_nodes": {"n1": CsiNode(name="n1", limits={"disks": limit})},
        "attachments": (Attachment(node="n1", driver="disks", volume="v"),),
    }
    residents = [make.pod("r", node="n1", claims=("c",))] if used else []

    assert bool(ask(36, [make.node("n1")], USER, *residents, **read).nodes) is goes


@pytest.mark.parametrize(
    ("versions", "minor"),
    [
        (["v1.34.9", "v1.36.0-gke.100", "v1.35.2"], 36),
        (["v1.35.1+k3s1", "kwok-v0.7.0", ""], 35),
        (["kwok-v1.30.0"], 36),
    ],
    ids=["the newest kubelet tells", "others tell nothing", "if none tells it is the newest version known"],
)
def test_which_version_it_is(versions: list[str], minor: int) -> None:
    """Of all nodes, cordoned ones among them."""
    assert newest_minor(make.node(each, kubelet_version=each, unschedulable=True) for each in versions) == minor
