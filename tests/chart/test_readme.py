"""The two commands by which the main README installs."""

import re
import shlex

from rebalancer import __version__
from tests.chart.helm import KUBERNETES, ROOT, container, helm, needed, objects

INSTALLATION = re.compile(r"^\$ (make image .*)\n\$ (helm install .*)$", re.MULTILINE)


@needed
def test_what_is_built_is_what_is_installed() -> None:
    """The image that the first command pushes is the one that the second command's chart asks for."""
    found = INSTALLATION.search((ROOT / "README.md").read_text())
    assert found is not None
    image = dict(each.split("=") for each in shlex.split(found[1])[2:])["IMAGE"]
    _, _, release, chart, *options = shlex.split(found[2])

    done = helm("template", release, ROOT / chart, *options, "--kube-version", KUBERNETES)

    assert done.returncode == 0, done.stderr
    assert container(list(objects(done.stdout)))["image"] == f"{image}:{__version__}"
