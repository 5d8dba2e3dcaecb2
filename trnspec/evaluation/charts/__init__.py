"""The charts of evaluations and of grids of values."""
