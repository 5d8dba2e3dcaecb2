"""YAML files to a resolved graph.

``files``, ``selection``, ``settings``, ``schema``, ``structure``, ``precedence``, ``pipeline`` and ``index``.
"""
