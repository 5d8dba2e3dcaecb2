"""Serves a built site to the programs of this machine."""

from __future__ import annotations

import functools
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path as FilePath
from typing import Any

from trnspec.errors import UsageError
from trnspec.site.build import DATA


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:
        """Print nothing."""


def server(folder: FilePath, port: int) -> ThreadingHTTPServer:
    """A server of the files of a site on the loopback interface.

    Args:
        folder: A built site.
        port: 0 for any free port.

    Raises:
        UsageError: The folder is not a site, or the port is in use.
    """
    if not (folder / DATA).is_file():
        raise UsageError(f"{folder} is not a site; build it with: trnspec site build {folder}")
    try:
        return ThreadingHTTPServer(("127.0.0.1", port), functools.partial(_Quiet, directory=str(folder)))
    except OSError as error:
        raise UsageError(f"cannot listen on port {port}: {error.strerror}; name another one with --port") from error
