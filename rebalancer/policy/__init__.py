"""What users write: the DeschedulerPolicy and its arguments, read, checked and turned into values.

Also the KubeSchedulerConfiguration, for clusters whose scheduler does not have the default configuration.  What is
computed from arguments stands in the packages that use them.  No file is opened here, no cluster is asked, and no
strategy is known: the plugins that a policy may name are passed in.
"""
