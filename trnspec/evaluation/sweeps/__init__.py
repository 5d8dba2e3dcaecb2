"""Sweeps and searches: ranges of values, figures as axes, every combination, their pages and tables, many processes."""
