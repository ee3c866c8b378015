"""Our admission webhook beside two in Go: requests per second, latency, processor time and memory."""
