"""A real Kubernetes control plane on loopback, in seconds: for the demo, the tests and the benchmarks.

It is a plain customer of Kubernetes and imports nothing of the product, so that a mistake in the product
cannot hide in the thing that judges it.
"""
