"""Random policies that are valid, over all strategies."""

from random import Random
from typing import Any

import yaml

Object = dict[str, Any]

_STRATEGIES = [
    (point, name, args)
    for point, strategies in yaml.safe_load("""
deschedule:
  PodLifeTime: [{maxPodLifeTimeSeconds: 200000}, {states: [Pending, Failed]}]
  RemoveFailedPods: [{minPodLifetimeSeconds: 60}, {reasons: [Evicted]}]
  RemovePodsHavingTooManyRestarts: [{podRestartThreshold: 5}, {podRestartThreshold: 100}]
  RemovePodsViolatingNodeTaints: [{}, {includePreferNoSchedule: true}]
  RemovePodsViolatingNodeAffinity:
    - nodeAffinityType: [requiredDuringSchedulingIgnoredDuringExecution]
    - nodeAffinityType: [preferredDuringSchedulingIgnoredDuringExecution]
  RemovePodsViolatingInterPodAntiAffinity: [{}]
balance:
  RemoveDuplicates: [{}, {excludeOwnerKinds: [Job]}]
  RemovePodsViolatingTopologySpreadConstraint:
    - constraints: [DoNotSchedule, ScheduleAnyway]
    - topologyBalanceNodeFit: false
  LowNodeUtilization:
    - {thresholds: {cpu: 20, pods: 30}, targetThresholds: {cpu: 40, pods: 50}}
    - thresholds: {cpu: 30}
      targetThresholds: {cpu: 50}
      metricsUtilization: &usage {source: KubernetesMetrics, selection: relief}
    - {thresholds: {cpu: 10}, targetThresholds: {cpu: 10}, useDeviationThresholds: true, metricsUtilization: *usage}
  HighNodeUtilization:
    - thresholds: {cpu: 40}
    - {thresholds: {cpu: 40}, metricsUtilization: *usage}
    - {thresholds: {cpu: 60}, selection: compaction, keepFree: {cpu: 5}}
""").items()
    for name, args in strategies.items()
]
_EVICTOR: tuple[Object, ...] = (
    {"nodeFit": True},
    {"minReplicas": 3},
    {"minPodAge": "48h"},
    {"labelSelector": {"matchLabels": {"version": "v1"}}},
    {"noEvictionPolicy": "Mandatory"},
    {"priorityThreshold": {"value": 10}},
    {"podProtections": {"defaultDisabled": ["PodsWithLocalStorage", "DaemonSetPods", "FailedBarePods"]}},
    {"podProtections": {"extraEnabled": ["PodsWithoutPDB"]}},
)


def policy(dice: Random) -> Object:
    limits = {
        f"maxNoOfPodsToEvict{each}": dice.randint(0, 6)
        for each in ("PerNode", "PerNamespace", "Total")
        if dice.random() < 1 / 2
    }
    return {
        "apiVersion": "descheduler/v1alpha2",
        "kind": "DeschedulerPolicy",
        "metricsProviders": [{"source": "KubernetesMetrics"}],
        **limits,
        "profiles": [_profile(dice, f"profile{number}") for number in range(dice.choice((1, 1, 2)))],
    }


def _profile(dice: Random, name: str) -> Object:
    chosen = dice.sample(_STRATEGIES, dice.randint(1, 4))
    evictor = {key: value for each in dice.sample(_EVICTOR, dice.randint(0, 3)) for key, value in each.items()}
    configs = [{"name": strategy, "args": dice.choice(args)} for _, strategy, args in chosen]
    points = {
        point: {"enabled": [strategy for where, strategy, _ in chosen if where == point]}
        for point in ("deschedule", "balance")
    }
    return {"name": name, "pluginConfig": [{"name": "DefaultEvictor", "args": evictor}, *configs], "plugins": points}
