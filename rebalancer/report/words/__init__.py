"""Text for people, made of causes; reports, Events, logs and annotations on requests all take it from here.

To add a cause: its code in `rebalancer.eviction.causes`, and its words in the table of its kind here.
"""

from rebalancer.engine.ledger import Notice
from rebalancer.eviction.causes import Cause
from rebalancer.report.words.goes import GOES
from rebalancer.report.words.nodes import NODES
from rebalancer.report.words.notices import NOTICES
from rebalancer.report.words.stays import STAYS

_WORDS = {**GOES, **STAYS, **NODES, **NOTICES}


def text(cause: Cause) -> str:
    """Return a cause in words, with its figures."""
    message = cause.figures.get("message")
    return _WORDS[cause.code](cause.figures) if message is None else str(message)


def notice_text(notice: Notice) -> str:
    """Return a warning in words, with whose it is."""
    return f"{notice.who}: {text(notice.cause)}" if notice.who else text(notice.cause)
