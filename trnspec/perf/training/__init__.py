"""A training step: ``costs``, ``communication``, ``step`` and ``estimator``."""
