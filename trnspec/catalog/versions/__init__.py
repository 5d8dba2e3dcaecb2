"""Versions of a catalog.

``editions`` (frozen snapshots), ``as_of`` (a date), ``git`` (a revision), ``overlay`` and ``changes`` (what-if) and
``diff``.
"""
