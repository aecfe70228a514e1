"""Causes: why a pod should go, why it stays, and why a node does not take it, as a code with its details.

Text for people is made of causes in `rebalancer.report.words`, and nowhere else.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

import msgspec


class Code(StrEnum):
    """All causes that the program itself knows; the values are an interface (reports, metrics, Events)."""

    # Another package's strategy gave its cause as text.
    CUSTOM = "Custom"

    # Why a strategy wants a pod gone.
    ABOVE_MEAN = "AboveMean"
    ANTI_AFFINITY_VIOLATED = "AntiAffinityViolated"
    DUPLICATE = "Duplicate"
    FAILED = "Failed"
    IN_THE_WAY = "InTheWay"
    NODE_AFFINITY_VIOLATED = "NodeAffinityViolated"
    OVER_TARGET = "OverTarget"
    PREFERRED_ELSEWHERE = "PreferredElsewhere"
    STATE_MATCHES = "StateMatches"
    TAINT_NOT_TOLERATED = "TaintNotTolerated"
    TOO_MANY_RESTARTS = "TooManyRestarts"
    TOO_OLD = "TooOld"
    UNDERUTILIZED = "Underutilized"
    UNEVEN_SPREAD = "UnevenSpread"

    # Protections: why a pod stays whatever a strategy says.
    BARE_PODS = "BarePods"
    DAEMON_SET_PODS = "DaemonSetPods"
    FAILED_BARE_PODS = "FailedBarePods"
    LABEL_SELECTOR = "LabelSelector"
    LOCAL_STORAGE = "PodsWithLocalStorage"
    MALFORMED_NODES = "MalformedNodes"
    MALFORMED_PODS = "MalformedPods"
    MIN_POD_AGE = "MinPodAge"
    MIRROR_PODS = "MirrorPods"
    PREFER_NO_EVICTION = "PreferNoEviction"
    PRIORITY_THRESHOLD = "PriorityThreshold"
    PVC = "PodsWithPVC"
    RESOURCE_CLAIMS = "PodsWithResourceClaims"
    STATIC_PODS = "StaticPods"
    SYSTEM_CRITICAL_PODS = "SystemCriticalPods"
    TERMINATING_PODS = "TerminatingPods"
    WITHOUT_PDB = "PodsWithoutPDB"

    # Filters, limits, budgets and rest.
    AUTOSCALED = "Autoscaled"
    BACK_OFF = "BackOff"
    CLOSED = "Closed"
    DEFERRED = "Deferred"
    DO_NOT_DISRUPT = "DoNotDisrupt"
    FINISHING_JOB = "FinishingJob"
    FIRST_MOVE = "FirstMove"
    GONE = "Gone"
    IN_PROGRESS = "InProgress"
    LEAVING_NODE = "LeavingNode"
    MIN_REPLICAS = "MinReplicas"
    NAMESPACE_LABEL_SELECTOR = "NamespaceLabelSelector"
    NAMESPACE_LIMIT = "NamespaceLimit"
    NEWCOMER = "Newcomer"
    NO_PERMISSION = "NoPermission"
    NODE_FIT = "NodeFit"
    NODE_LIMIT = "NodeLimit"
    NOT_PLANNED = "NotPlanned"
    NOT_READY = "NotReady"
    OUTSIDE_WINDOW = "OutsideWindow"
    OWNER_SHARE = "OwnerShare"
    OWNER_STOPPED = "OwnerStopped"
    PAUSED = "Paused"
    PDB = "PDB"
    ROLLOUT = "Rollout"
    TOTAL_LIMIT = "TotalLimit"
    UNDONE = "Undone"
    WEBHOOK = "Webhook"
    YOUNG_NODE = "YoungNode"

    # Rules of balancing.
    FALLS_BY_ITSELF = "FallsByItself"
    HOLDS_NODE = "HoldsNode"
    KEEP_FREE = "KeepFree"
    NO_DESTINATION = "NoDestination"
    NO_USAGE = "NoUsage"
    NODE_GROUP = "NodeGroup"
    NOT_LASTING = "NotLasting"
    NOT_SELECTED = "NotSelected"
    NOT_WORTH = "NotWorth"
    YOUNGER_THAN_WINDOW = "YoungerThanWindow"

    # Why a node does not take a pod.
    ABOVE_CEILING = "AboveCeiling"
    ANTI_AFFINITY = "AntiAffinity"
    CORDONED = "Cordoned"
    HELD_NODE = "HeldNode"
    IDLE_NODE = "IdleNode"
    INSUFFICIENT = "Insufficient"
    NO_POD_SLOT = "NoPodSlot"
    NODE_AFFINITY = "NodeAffinity"
    OTHER_POOL = "OtherPool"
    OWN_NODE = "OwnNode"
    TAINT = "Taint"
    UNKNOWN_USAGE = "UnknownUsage"

    # What a person should know beside the evictions.
    FORECAST_MISSED = "ForecastMissed"
    LANDED_ELSEWHERE = "LandedElsewhere"
    LANDINGS_UNKNOWN = "LandingsUnknown"
    MEMORY_UNUSABLE = "MemoryUnusable"
    MORE_STAY_OVER = "MoreStayOver"
    STAYS_OVER = "StaysOver"
    STILL_IN_PROGRESS = "StillInProgress"


#: Protections that are on unless a policy's `defaultDisabled` lists them.
DEFAULT_PROTECTIONS = (Code.LOCAL_STORAGE, Code.SYSTEM_CRITICAL_PODS, Code.FAILED_BARE_PODS, Code.DAEMON_SET_PODS)
#: Protections that are off unless a policy's `extraEnabled` lists them.
EXTRA_PROTECTIONS = (
    Code.PVC,
    Code.WITHOUT_PDB,
    Code.RESOURCE_CLAIMS,
)


class Cause(msgspec.Struct, frozen=True):
    """A cause with what it was found by."""

    code: Code
    #: What was compared, by name: numbers, names, and lists and mappings of these.  Times are in seconds and their
    #: names end in `_seconds`; percentages are of what a node has allocatable.  Text from elsewhere (a server's answer,
    #: another package's strategy) is `message`.
    details: Mapping[str, Any] = {}

    def as_details(self) -> dict[str, Any]:
        """Return the cause as a detail of another one, or for a report: `code`, and its details beside it."""
        return {"code": self.code.value, **self.details}

    def with_details(self, **more: Any) -> "Cause":
        """Return the same cause with more details."""
        return Cause(self.code, {**self.details, **more})


def cause(code: Code, **details: Any) -> Cause:
    """Return a cause with these details."""
    return Cause(code, details)


def as_cause(given: Cause | str) -> Cause:
    """Return a cause; text, which strategies of other packages may give, becomes `Custom`."""
    return cause(Code.CUSTOM, message=given) if isinstance(given, str) else given
