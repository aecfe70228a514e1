"""The words that a policy may use for the state of a pod.

Source: the descheduler's list, which is closed: phases, reasons of a pod, and what its containers wait for or ended
with.
"""

PHASES = ("Running", "Pending", "Succeeded", "Failed", "Unknown")
POD_REASONS = ("NodeAffinity", "NodeLost", "Shutdown", "UnexpectedAdmissionError")
WAITING_REASONS = (
    "PodInitializing",
    "ContainerCreating",
    "ImagePullBackOff",
    "CrashLoopBackOff",
    "CreateContainerConfigError",
    "ErrImagePull",
    "CreateContainerError",
    "InvalidImageName",
)
TERMINATED_REASONS = (
    "OOMKilled",
    "Error",
    "Completed",
    "DeadlineExceeded",
    "Evicted",
    "ContainerCannotRun",
    "StartError",
)
POD_STATES = frozenset((*PHASES, *POD_REASONS, *WAITING_REASONS, *TERMINATED_REASONS))
