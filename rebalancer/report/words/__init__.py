"""Turns causes into text for people; reports, Events, logs and annotations on requests all use it.

To add a cause, add its code in `rebalancer.eviction.causes` and its words in one of the tables here.  A cause without
words is spelled out from its code and figures: `FrozenNamespace` becomes `frozen namespace (namespace shop)`.
"""

import re

from rebalancer.engine.ledger import Notice
from rebalancer.eviction.causes import Cause
from rebalancer.report.words.goes import GOES
from rebalancer.report.words.nodes import NODES, NOTICES
from rebalancer.report.words.stays import STAYS

_WORDS = {**GOES, **STAYS, **NODES, **NOTICES}


def text(cause: Cause) -> str:
    """Return a cause in words, with its figures."""
    message = cause.figures.get("message")
    if message is not None:
        return str(message)
    words = _WORDS.get(cause.code)
    return words(cause.figures) if words else _spelled_out(cause)


def notice_text(notice: Notice) -> str:
    """Return a warning in words, with the name of who gives it."""
    return f"{notice.who}: {text(notice.cause)}" if notice.who else text(notice.cause)


def _spelled_out(cause: Cause) -> str:
    name = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", cause.code.value).lower()
    figures = ", ".join(f"{key.replace('_', ' ')} {value}" for key, value in cause.figures.items())
    return f"{name} ({figures})" if figures else name
