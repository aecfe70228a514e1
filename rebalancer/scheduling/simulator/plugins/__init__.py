"""kube-scheduler's plugins, one module each: which nodes each refuses, and how it scores the rest."""
