"""Calibration: tables of measurements, fits, scores, and the YAML document of a fit."""
