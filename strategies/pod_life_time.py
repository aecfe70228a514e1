"""PodLifeTime: evict pods that have lived too long, or that are in a state they should not stay in.

Every criterion that is given must hold; at least one of maxPodLifeTimeSeconds, states, conditions and exitCodes must
be given.  Pods of every phase are looked at, and the oldest of the whole cluster go first.  With only an age, pods
that have succeeded or failed are evicted too.

A state matches the pod's phase, its status reason, or the current waiting or terminated reason of a container.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import ClassVar, Literal

from rebalancer import api

#: The words that a policy may use for the state of a pod: the descheduler's list, which is closed.
Phase = Literal["Running", "Pending", "Succeeded", "Failed", "Unknown"]
PodReason = Literal["NodeAffinity", "NodeLost", "Shutdown", "UnexpectedAdmissionError"]
Waiting = Literal["PodInitializing", "ContainerCreating", "ImagePullBackOff", "CrashLoopBackOff", "ErrImagePull"]
NotCreated = Literal["CreateContainerConfigError", "CreateContainerError", "InvalidImageName"]
Ended = Literal["OOMKilled", "Error", "Completed", "DeadlineExceeded", "Evicted", "ContainerCannotRun", "StartError"]


class OwnerKinds(api.IncludeOrExclude):
    """Kinds of owners: either at least one of these, or none of those."""

    def selects(self, pod: api.Pod) -> bool:
        """Tell whether the pod's owners are of the kinds asked for."""
        kinds = {owner.kind for owner in pod.owners}
        return (not self.include or not kinds.isdisjoint(self.include)) and kinds.isdisjoint(self.exclude)


class PodCondition(api.Part):
    """A pod condition; every field that is given must match the same condition."""

    type: str = api.Field("", description="The condition's type.")
    status: str = api.Field("", description="Its status: True, False or Unknown.")
    reason: str = api.Field("", description="Its reason.")
    min_time_since_last_transition_seconds: api.Count | None = api.Field(
        None, description="The condition has stood for at least so long."
    )

    @api.model_validator(mode="after")
    def _not_empty(self) -> "PodCondition":
        if not (self.type or self.status or self.reason) and self.min_time_since_last_transition_seconds is None:
            raise ValueError("a condition needs type, status, reason or minTimeSinceLastTransitionSeconds")
        return self

    def matches(self, condition: api.Condition, now: datetime) -> bool:
        """Tell whether this condition of a pod is meant."""
        wanted = (self.type, self.status, self.reason)
        present = (condition.type, condition.status, condition.reason)
        if any(word and word != other for word, other in zip(wanted, present, strict=True)):
            return False
        seconds = self.min_time_since_last_transition_seconds
        if seconds is None:
            return True
        stood = (now - condition.changed).total_seconds() if condition.changed else -1
        return stood >= 0 and int(stood) >= seconds


class PodLifeTimeArgs(api.PodArgs):
    """Which pods have lived too long."""

    owner_kinds: OwnerKinds = api.Field(OwnerKinds(), description="Kinds of owners: include or exclude.")
    max_pod_life_time_seconds: api.Count | None = api.Field(None, description="Pods older than this are evicted.")
    states: tuple[Literal[Phase, PodReason, Waiting, NotCreated, Ended], ...] = api.Field(
        (), strict=False, description="Phases and reasons, one of which must apply."
    )
    conditions: tuple[PodCondition, ...] = api.Field((), strict=False, description="One of these must apply.")
    exit_codes: tuple[api.Int, ...] = api.Field((), strict=False, description="A container ended with one of these.")
    including_init_containers: bool = api.Field(False, description="Look at init containers too.")
    including_ephemeral_containers: bool = api.Field(False, description="Look at ephemeral containers for states.")

    @api.model_validator(mode="after")
    def _some_criterion(self) -> "PodLifeTimeArgs":
        if self.max_pod_life_time_seconds is None and not (self.states or self.conditions or self.exit_codes):
            raise ValueError("give maxPodLifeTimeSeconds, states, conditions or exitCodes")
        return self


class PodLifeTime(api.Deschedule[PodLifeTimeArgs]):
    """Evict pods that have lived too long."""

    name = "PodLifeTime"
    Args = PodLifeTimeArgs
    example: ClassVar[Mapping[str, object]] = {
        "maxPodLifeTimeSeconds": 604800,
        "namespaces": {"exclude": ["kube-system"]},
    }

    def run(self, cluster: api.Cluster, evict: api.Evict) -> None:
        """Evict the pods that match, the oldest of the cluster first."""
        pods = [pod for pod in cluster.pods() if self.args.selects(pod)]
        found = [(pod, because) for pod in pods if (because := self._why(pod, cluster.now)) is not None]
        self._count(evict, len(pods), len(found))
        listed = [(pod, because) for pod, because in found if evict.evictable(pod, because)]
        evict.each(sorted(listed, key=lambda each: each[0].age_order))

    def _count(self, evict: api.Evict, pods: int, found: int) -> None:
        args = self.args
        age = args.max_pod_life_time_seconds
        if age is None or args.states or args.conditions or args.exit_codes or args.owner_kinds != OwnerKinds():
            evict.count({"pods": pods, "matching": found})
        else:
            evict.count({"pods": pods, "older": found}, age=age)

    def _why(self, pod: api.Pod, now: datetime) -> api.Cause | None:
        """Return what the pod matches; None if some criterion does not hold."""
        args = self.args
        details: dict[str, object] = {}
        if args.max_pod_life_time_seconds is not None:
            age = int(pod.age(now).total_seconds())
            if age <= args.max_pod_life_time_seconds:
                return None
            details |= {"age_seconds": age, "maximum_seconds": args.max_pod_life_time_seconds}
        for wanted, given, name in (
            (args.states, self._states, "states"),
            (args.exit_codes, self._exit_codes, "exit_codes"),
        ):
            if wanted:
                present = given(pod)
                details[name] = [each for each in wanted if each in present]
                if not details[name]:
                    return None
        if not args.owner_kinds.selects(pod):
            return None
        if args.conditions:
            standing = [each for each in pod.conditions if any(one.matches(each, now) for one in args.conditions)]
            if not standing:
                return None
            details["conditions"] = [{"type": one.type, "status": one.status, "reason": one.reason} for one in standing]
        return api.Cause(
            api.Code.STATE_MATCHES if args.max_pod_life_time_seconds is None else api.Code.TOO_OLD, details
        )

    def _states(self, pod: api.Pod) -> set[str]:
        args = self.args
        statuses = pod.statuses(init=args.including_init_containers, ephemeral=args.including_ephemeral_containers)
        return {pod.phase, pod.reason, *(each.waiting for each in statuses), *(each.terminated for each in statuses)}

    def _exit_codes(self, pod: api.Pod) -> set[int | None]:
        return {each.exit_code for each in pod.statuses(init=self.args.including_init_containers)}
