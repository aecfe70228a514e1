"""Policies that were damaged, by accident or on purpose: an error with its place, or a run; never a traceback."""

import json
import re
from random import Random

import pytest
import yaml

from rebalancer.run.policies import preset_directory
from tests.attack.random_clusters import cluster
from tests.attack.random_policies import policy
from tests.attack.seeds import seeds

_SCALARS = (
    *("null", "~", "", "-1", "0", "1e400", "-0.0", ".nan", "-.inf", "0x1F", "0o17", "1_000", "12:30:45", "2026-01-01"),
    *("9" * 40, "99999999999999999999", "9223372036854775808", "1e3", "true", "no", "Yes", "''", '"\\0"', '"\\u2028"'),
    *("[]", "{}", "[[]]", "{a: b}", "{? [a] : b}", "[1, two, ~]", "!!binary aGk=", "!!python/object:os.system x"),
    *("!!set {a}", "!!str 5", "!!int x", "!!timestamp x", "!odd x", "&a x", "*a", "<<", "{<<: {a: b}}", "=", "%x"),
    *("x" * 5000, "é", "\u202eabc", "\uff15", "5m", "-5m", "5", "1h1h", "9999999h", "a=b", "a==,b", "!", "a in (", "|"),
    *("PodLifeTime", "DefaultEvictor", "descheduler/v1alpha1", "descheduler/v1", "ConfigMap", "100", "101", "50.5"),
)
_TREES = (
    *(None, True, False, 0, -1, 2**63, 10**30, 1.5, float("nan"), float("inf"), "", " ", "x", "\0", "PodLifeTime"),
    *([], {}, [None], [[]], {"": None}, {1: 2}, {None: 1}, {True: 1}, [{}], {"include": ["a"], "exclude": ["a"]}),
    *({"matchLabels": {"a": 1}}, {"matchExpressions": [{"key": "a", "operator": "Near"}]}, {"cpu": 1e9}, {"cpu": "x"}),
)
_VALUE = re.compile(r"(?<=: )\S.*$", re.MULTILINE)
#: Every problem of a policy has a line; a file that is not text has no lines, and a byte for its place.
_STRICT = "is refused, since strict reading lets nothing pass that has no effect"
_PLACES = re.compile(rf"Error: policy \S+ ((?:cannot be used|{_STRICT}):(\n  line \d+[,:] .*)+|cannot be read: .+)\n")


def whole(dice):
    """A policy that is valid: a preset, or a random one."""
    if dice.random() < 1 / 3:
        return (preset_directory() / dice.choice(("demo.yaml", "usage-metrics-server.yaml"))).read_text()
    return yaml.safe_dump(policy(dice), sort_keys=False)


def damaged(dice, text):
    """Change the text in one or two places."""
    for _ in range(dice.choice((1, 1, 2))):
        text = dice.choice((_lines, _indentation, _value, _letters, _cut, _tree, _tree))(dice, text)
    return text


def _lines(dice, text):
    """Leave a line out, give it twice, or swap it with another."""
    lines = text.splitlines(keepends=True)
    if not lines:
        return text
    here, there = dice.randrange(len(lines)), dice.randrange(len(lines))
    lines[here] = dice.choice(("", lines[here] * 2, lines[there]))
    return "".join(lines)


def _indentation(dice, text):
    lines = text.splitlines(keepends=True)
    if not lines:
        return text
    here = dice.randrange(len(lines))
    lines[here] = dice.choice((" ", "  ", "\t", "- ", "? ", "---\n", "...\n")) + lines[here].lstrip(
        dice.choice((" ", ""))
    )
    return "".join(lines)


def _value(dice, text):
    values = list(_VALUE.finditer(text))
    if not values:
        return text
    chosen = dice.choice(values)
    return text[: chosen.start()] + dice.choice(_SCALARS) + text[chosen.end() :]


def _letters(dice, text):
    """Put signs in that mean something in YAML, or nothing anywhere."""
    here = dice.randrange(len(text) + 1)
    return (
        text[:here]
        + dice.choice(":-[]{},&*!|>'\"%@`#?\t\n\0\x07\x85\ufeff\u2028\ud7ff😀")
        + text[here + dice.randint(0, 2) :]
    )


def _cut(dice, text):
    return text[: dice.randrange(len(text) + 1)]


def _tree(dice, text):
    """Replace one value, or one key, wherever it is in the document."""
    try:
        document = yaml.safe_load(text)
    except (yaml.YAMLError, ValueError):
        return text
    places = list(_places(document))
    if not places:
        return text
    holder, key = dice.choice(places)
    if isinstance(holder, dict) and dice.random() < 1 / 4:
        holder[dice.choice(("x", "args", "name", "", 5, None, True, "profiles"))] = holder.pop(key)
    else:
        holder[key] = dice.choice(_TREES)
    return yaml.safe_dump(document, sort_keys=False, allow_unicode=True)


def _places(tree):
    pairs = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    for key, each in list(pairs):
        yield tree, key
        yield from _places(each)


@pytest.fixture(scope="module")
def snapshot(tmp_path_factory):
    """A cluster in a file."""
    path = tmp_path_factory.mktemp("cluster") / "cluster.json"
    path.write_text(json.dumps({"kind": "List", "apiVersion": "v1", "items": cluster(Random(0))}))
    return path


@pytest.mark.parametrize("seed", seeds(60))
def test_a_damaged_policy_is_an_error_with_its_place_or_a_run(rebalancer, snapshot, seed):
    """Exit code 2 and a line for each problem, or a report; 1 only if a strategy says what it lacks."""
    dice = Random(seed)
    path = rebalancer.folder / "policy.yaml"
    text = damaged(dice, whole(dice))
    path.write_bytes(text.encode(errors="surrogatepass"))

    outcome = rebalancer("run", "--policy", path, "--snapshot", snapshot, "--output", "json")

    if outcome.exit_code == 2:
        assert _PLACES.fullmatch(outcome.stderr), outcome.stderr
        assert outcome.stdout == ""
    else:
        failed = [each["error"] for each in outcome.report["strategies"] if each.get("error")]
        assert outcome.exit_code in ((0, 1) if failed else (0,))  # 0 if another strategy has evicted something
        assert all("metrics" in each for each in failed), failed
    assert "Traceback" not in outcome.stderr


@pytest.mark.parametrize("seed", seeds(10))
def test_bytes_that_are_no_text_are_an_error(rebalancer, seed):
    """Not even a damaged file is shown as a traceback."""
    dice = Random(seed)
    path = rebalancer.folder / "policy.yaml"
    whole_bytes = bytearray(whole(dice).encode())
    for _ in range(dice.randint(1, 5)):
        whole_bytes[dice.randrange(len(whole_bytes))] = dice.randrange(256)
    path.write_bytes(whole_bytes)

    outcome = rebalancer("validate", "--policy", path)

    assert outcome.exit_code in (0, 2)
    assert outcome.exit_code == 0 or _PLACES.fullmatch(outcome.stderr), outcome.stderr
