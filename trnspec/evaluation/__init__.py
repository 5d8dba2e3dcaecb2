"""The evaluator interface: ``questions`` and ``inputs``, ``runner``, ``result``."""
