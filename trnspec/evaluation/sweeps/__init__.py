"""Sweeps: ranges of values, figures as axes, evaluations of every combination, their pages and tables."""
