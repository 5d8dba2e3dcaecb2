"""The kind Model and what follows from its dimensions: matrices, parameter counts, contradictions."""
