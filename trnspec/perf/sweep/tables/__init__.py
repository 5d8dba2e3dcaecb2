"""Rows of a batch: formulas in tables, programs of the operations that are left, and machine code."""
