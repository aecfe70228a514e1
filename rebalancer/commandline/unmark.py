"""The command `unmark`."""

import sys

import click

from rebalancer.commandline.options import context_option, kubeconfig_option, verbosity_option
from rebalancer.errors import UsageError
from rebalancer.foreign.printable import printable
from rebalancer.logs import set_up
