"""Carrying moves out: the life of a PodMigration, step by step.   Decisions are pure; one module sends requests."""
