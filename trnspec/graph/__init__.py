"""Resolved documents.

``graph``, ``paths`` and ``values`` (what a path means), ``totals``, ``provenance``, ``facts`` and ``fabrics``.
"""
