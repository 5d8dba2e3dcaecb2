"""Searches: numbered configurations, conditions on them, what is kept of them, and training layouts as such."""
