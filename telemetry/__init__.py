"""What the product tells the outside: logs, metrics and probes. Imports nothing else of ours."""
