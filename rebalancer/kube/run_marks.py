"""The marks of one run: set as long as writes may begin, and taken off whatever happens."""

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial

from rebalancer.errors import ClusterError
from rebalancer.kube.answers import Transient
from rebalancer.kube.client import Client
from rebalancer.kube.deadline import Deadline
from rebalancer.kube.halt import Halt
from rebalancer.kube.many_nodes import on_each
from rebalancer.kube.marks import Keys, Mark, MarkedNode, Wanted, marked, without_run
from rebalancer.kube.node_marks import NodeMarks
from rebalancer.kube.retry_policy import RetryPolicy

#: For all nodes together: to set marks; and to take them off, which has less time than a pod has to end after SIGTERM.
SET_SECONDS = 60.0
TAKE_OFF_SECONDS = 20.0

#: How long an API server may still act on a request that it has not answered.
_DOUBT_SECONDS = 5.0

#: A change that met another's is tried again at once, or nearly.
CONFLICTS = RetryPolicy(first_wait=0.05, shortest_wait=0.01, longest_wait=2.0, tries_unconnected=1_000)

#: What went wrong, by the node's name.
Problems = Mapping[str, ClusterError]


class Taken(ClusterError):  # noqa: N818  named like the rest of the tree
    """The node carries the mark of another run that may still be at work."""


class RunMarks:
    """See the module.

    Args:
        client: the API server.
        keys: of the taints.
        mark: run and expiry of what is set; the keys follow from each node's level.
        halt: asked before every mark that is set; taking off has its own time.
        may_replace: tells whether another run's mark may be replaced by ours.
        retry_policy: how one node's change is tried again, and by which clock.
    """

    def __init__(
        self,
        client: Client,
        keys: Keys,
        mark: Mark,
        halt: Halt,
        may_replace: Callable[[Mark], bool],
        retry_policy: RetryPolicy = CONFLICTS,
    ) -> None:
        self._keys = keys
        self._mark = mark
        self._halt = halt
        self._may_replace = may_replace
        self._clock = retry_policy.clock
        self._sleep = retry_policy.sleep or time.sleep
        self._setter = NodeMarks(client, replace(retry_policy, stop=halt.signalled), halt.check)
        self._remover = NodeMarks(client, retry_policy)
        self._levels: dict[str, int] = {}
        self._doubts: dict[str, float] = {}

    def adjust(self, levels: Mapping[str, int]) -> Problems:
        """Let nodes carry marks at these levels, and no others; nodes that do already are not written to.

        Args:
            levels: by the node's name: 1 for one taint, 2 for both; 0 or absent for none.

        Returns:
            What went wrong, by the node's name.
        """
        wanted = {name: level for name, level in levels.items() if level}
        needless = {name: 0 for name in self._levels if name not in wanted}
        due = {name: level for name, level in (needless | wanted).items() if self._levels.get(name) != level}
        deadline = Deadline.after(SET_SECONDS, self._clock)
        return on_each(due, lambda name: self._adjust(name, due[name], deadline))

    def take_off(self) -> Problems:
        """Take off all that this run has set, or may have set, within 20 s; return where that failed."""
        deadline = Deadline.after(TAKE_OFF_SECONDS, self._clock)
        take_off = partial(self._take_off, deadline=deadline)
        problems = on_each(self._levels, take_off)
        if not self._doubts:
            return problems
        self._await_doubts()
        settled = {name: error for name, error in problems.items() if name not in self._doubts}
        return settled | on_each(self._doubts, take_off)

    def _adjust(self, name: str, level: int, deadline: Deadline) -> None:
        if not level:
            self._take_off(name, deadline)
            return
        self._levels[name] = -1  # from here on it may be marked, at whatever level
        mark = self._mark.of(self._keys.at(level))
        try:
            self._setter.change(name, partial(self._with, mark=mark), deadline)
        except Transient as error:
            if error.maybe_done:
                self._doubts[name] = self._clock()
            raise
        self._levels[name] = level

    def _with(self, node: MarkedNode, mark: Mark) -> Wanted:
        found = node.mark
        if found and found.run != mark.run and not self._may_replace(found):
            raise Taken(f"node {node.name} carries the mark of run {found.run}, which may be at work until it expires")
        return marked(node, mark, self._keys)

    def _take_off(self, name: str, deadline: Deadline) -> None:
        self._remover.change(name, partial(without_run, run=self._mark.run), deadline)
        self._levels.pop(name, None)

    def _await_doubts(self) -> None:
        """Wait until no request of ours that had no answer can still have an effect."""
        self._sleep(max(0.0, max(self._doubts.values()) + _DOUBT_SECONDS - self._clock()))
