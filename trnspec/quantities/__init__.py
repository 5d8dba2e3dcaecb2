"""Quantities: ``units``, ``grammar``, ``quantity`` (a printed value and its interval), ``amount`` and ``arithmetic``."""
