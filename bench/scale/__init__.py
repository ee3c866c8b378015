"""Whether one leader keeps up with the largest cluster that Kubernetes supports, by simulation."""
