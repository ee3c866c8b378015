"""Benchmarks against peers: each is a module to be run, prints a table and can write JSON."""
