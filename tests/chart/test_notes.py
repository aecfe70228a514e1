"""What helm prints after an installation: what will happen, how to see it first, how to stop it."""

import json
import shutil

import pytest

from rebalancer.policy.values import LEVELS
from tests.chart.helm import CHART, helm, needed, objects

pytestmark = needed

#: Only an installation prints notes; so here they are an object of a copy of the chart.
_SHOWN = '{{{{- define "notes" }}}}{notes}{{{{- end }}}}\nkind: Notes\ntext: {{{{ include "notes" . | toJson }}}}\n'


@pytest.fixture(scope="module")
def chart(tmp_path_factory):
    copy = tmp_path_factory.mktemp("notes") / "rebalancer"
    shutil.copytree(CHART, copy)
    notes = copy / "templates" / "NOTES.txt"
    (copy / "templates" / "notes.yaml").write_text(_SHOWN.format(notes=notes.read_text()))
    return copy


def notes(chart, values="", *options):
    done = helm(
        "template", "evener", chart, "--values", "-", "--namespace", "kube-system", "--kube-version", "1.36.0",
        "--show-only", "templates/notes.yaml", "--set", "image.repository=registry.example/x", *options, text=values,
    )  # fmt: skip
    (shown,) = objects(done.stdout)
    return str(shown["text"])


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ("", 'One run at each "*/10 * * * *", never two at once, each ended after 540 s.'),
        ("suspend: true", "Nothing: the CronJob is suspended"),
        ("kind: Job", "One run, now."),
        ("kind: Deployment", "One cycle every 5m, for as long as the Deployment is there."),
        ("dryRun: true", "Nothing is evicted: these are dry runs."),
        ("", "Pods that a cycle evicts at most: 10 in all, 2 from a node, 5 from a namespace."),
        ("deschedulerPolicy: {profiles: [{}]}", "any number from a node, any number from a namespace."),
        (
            "deschedulerPolicy: {maxNoOfPodsToEvictTotal: 0, profiles: [{}]}",
            "Pods that a cycle evicts at most: 0 in all,",
        ),
        ("deschedulerPolicy: {maxNoOfPodsToEvictTotal: 5%, profiles: [{}]}", "5% of the pods in all, any number from"),
        ("", "The policy is the preset safe."),
        ("policy: {text: 'profiles: []'}", "The policy is policy.text of your values."),
        ("deschedulerPolicy: {profiles: [{}]}", "The policy is deschedulerPolicy of your values."),
        ("policy: {configMapName: ours}", "The policy is in your ConfigMap ours."),
        ("policy: {configMapName: ours}", "kubectl get configmap ours --namespace kube-system -o yaml | rebalancer"),
    ],
)
def test_what_will_happen(chart, values, sentence):
    """In words, with the numbers of this installation."""
    assert sentence in notes(chart, values)


@pytest.mark.parametrize(("appetite", "level"), LEVELS.items())
def test_the_limit_of_an_appetite_is_told(chart, appetite, level):
    """Unless the policy has its own."""
    shown = notes(chart, f"deschedulerPolicy: {{appetite: {appetite}, profiles: [{{}}]}}")
    own = notes(chart, f"deschedulerPolicy: {{appetite: {appetite}, maxNoOfPodsToEvictTotal: 3, profiles: [{{}}]}}")

    assert f"evicts at most: {level.most or 'any number'} in all, any number from a node" in shown
    assert ("sets no limit" in shown) == (level.most is None)
    assert "evicts at most: 3 in all" in own


def test_how_to_see_it_first_and_how_to_stop_it(chart):
    """Commands with the names of this installation."""
    cron_job, deployment = notes(chart), notes(chart, "kind: Deployment")

    see = (
        "kubectl get configmap evener-rebalancer --namespace kube-system -o yaml | rebalancer run --policy - --dry-run"
    )
    assert see in cron_job
    assert (
        "kubectl create job --from=cronjob/evener-rebalancer evener-rebalancer-now --namespace kube-system" in cron_job
    )
    assert "kubectl patch cronjob evener-rebalancer --namespace kube-system --patch" in cron_job
    assert "kubectl scale deployment evener-rebalancer --namespace kube-system --replicas 0" in deployment
    assert "helm uninstall evener --namespace kube-system" in cron_job


@pytest.mark.parametrize(
    ("values", "options", "warning"),
    [
        ("", ["--set", "image.repository=localhost/kube-rebalancer"], "which no registry has"),
        ("", ["--set", "image.repository=mirror.example/descheduler/descheduler"], "the descheduler's own image"),
        ("deschedulerPolicy: {profiles: [{}]}", [], "the policy sets no limit on evictions"),
        ("", [], "does not serve metrics.k8s.io"),
        ("{kind: Deployment, leaderElection: {enabled: true}, dryRun: true}", [], "leader election has no effect"),
    ],
)
def test_what_is_to_be_minded(chart, values, options, warning):
    shown = notes(chart, values, *options)

    (paragraph,) = [each for each in shown.split("\n\n") if warning in each]
    assert paragraph.strip().startswith("WARNING: ")


def test_nothing_is_warned_of_without_a_reason(chart):
    """With metrics-server and an image of one's own."""
    assert "WARNING" not in notes(chart, json.dumps({}), "--api-versions", "metrics.k8s.io/v1beta1")
