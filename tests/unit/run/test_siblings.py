"""Which pods are looked at to see the replacements of a wave."""

from rebalancer.run.seen_again import siblings_of
from tests import make


def pod(namespace, kind="ReplicaSet", template=None):
    labels = {"app": "a"} | ({"pod-template-hash": template} if template else {})
    owners = [make.owner("o", kind=kind)]
    return make.pod(f"{kind}-{template}", namespace=namespace, owners=owners, labels=labels)


def test_pods_of_replica_sets_are_found_by_the_hashes_of_their_templates():
    found = siblings_of([pod("shop", template="7f4"), pod("shop", template="5d9"), pod("db", template="1aa")])

    assert found == {"shop": "pod-template-hash in (5d9,7f4)", "db": "pod-template-hash in (1aa)"}


def test_where_one_pod_has_no_hash_all_pods_of_its_namespace_are_looked_at():
    """Of a ReplicaSet that no Deployment made, or of another controller, whatever labels its pods have."""
    assert siblings_of([pod("shop", template="5d9"), pod("shop")]) == {"shop": ""}
    assert siblings_of([pod("shop", template="5d9"), pod("shop", "StatefulSet", "5d9")]) == {"shop": ""}
    alone = make.pod("alone", namespace="db", owners=None, labels={"pod-template-hash": "5d9"})
    assert siblings_of([alone]) == {"db": ""}
