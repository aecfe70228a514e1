"""What a person should know besides the evictions, in words."""

from rebalancer.eviction.causes import Code
from rebalancer.report.words.goes import over
from rebalancer.report.words.table import Figures, words


def _still_in_progress(figures: Figures) -> str:
    pods = ", ".join(figures["pods"])
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
        Code.MORE_STAY_OVER: "{nodes} more nodes stay over, and nothing more may go that helps",
        Code.STAYS_OVER: lambda figures: f"{over(figures)}, and nothing more may go that helps",
        Code.STILL_IN_PROGRESS: _still_in_progress,
    }
)
