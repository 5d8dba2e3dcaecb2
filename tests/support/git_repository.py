"""The real git in a folder of a test."""

from __future__ import annotations

import subprocess
from pathlib import Path


def git(where: Path, *args: str) -> str:
    settings = ("-c", "user.name=T", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false")
    done = subprocess.run(["git", "-C", str(where), *settings, *args], capture_output=True, check=True)
    return done.stdout.decode().strip()
