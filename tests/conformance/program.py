"""The program as a person calls it: options in, exit code and report out."""

import json
import logging
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from click.testing import CliRunner, Result

from rebalancer.cli.main import main

USAGE_ERROR = 2


def run(policy: Mapping[str, Any], snapshot: str, now: str) -> Result:
    """Call `rebalancer run` on a policy, the text of a snapshot file and a time."""
    with TemporaryDirectory() as folder:
        files = {"policy.yaml": json.dumps(policy), "cluster.json": snapshot}
        for name, text in files.items():
            Path(folder, name).write_text(text)
        where = ("--policy-config-file", f"{folder}/policy.yaml", "--snapshot", f"{folder}/cluster.json")
        return _call("run", *where, "--now", now, "--output", "json")


def run_live(policy: Mapping[str, Any], kubeconfig: Path, *options: str) -> Result:
    """Call `rebalancer run` on a policy and a live cluster."""
    path = kubeconfig.with_name("policy.yaml")
    path.write_text(json.dumps(policy))
    return _call("run", "--yes", "--policy", str(path), "--kubeconfig", str(kubeconfig), "--output", "json", *options)


def validate(policy: str, *options: str) -> Result:
    """Call `rebalancer validate` on the text of a policy."""
    with TemporaryDirectory() as folder:
        path = Path(folder, "policy.yaml")
        path.write_text(policy)
        return _call("validate", "--policy", str(path), *options)


def _call(*arguments: str) -> Result:
    handlers = logging.root.handlers[:]
    try:
        return CliRunner(catch_exceptions=False).invoke(main, arguments)
    finally:  # the program logs to the stream of this very call
        logging.root.handlers[:] = handlers
