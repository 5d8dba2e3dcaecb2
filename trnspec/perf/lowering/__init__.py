"""Documents to arrays: ``lower``, ``system``, ``machine``, ``efficiency``, ``calibrated`` and ``lookup``."""
