"""The counting of a transformer under the name by which the performance models know it."""

from __future__ import annotations

from trnspec.architecture.counting import active_parameters, dimensions, parameters, parameters_of

__all__ = ["active_parameters", "dimensions", "parameters", "parameters_of"]
