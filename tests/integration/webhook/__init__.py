"""The webhook on a real control plane."""
