"""Flags of the descheduler that do nothing here are refused, never ignored."""

import pytest
from click.testing import CliRunner

from rebalancer.cli import main


@pytest.mark.parametrize("flag", ["--feature-gates=EvictionsInBackground=true", "--cert-dir=/tmp", "--vmodule=a=2"])
def test_a_flag_without_effect_is_refused(flag: str) -> None:
    """The run ends before it reads anything, and names the flag: nobody believes that it works."""
    result = CliRunner().invoke(main, ["run", "--policy", "demo", flag])

    assert (result.exit_code, result.stdout) == (2, "")
    assert "No such option" in result.stderr
    assert flag.partition("=")[0] in result.stderr
