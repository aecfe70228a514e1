"""The image, built and run with buildah; as root, with a base image that is pulled or made of Debian's packages."""

import json
import os
import re
import shutil
from pathlib import Path

import pytest

from tests.commands import ROOT, run

IMAGE, OWN_BASE = "localhost/rebalancer-test", "localhost/rebalancer-test-base"
#: Without a daemon and without privileges of its own.
ISOLATED = {"BUILDAH_ISOLATION": "chroot"}
#: What a build may need to know of this machine to reach the packages.
_CONFIGURATION = [path for path in ("/etc/pip.conf", "/etc/ssl/certs") if Path(path).exists()]

pytestmark = pytest.mark.skipif(
    not shutil.which("buildah") or os.getuid() != 0, reason="there is no buildah, or this is not root"
)


def done(*arguments):
    """What buildah says of something that has to work."""
    return run("buildah", *arguments, env=ISOLATED).stdout.strip()


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    """The Dockerfile's own base where it can be pulled, else a Debian with Python."""
    named = re.findall("^ARG PYTHON=(.*)", (ROOT / "Dockerfile").read_text(), re.MULTILINE)[0]
    for wanted, command in ((named, ("pull",)), (OWN_BASE, ("inspect", "--type", "image"))):
        if run("buildah", *command, wanted, code=None, env=ISOLATED).returncode == 0:
            return wanted
    if not shutil.which("debootstrap"):
        pytest.skip(f"{named} cannot be pulled, and there is no debootstrap to make a base image with")
    root = tmp_path_factory.mktemp("base")
    packages = "--include=python3,python3-venv,ca-certificates"
    made = run("debootstrap", "--variant=minbase", packages, "bookworm", root, code=None)
    if made.returncode:
        pytest.skip(f"{named} cannot be pulled, and debootstrap fails: {made.stdout[-300:]}")
    container = done("from", "scratch")
    done("copy", "--quiet", container, str(root), "/")
    done("commit", "--quiet", "--rm", container, OWN_BASE)
    return OWN_BASE


@pytest.fixture(scope="module")
def container(base):
    """A container of the image; built as `make image` builds it."""
    mounted = [part for path in _CONFIGURATION for part in ("--volume", f"{path}:{path}:ro")]
    done("build", "--quiet", "--build-arg", f"PYTHON={base}", *mounted, "--tag", IMAGE, str(ROOT))
    made = done("from", IMAGE)
    yield made
    done("rm", made)
    done("rmi", IMAGE)


def test_the_image_runs_as_it_says(container):
    """Its entry point, as its user, and under the descheduler's name."""
    config = json.loads(done("inspect", container))["OCIv1"]["config"]

    assert (config["User"], config["Entrypoint"]) == ("1000:1000", ["rebalancer"])
    assert done("run", container, "--", "rebalancer", "--version") == done(
        "run", container, "--", "/bin/descheduler", "--version"
    ).replace("descheduler,", "rebalancer,")


def test_the_image_plans(container):
    """A dry run over the example cluster, with nothing but what the image holds."""
    mounted = f"{ROOT / 'examples'}:/examples:ro"
    command = ["rebalancer", "run", "--policy", "safe", "--snapshot", "/examples/cluster.json", "--output", "json"]

    report = json.loads(done("run", "--volume", mounted, container, "--", *command))

    assert report["evictions"]
