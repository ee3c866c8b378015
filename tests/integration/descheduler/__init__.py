"""The descheduler on a real control plane."""
