"""Serving: ``forward_pass``, ``prefill``, ``decode`` and ``request``."""
