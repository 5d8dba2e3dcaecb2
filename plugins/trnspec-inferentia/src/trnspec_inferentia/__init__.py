"""AWS Inferentia and Inferentia2 for trnspec: a catalog and nothing else."""

from pathlib import Path

from trnspec import Plugin

plugin = Plugin(name="inferentia", api=1, catalogs=(Path(__file__).parent / "catalog",))
