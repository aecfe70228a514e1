"""The kinds that every API server has, where it lists them, and plurals that are not regular."""

PLURALS = {
    "NodeMetrics": "nodes",
    "PodMetrics": "pods",
    "PriorityClass": "priorityclasses",
    "StorageClass": "storageclasses",
    "CSIStorageCapacity": "csistoragecapacities",
}
ALWAYS_SERVED = {
    "/api/v1/nodes": "Node",
    "/api/v1/pods": "Pod",
    "/api/v1/namespaces": "Namespace",
    "/api/v1/persistentvolumeclaims": "PersistentVolumeClaim",
    "/apis/policy/v1/poddisruptionbudgets": "PodDisruptionBudget",
    "/apis/scheduling.k8s.io/v1/priorityclasses": "PriorityClass",
    "/api/v1/persistentvolumes": "PersistentVolume",
    "/api/v1/services": "Service",
    "/api/v1/replicationcontrollers": "ReplicationController",
    "/apis/apps/v1/deployments": "Deployment",
    "/apis/apps/v1/replicasets": "ReplicaSet",
    "/apis/apps/v1/statefulsets": "StatefulSet",
    "/apis/batch/v1/jobs": "Job",
    "/apis/autoscaling/v2/horizontalpodautoscalers": "HorizontalPodAutoscaler",
    "/apis/storage.k8s.io/v1/storageclasses": "StorageClass",
    "/apis/storage.k8s.io/v1/csinodes": "CSINode",
    "/apis/storage.k8s.io/v1/csidrivers": "CSIDriver",
    "/apis/storage.k8s.io/v1/csistoragecapacities": "CSIStorageCapacity",
    "/apis/storage.k8s.io/v1/volumeattachments": "VolumeAttachment",
}
