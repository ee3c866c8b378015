"""Watches the cluster, decides which pods should run elsewhere, and moves them safely."""
