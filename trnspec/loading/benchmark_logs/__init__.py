"""Readers of the logs and result files of benchmarks and training frameworks: rows of a measurement table."""
