"""What `multiprocessing` imports once, in the process from which all runs of the tests are forked: every library."""

import pkgutil
from importlib import import_module

import _hypothesis_pytestplugin
import coverage
import hypothesis
import pytest
import pytest_timeout

import rebalancer

#: Libraries that the tests use beside those of the program.
BESIDE = (_hypothesis_pytestplugin, coverage, hypothesis, pytest, pytest_timeout)

for each in pkgutil.walk_packages(rebalancer.__path__, "rebalancer."):
    if not each.name.endswith("__main__"):
        import_module(each.name)
