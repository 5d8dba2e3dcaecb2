"""Explanations of disagreements between figures.

``relations`` between ``sites``, the ``suspects`` of a failure, ``hypotheses`` on its cause, ``conflicts`` between
sources, and the ``audit``.
"""
