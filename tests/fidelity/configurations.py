"""A scheduler configured otherwise: two profiles, other weights and strategies, plugins off."""

import yaml

from tests.e2e.api import Object

PROFILES = ("default-scheduler", "packer")

CONFIGURATION: Object = yaml.safe_load("""
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
percentageOfNodesToScore: 70
profiles:
  - schedulerName: packer
    plugins:
      score: {disabled: [{name: ImageLocality}], enabled: [{name: NodeResourcesFit, weight: 5}]}
      multiPoint: {enabled: [{name: NodeAffinity, weight: 7}], disabled: [{name: NodePorts}]}
    pluginConfig:
      - name: NodeResourcesFit
        args:
          scoringStrategy:
            type: MostAllocated
            resources: [{name: cpu, weight: 3}, {name: memory, weight: 1}, {name: example.com/gpu, weight: 2}]
      - {name: InterPodAffinity, args: {hardPodAffinityWeight: 17}}
      - name: PodTopologySpread
        args:
          defaultingType: List
          defaultConstraints: [{maxSkew: 1, topologyKey: rack, whenUnsatisfiable: ScheduleAnyway}]
  - schedulerName: default-scheduler
    pluginConfig:
      - name: NodeResourcesFit
        args:
          ignoredResources: [example.com/gpu]
          scoringStrategy:
            type: RequestedToCapacityRatio
            resources: [{name: cpu, weight: 2}, {name: memory, weight: 1}]
            requestedToCapacityRatio:
              shape: [{utilization: 0, score: 3}, {utilization: 45, score: 10}, {utilization: 100, score: 0}]
      - name: NodeResourcesBalancedAllocation
        args: {resources: [{name: cpu, weight: 1}, {name: memory, weight: 1}, {name: ephemeral-storage, weight: 1}]}
      - name: NodeAffinity
        args:
          addedAffinity:
            preferredDuringSchedulingIgnoredDuringExecution:
              - {weight: 30, preference: {matchExpressions: [{key: tier, operator: In, values: [bronze]}]}}
""")
