"""Output formats: ``exporters`` (documents for other programs) and ``reporters`` (findings and evaluations)."""
