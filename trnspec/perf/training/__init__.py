"""The time of a training step: coefficients by layout and machine, their sum, and the estimator of a model and a system."""
