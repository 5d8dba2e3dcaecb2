"""Scores: measured values next to ideal, calibrated and held-out computed ones."""
