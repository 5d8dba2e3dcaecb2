"""Searches over layouts and deployments: inputs, constraints, configurations, parts on many machines, and results."""
