"""Measured rows: tables of published measurements, and every row as a case that can be computed, or skipped with a reason."""
