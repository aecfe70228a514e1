"""Turns causes into text for people; reports, Events, logs and annotations on requests all use it.

To add a cause, add its code in `rebalancer.eviction.causes` and its words in one of the tables here.  A cause without
words is spelled out from its code and details: `FrozenNamespace` becomes `frozen namespace (namespace shop)`.
"""

import re

from rebalancer.engine.ledger import Notice
from rebalancer.eviction.causes import Cause, Code
from rebalancer.report.words.goes import GOES, over
from rebalancer.report.words.numbers import Figures, words
from rebalancer.report.words.stays import NODES, STAYS


def _still_in_progress(details: Figures) -> str:
    pods = ", ".join(details["pods"])
    return f"evictions still in progress, which count against the limits of this cycle: {pods}"


NOTICES = words(
    {
        Code.LANDED_ELSEWHERE: (
            "{waves} waves in a row landed elsewhere than foreseen, so steering ended: is there another scheduler, "
            "preemption, or a webhook that changes pods?"
        ),
        Code.LANDINGS_UNKNOWN: (
            "{pods} of {candidates} pods stay since it is not known where they would land: {reasons}"
        ),
        Code.BREAKER_OPEN: "the breaker lets one move be tried: {why}",
        Code.FORECAST_MISSED: (
            "only {hits} of the last {of} replacements landed where foretold, so nothing is balanced: is there another "
            "scheduler, or a webhook that changes pods?"
        ),
        Code.MORE_STAY_OVER: "{nodes} more nodes stay over, and nothing more may go that helps",
        Code.STAYS_OVER: lambda details: f"{over(details)}, and nothing more may go that helps",
        Code.STILL_IN_PROGRESS: _still_in_progress,
    }
)


_WORDS = {**GOES, **STAYS, **NODES, **NOTICES}


def text(cause: Cause) -> str:
    """Return a cause in words, with its details."""
    message = cause.details.get("message")
    if message is not None:
        return str(message)
    say = _WORDS.get(cause.code)
    return say(cause.details) if say else _spelled_out(cause)


def notice_text(notice: Notice) -> str:
    """Return a warning in words, with the name of who gives it."""
    return f"{notice.who}: {text(notice.cause)}" if notice.who else text(notice.cause)


def _spelled_out(cause: Cause) -> str:
    name = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", cause.code.value).lower()
    details = ", ".join(f"{key.replace('_', ' ')} {value}" for key, value in cause.details.items())
    return f"{name} ({details})" if details else name
