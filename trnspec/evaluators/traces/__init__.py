"""Traces of a training step: its timeline, and execution traces of its ranks."""
