"""Scenarios: named evaluations of a document, and their comparison."""
