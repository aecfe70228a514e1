"""A call that takes too long keeps nobody."""

import threading

from rebalancer.kube.within import within


def test_the_program_may_end_while_a_call_hangs():
    """Its thread does not keep the process alive."""
    assert within(120, lambda: threading.current_thread().daemon)
