"""Figures as text with a unit: ``units``, ``grammar``, ``quantity`` (the printed value and its interval) and ``amount``."""
