"""Label selectors, their text form, and node selector terms."""

from contextlib import nullcontext

import pytest

from rebalancer.cluster.selectors import (
    NodeSelectorTerm,
    Requirement,
    parse_label_selector,
    parse_selector_text,
)

LABELS = {"app": "web", "tier": "front", "cores": "8"}


@pytest.mark.parametrize(
    ("text", "matches"),
    [
        pytest.param("", True, id="nothing asked for"),
        pytest.param("  ", True, id="blanks are nothing"),
        pytest.param("app == web", True, id="equal with two signs and blanks"),
        pytest.param("! app", False, id="the key should not be there"),
        pytest.param("cores>7", True, id="greater"),
        pytest.param("cores<8", False, id="less is strict"),
        pytest.param("tier>1", False, id="a text is not a number"),
        pytest.param("zone=", False, id="an empty value is not an absent key"),
    ],
)
def test_text_selectors_mean_what_kubectl_takes_them_for(text: str, matches: bool) -> None:
    """Beside what a property shows of the syntax of `kubectl --selector`."""
    assert parse_selector_text(text).matches(LABELS) is matches


@pytest.mark.parametrize(
    "text",
    [",", "a,", "a b", "a=b c", "a in", "a in b", "a in (b", "a=(b)", "=b", "!", "a>x", "-a=b", "a=b!", "A/B/c=d"],
)
def test_other_texts_are_refused_and_quoted(text: str) -> None:
    with pytest.raises(ValueError, match="is not a label"):
        parse_selector_text(text)


@pytest.mark.parametrize(
    ("selector", "problem"),
    [
        pytest.param({"matchLabel": {}}, "unknown field `matchLabel`; .* has matchLabels", id="a misspelt key"),
        pytest.param({"matchLabels": {"a b": "c"}}, "'a b' is not a label key", id="a bad key"),
        pytest.param({"matchLabels": {"a": "-"}}, "'-' is not a label value", id="a bad value"),
        pytest.param({"matchLabels": {"a": 1}}, "Expected `str`, got `int`", id="a number for a value"),
        pytest.param({"matchLabels": ["a"]}, "Expected `object | null`", id="a list for the map"),
        pytest.param({"matchExpressions": [{"key": "a", "operator": "In"}]}, "needs values", id="In without values"),
        pytest.param(
            {"matchExpressions": [{"key": "a", "operator": "Exists", "values": ["b"]}]},
            "takes no values",
            id="Exists with values",
        ),
        pytest.param(
            {"matchExpressions": [{"key": "a", "operator": "Gt", "values": ["1"]}]},
            "'Gt'.*In, NotIn, Exists, Does",
            id="Gt",
        ),
        pytest.param({"matchExpressions": [{"key": "a", "op": "In"}]}, "unknown field `op`", id="a misspelt part"),
        pytest.param(
            {"matchExpressions": [{"key": "a" * 64, "operator": "Exists"}]}, "not a label key", id="a long key"
        ),
    ],
)
def test_bad_selector_objects_are_refused_in_words(selector: dict, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        parse_label_selector(selector)


def test_match_labels_and_expressions_add_up() -> None:
    selector = parse_label_selector(
        {"matchLabels": {"app": "web"}, "matchExpressions": [{"key": "tier", "operator": "NotIn", "values": ["back"]}]}
    )

    assert selector.matches(LABELS)
    assert not selector.matches({**LABELS, "tier": "back"})
    assert not selector.matches({"tier": "front"})


def test_null_parts_of_a_selector_are_absent() -> None:
    """The API server may write null for an empty list."""
    assert not parse_label_selector({"matchLabels": None, "matchExpressions": None})


def term(*expressions: Requirement, fields: tuple[Requirement, ...] = ()) -> NodeSelectorTerm:
    return NodeSelectorTerm(expressions, fields)


@pytest.mark.parametrize(
    ("asked", "matches"),
    [
        pytest.param(term(), False, id="an empty term matches no node"),
        pytest.param(term(Requirement("app", "In", ("web",))), True, id="a label"),
        pytest.param(term(fields=(Requirement("metadata.name", "In", ("n1",)),)), True, id="the node's name"),
        pytest.param(term(fields=(Requirement("metadata.name", "NotIn", ("n1",)),)), False, id="not the node's name"),
        pytest.param(
            term(Requirement("app", "Exists"), fields=(Requirement("metadata.name", "In", ("n2",)),)),
            False,
            id="labels and fields must both hold",
        ),
        pytest.param(term(fields=(Requirement("spec.x", "In", ("n1",)),)), False, id="a field that does not exist"),
        pytest.param(term(Requirement("app", "Near", ("web",))), False, id="an operator that does not exist"),
        pytest.param(term(Requirement("cores", "Gt", ("7",))), True, id="more than"),
        pytest.param(term(Requirement("cores", "Gt", ("8",))), False, id="Gt is strict"),
        pytest.param(term(Requirement("cores", "Lt", ("9" * 30,))), False, id="a bound beyond 64 bits"),
        pytest.param(term(Requirement("cores", "Lt", ("9" * 5000,))), False, id="a bound beyond all limits"),
        pytest.param(term(Requirement("cores", "Gt", ("1", "2"))), False, id="two bounds"),
    ],
)
def test_node_selector_terms(asked: NodeSelectorTerm, matches: bool) -> None:
    """Whatever stands in a term, asking it is safe, and what Kubernetes does not know matches nothing."""
    assert asked.matches(LABELS, "n1") is matches


@pytest.mark.parametrize(
    ("key", "value", "valid"),
    [
        pytest.param("a" * 63, "", True, id="the longest name"),
        pytest.param("a" * 64, "", False, id="a name that is too long"),
        pytest.param("a" * 253 + "/b", "", True, id="the longest prefix"),
        pytest.param("a" * 254 + "/b", "", False, id="a prefix that is too long"),
        pytest.param("a", "b" * 63, True, id="the longest value"),
        pytest.param("a", "b" * 64, False, id="a value that is too long"),
    ],
)
def test_labels_are_as_long_as_kubernetes_allows(key: str, value: str, valid: bool) -> None:
    """A name and a value have 63 characters at most, a prefix 253; longer ones could never match."""
    with nullcontext() if valid else pytest.raises(ValueError, match="is not a label"):
        parse_label_selector({"matchLabels": {key: value}})
