"""The cross-checks, one module per subject."""
