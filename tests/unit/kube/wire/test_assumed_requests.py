"""What kube-scheduler assumes of pods that request nothing, as it is read from the API server's JSON."""

from tests.unit.kube.wire.documents import read_pod

MIB = 1 << 20


def placement(container=None, **pod):
    spec = {"containers": [{"image": "web", "resources": container or {}}], **pod}
    return read_pod(spec=spec).spec.placement


def test_a_container_without_requests_counts_a_little():
    """A tenth of a core and 200 MiB, of whatever it does not name."""
    assert placement().assumed == {"cpu": 100, "memory": 200 * MIB}
    assert placement({"requests": {"cpu": "1"}}).assumed == {"cpu": 1000, "memory": 200 * MIB}


def test_what_one_container_requests_says_nothing_of_another():
    """Each is assumed to need a little of what it does not name itself."""
    containers = [{"image": "web", "resources": {"requests": {"cpu": "1"}}}, {"image": "log"}]

    assert read_pod(spec={"containers": containers}).spec.placement.assumed == {"cpu": 1100, "memory": 400 * MIB}


def test_what_a_pod_requests_as_a_whole_stands_for_its_containers():
    """Of what it names; the figures of its containers alone are kept beside."""
    found = placement(resources={"requests": {"cpu": "2"}})

    assert found.assumed == {"cpu": 2000, "memory": 200 * MIB}
    assert found.assumed_of_containers == {"cpu": 100, "memory": 200 * MIB}


def test_nothing_is_assumed_of_what_a_container_requests_where_the_pod_requests_something_as_a_whole():
    """One container names its memory: then the other one is not taken to need any."""
    named = {"image": "web", "resources": {"requests": {"memory": "1Gi"}}}
    spec = {"containers": [named, {"image": "log"}], "resources": {"requests": {"cpu": "2"}}}

    assert read_pod(spec=spec).spec.placement.assumed == {"cpu": 2000, "memory": 1024 * MIB}


def test_what_a_pod_requests_of_something_else_as_a_whole_says_nothing_of_cpu_and_memory():
    """Each container still counts a little."""
    containers = [{"image": "web"}, {"image": "log"}]
    found = read_pod(spec={"containers": containers, "resources": {"requests": {"hugepages-2Mi": "4Mi"}}})

    assert found.spec.placement.assumed == {"cpu": 200, "memory": 400 * MIB, "hugepages-2Mi": 4 * MIB}


def test_a_pod_that_requests_nothing_as_a_whole_has_one_figure():
    """There is no other to keep."""
    assert placement({"requests": {"cpu": "1"}}).assumed_of_containers is None


def test_requests_without_sidecars_and_without_those_of_the_whole_pod_are_kept_beside():
    """Trimaran takes a sidecar for an init container that ends; kept only where there is one or the other."""
    main, sidecar = {"requests": {"cpu": "1"}}, {"resources": {"requests": {"cpu": "500m"}}, "restartPolicy": "Always"}
    start = {"resources": {"requests": {"cpu": "1200m", "memory": "1Gi"}}}
    whole = {"requests": {"cpu": "4"}}

    assert placement(main, initContainers=[start]).requests_of_containers is None
    assert placement(main, initContainers=[sidecar]).requests_of_containers == {"cpu": 1000}
    assert placement(main, resources=whole, overhead={"cpu": "50m"}).requests_of_containers == {"cpu": 1050}
    found = placement(main, initContainers=[sidecar, start], overhead={"cpu": "50m"})
    assert found.requests_of_containers == {"cpu": 1250, "memory": 1 << 30}


def test_what_older_schedulers_assume_of_a_running_pod_leaves_sidecars_out():
    """The larger of all containers, and of sidecars together or beside an init container; kept only with sidecars."""
    sidecar = {"resources": {"requests": {"cpu": "500m"}}, "restartPolicy": "Always"}
    start = {"resources": {"requests": {"cpu": "300m", "memory": "1Gi"}}}

    assert placement(initContainers=[start]).assumed_without_sidecars is None
    assert placement({"requests": {"cpu": "1"}}, initContainers=[sidecar]).assumed_without_sidecars == {
        "cpu": 1000,
        "memory": 200 * MIB,
    }
    found = placement({}, initContainers=[sidecar, start], overhead={"cpu": "50m"})
    assert found.assumed_without_sidecars == {"cpu": 850, "memory": 1 << 30}
    assert placement({}, initContainers=[start, sidecar]).assumed_without_sidecars == {"cpu": 500, "memory": 1 << 30}


def test_images_and_ports_are_kept_by_what_has_them():
    """Which of them count, the version of the scheduler says."""
    port = {"ports": [{"hostPort": 80}]}
    found = placement(
        initContainers=[{"image": "tool:2", **port}, {"image": "side", "restartPolicy": "Always", **port}],
        volumes=[{"name": "v", "image": {"reference": "model:1"}}],
    )

    assert (found.images, found.init_images) == (("web:latest",), ("tool:2", "side:latest"))
    assert found.volume_images == ("model:1",)
    assert ([each.port for each in found.host_ports], [each.port for each in found.sidecar_ports]) == ([], [80])
