"""The plugin interface.

``api``, ``discovery``, ``entry_points``, ``selection``, ``scaffold``, and the built-in kinds and commands.
"""
