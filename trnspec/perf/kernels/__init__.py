"""Kernels: the time of one operation on one chip."""
