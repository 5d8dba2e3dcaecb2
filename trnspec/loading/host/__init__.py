"""Readers of what the tools of a driver print about the accelerators of a machine."""
