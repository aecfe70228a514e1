"""The kinds of the Prometheus operator, as far as the chart uses them, for a server to check objects by."""

from tests.chart.helm import Object

_GROUP = "monitoring.coreos.com"


def _map(**properties: Object) -> Object:
    return {"type": "object", "properties": properties}


def _list(items: Object) -> Object:
    return {"type": "array", "items": items}


_TEXT: Object = {"type": "string"}
_FLAG: Object = {"type": "boolean"}
_TEXTS: Object = {"type": "object", "additionalProperties": _TEXT}
_RELABELING = _map(
    action=_TEXT, regex=_TEXT, replacement=_TEXT, separator=_TEXT, sourceLabels=_list(_TEXT), targetLabel=_TEXT
)
_ENDPOINT: Object = {
    "scheme": _TEXT,
    "interval": _TEXT,
    "honorLabels": _FLAG,
    "tlsConfig": _map(insecureSkipVerify=_FLAG, serverName=_TEXT),
    "metricRelabelings": _list(_RELABELING),
    "relabelings": _list(_RELABELING),
}
_TARGETS: Object = {
    "jobLabel": _TEXT,
    "namespaceSelector": _map(matchNames=_list(_TEXT)),
    "selector": _map(matchLabels=_TEXTS),
}
_NUMBER_OR_NAME: Object = {"anyOf": [{"type": "integer"}, {"type": "string"}], "x-kubernetes-int-or-string": True}
_RULE = _map(alert=_TEXT, expr=_NUMBER_OR_NAME, labels=_TEXTS, annotations=_TEXTS, **{"for": _TEXT})

#: Kind, plural, and the schema of its `spec`.
_KINDS: tuple[tuple[str, str, Object], ...] = (
    ("ServiceMonitor", "servicemonitors", _map(**_TARGETS, endpoints=_list(_map(port=_TEXT, **_ENDPOINT)))),
    (
        "PodMonitor",
        "podmonitors",
        _map(**_TARGETS, podMetricsEndpoints=_list(_map(targetPort=_NUMBER_OR_NAME, **_ENDPOINT))),
    ),
    ("PrometheusRule", "prometheusrules", _map(groups=_list(_map(name=_TEXT, rules=_list(_RULE))))),
)
PATHS = {kind: f"/apis/{_GROUP}/v1/namespaces/{{namespace}}/{plural}" for kind, plural, _ in _KINDS}


def definitions() -> list[Object]:
    """Return a CustomResourceDefinition for each kind."""
    return [_definition(*each) for each in _KINDS]


def _definition(kind: str, plural: str, spec: Object) -> Object:
    schema = {"type": "object", "properties": {"spec": spec}}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names = {"kind": kind, "plural": plural, "singular": kind.lower(), "listKind": f"{kind}List"}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{_GROUP}"},
        "spec": {"group": _GROUP, "scope": "Namespaced", "names": names, "versions": [version]},
    }
