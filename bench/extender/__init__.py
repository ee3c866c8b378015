"""The scheduler extender beside a real kube-scheduler: what it costs, and what its weights do."""
