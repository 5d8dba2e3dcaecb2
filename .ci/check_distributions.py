"""Check the distributions in a folder: one version, metadata, licences, and the contents of each archive."""

from __future__ import annotations

import sys
import tarfile
import zipfile
from email.parser import Parser
from pathlib import Path

PLUGINS = ("cost", "ec2", "energy", "inferentia", "nvidia")
NAMES = {"trnspec", *(f"trnspec-{name}" for name in PLUGINS)}


def main(folder: Path) -> list[str]:
    """The faults of the distributions of a folder; empty if there are none."""
    faults = []
    versions = {}
    for file in sorted(folder.glob("*.whl")):
        with zipfile.ZipFile(file) as archive:
            members = archive.namelist()
            (metadata,) = (m for m in members if m.endswith(".dist-info/METADATA"))
            fields = Parser().parsestr(archive.read(metadata).decode())
        versions[fields["Name"]] = fields["Version"]
        faults += [
            f"{file.name}: {text}"
            for wrong, text in (
                (fields["License-Expression"] != "Apache-2.0", "the licence is not Apache-2.0"),
                (fields["Requires-Python"] != ">=3.11", "Requires-Python is not >=3.11"),
                (not any(m.endswith("/LICENSE") for m in members), "it has no LICENSE"),
                (not any(m.endswith("entry_points.txt") for m in members), "it has no entry point"),
                (
                    any("test" in m.split("/")[0] or m.endswith(".pyc") for m in members),
                    "it has tests or compiled files",
                ),
            )
            if wrong
        ]
    for file in sorted(folder.glob("*.tar.gz")):
        with tarfile.open(file) as archive:
            members = archive.getnames()
            if not any(m.endswith("/LICENSE") for m in members):
                faults.append(f"{file.name}: it has no LICENSE")
            if any(m.issym() for m in archive.getmembers()):
                faults.append(f"{file.name}: it has links")
    if set(versions) != NAMES or len(list(folder.glob("*.tar.gz"))) != len(NAMES):
        faults.append(f"the distributions are {sorted(versions)}, each with an sdist; expected {sorted(NAMES)}")
    licence = Path("LICENSE").read_bytes()
    faults += [
        f"{file} differs from LICENSE" for file in Path("plugins").glob("*/LICENSE") if file.read_bytes() != licence
    ]
    if len(set(versions.values())) != 1:
        faults.append(f"the versions differ: {versions}")
    return faults


if __name__ == "__main__":
    found = main(Path(sys.argv[1]))
    print("\n".join(found) or "distributions: versions, metadata, licences and contents are as expected")
    sys.exit(bool(found))
