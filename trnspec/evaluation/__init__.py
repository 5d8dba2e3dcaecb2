"""The evaluator contract: ``inputs``, ``result`` and ``runner``."""
