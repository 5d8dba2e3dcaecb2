"""Fits: robust least squares with priors and physical limits, pooled over chips and releases."""
