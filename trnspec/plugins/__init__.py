"""The plugin interface.

``api`` (what a plugin adds, and the registry), ``entry_points``, ``discovery``, ``validation``, ``failures``, ``selection``,
``scaffold``, and the built-in kinds and commands.
"""
