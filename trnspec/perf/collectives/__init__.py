"""Collectives.

``closed_forms``, and algorithms on a declared topology (``groups``, ``link_rates``, ``routes``, ``schedules``,
``algorithms``, ``bounds``, ``timing``).
"""
