"""From the catalog to numbers: the system, its calibrated efficiency, and the machine that formulas take."""
