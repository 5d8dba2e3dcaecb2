"""Evaluators: from a catalog and a question to an Evaluation, by way of the performance engine."""
