"""The manifests in examples/kubernetes, as the chart renders them.

`python -m tests.chart.examples` writes them anew.
"""

import re
from collections.abc import Mapping

from tests.chart.helm import ROOT, rendered

FOLDER = ROOT / "examples" / "kubernetes"
_IMAGE = "image: {repository: registry.example/kube-rebalancer}\n"
#: kubectl does not keep it up to date.
_CHECKSUM = re.compile(r"^ +annotations:\n +checksum/config:.*\n", re.MULTILINE)
_OF_HELM = ("app.kubernetes.io/managed-by:", "helm.sh/chart:", "# Source:")


def examples() -> Mapping[str, str]:
    return {
        "rbac.yaml": _of("", "serviceaccount", "rbac"),
        "policy.yaml": _of("", "configmap"),
        **{f"{kind.lower()}.yaml": _of(f"kind: {kind}", kind.lower()) for kind in ("CronJob", "Job", "Deployment")},
    }


def _of(values: str, *templates: str) -> str:
    shown = [part for name in templates for part in ("--show-only", f"templates/{name}.yaml")]
    lines = _CHECKSUM.sub("", rendered(f"{_IMAGE}{values}", *shown)).splitlines()
    kept = [line for line in lines if not line.strip().startswith(_OF_HELM)]
    return "\n".join([*kept[1:], ""])


def main() -> None:
    for name, text in examples().items():
        (FOLDER / name).write_text(text)


if __name__ == "__main__":
    main()
