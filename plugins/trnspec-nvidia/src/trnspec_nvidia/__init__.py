"""NVIDIA data-center GPUs for trnspec: a catalog and nothing else."""

from pathlib import Path

from trnspec import Plugin

plugin = Plugin(name="nvidia", api=1, catalogs=(Path(__file__).parent / "catalog",))
