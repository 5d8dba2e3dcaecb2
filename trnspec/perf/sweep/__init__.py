"""Many configurations at once: ``batch`` is the entry; ``columns``, ``lookup``, ``grid``, ``rows``, ``reductions``."""
