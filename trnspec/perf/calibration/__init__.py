"""Measurements, fits and scores: ``measured_*``, ``fit_*``, ``score`` and the calibration ``document``."""
