"""The only door to the Kubernetes API: typed objects, client, reflector, lease, events."""
