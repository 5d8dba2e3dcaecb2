"""Many configurations at once: sweeps over every combination of values, batches of unrelated rows, and reductions."""
