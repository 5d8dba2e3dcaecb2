"""Records and the command line for the tests of ``trnspec ec2``."""

from __future__ import annotations

import copy
import functools
import gzip
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import click.testing
import moto
import trnspec_ec2
from attrs import frozen
from trnspec_ec2.cli import ec2

from trnspec.api import graph
from trnspec.errors import TrnspecError

DATA = Path(__file__).parent / "data"
FILE = DATA / "moto-5.2.5.json"
"""The records of all trn and inf types, as moto 5.2.5 ships them; the API printed them."""

SOURCE = Path(trnspec_ec2.__file__).parent.parent


@functools.cache
def catalog():
    """The catalog that trnspec ships."""
    return graph()


@functools.cache
def _kept() -> dict[str, Any]:
    return {r["InstanceType"]: r for r in json.loads(FILE.read_text())["InstanceTypes"]}


def record(name: str) -> dict[str, Any]:
    """A copy of the record of a type, to be changed."""
    return copy.deepcopy(_kept()[name])


@functools.cache
def installed() -> dict[str, Any]:
    """The records of the moto that is installed."""
    file = Path(moto.__file__).parent / "ec2" / "resources" / "instance_types.json"
    packed = file.with_name(file.name + ".gz")
    return json.loads(gzip.decompress(packed.read_bytes()) if packed.exists() else file.read_bytes())


def put(data: Any, path: str, value: Any) -> Any:
    """Change the value at a path such as ``Gpus[0].Count``; returns what was there."""
    *steps, last = [int(s) if s.isdigit() else s for s in re.findall(r"[^.\[\]]+", path)]
    for step in steps:
        data = data[step]
    before, data[last] = data[last], value
    return before


@frozen
class Result:
    """How a run ended, and what it wrote."""

    status: int
    out: str
    err: str = ""


def run(*args: Any, stdin: bytes = b"") -> Result:
    """``trnspec ec2 ...`` in this process; anything but misuse that is raised fails the test."""
    try:
        done = click.testing.CliRunner().invoke(ec2, [str(a) for a in args], input=stdin, catch_exceptions=False)
    except (TrnspecError, OSError) as error:  # what the command line of trnspec makes one line of
        return Result(2, "", f"trnspec: {error}")
    return Result(done.exit_code, done.stdout, done.stderr)


class Site:
    """A folder in which the plugin is installed, and the command line that sees it."""

    def __init__(self, folder: Path) -> None:
        info = folder / "trnspec_ec2-0.1.0.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text("Metadata-Version: 2.1\nName: trnspec-ec2\nVersion: 0.1.0\n")
        (info / "entry_points.txt").write_text("[trnspec.plugins]\nec2 = trnspec_ec2:plugin\n")
        self.folder = folder

    def run(self, *args: Any, stdin: bytes = b"", cwd: Path | None = None) -> Result:
        """``trnspec ...`` in a process of its own."""
        path = os.pathsep.join([str(self.folder), str(SOURCE), *filter(None, [os.environ.get("PYTHONPATH")])])
        done = subprocess.run(
            [sys.executable, "-m", "trnspec", *map(str, args)],
            input=stdin,
            capture_output=True,
            check=False,
            cwd=cwd or self.folder,
            env={**os.environ, "PYTHONPATH": path, "TRNSPEC_PLUGINS": "ec2"},
            timeout=120,
        )
        return Result(done.returncode, done.stdout.decode(), done.stderr.decode())
