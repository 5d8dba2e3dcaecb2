"""Times of the language server, as an editor sees them: ``python benchmarks/lsp.py [--changes N]``.

A server process is started, documents of the shipped catalog are opened and changed, and each time is measured from the
message of the client to the diagnostics of that version of the document.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from lsprotocol import types
from pygls.lsp.client import LanguageClient

from trnspec.loading.files import shipped

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

FIRST = "chips/trainium2"
OTHERS = ("servers/trn2.48xlarge", "models/llama-3-8b", "ultraservers/trn2-ultraserver", "cores/neuroncore-v3")
LINES = 50_000


class Session:
    """A client, and the times at which diagnostics arrived."""

    def __init__(self) -> None:
        self.client = LanguageClient("benchmark", "1")
        self.published: asyncio.Queue[tuple[float, types.PublishDiagnosticsParams]] = asyncio.Queue()
        self.versions: dict[str, int] = {}

        @self.client.feature(types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)
        def keep(params: types.PublishDiagnosticsParams) -> None:
            self.published.put_nowait((time.perf_counter(), params))

    async def start(self) -> float:
        """The time until the server answers."""
        start = time.perf_counter()
        await self.client.start_io(sys.executable, "-m", "trnspec", "lsp")
        await self.client.initialize_async(types.InitializeParams(capabilities=types.ClientCapabilities()))
        self.client.initialized(types.InitializedParams())
        return time.perf_counter() - start

    def processor_seconds(self) -> float:
        """The processor time that the server has used; 0 where there is no ``/proc``."""
        process = self.client._server  # noqa: SLF001  # the client does not name it otherwise
        stat = Path(f"/proc/{process.pid}/stat") if process is not None else None
        if stat is None or not stat.exists():
            return 0.0
        fields = stat.read_text(encoding="utf-8").rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def write(self, uri: str, text: str) -> float:
        """Open or change a document; the time at which that was sent."""
        version = self.versions[uri] = self.versions.get(uri, 0) + 1
        start = time.perf_counter()
        if version == 1:
            item = types.TextDocumentItem(uri, "yaml", version, text)
            self.client.text_document_did_open(types.DidOpenTextDocumentParams(item))
        else:
            change = types.TextDocumentContentChangeWholeDocument(text)
            identifier = types.VersionedTextDocumentIdentifier(version, uri)
            self.client.text_document_did_change(types.DidChangeTextDocumentParams(identifier, [change]))
        return start

    async def diagnostics(self, uri: str, start: float, count: int) -> list[float]:
        """The times until the first ``count`` diagnostics of the newest version of a document, in ms."""
        times: list[float] = []
        while len(times) < count:
            when, params = await asyncio.wait_for(self.published.get(), 60)
            if (params.uri, params.version) == (uri, self.versions[uri]):
                times.append(1e3 * (when - start))
        return times


async def timed(request: Callable[[], Awaitable[object]], times: int = 20) -> float:
    """The median time of a request, in ms."""
    taken = []
    for _ in range(times):
        start = time.perf_counter()
        await request()
        taken.append(1e3 * (time.perf_counter() - start))
    return statistics.median(taken)


async def measure(changes: int) -> None:
    """Print the times."""
    session = Session()
    print(f"start of the server                        {1e3 * await session.start():7.0f} ms")
    catalog = shipped()
    file = catalog / f"{FIRST}.yaml"
    uri, text = file.as_uri(), file.read_text(encoding="utf-8")
    syntax, first, rules = await session.diagnostics(uri, session.write(uri, text), 3)
    print(f"first document: syntax, types              {syntax:7.0f} ms")
    print(f"first document: references, its own rules  {first:7.0f} ms  (the catalog is read)")
    print(f"first document: all rules                  {rules:7.0f} ms")
    for name in OTHERS:
        other = catalog / f"{name}.yaml"
        first, rules = await session.diagnostics(
            other.as_uri(), session.write(other.as_uri(), other.read_text(encoding="utf-8")), 2
        )
        print(f"another document: {name:30s} {first:7.0f} ms, all rules {rules:.0f} ms")
    taken = []
    used = session.processor_seconds()
    for number in range(changes):
        changed = text.replace("2.9 TB/sec", f"2.9{number} TB/sec")
        taken += await session.diagnostics(uri, session.write(uri, changed), 1)
        await asyncio.sleep(0.08)  # 12 keys in a second
    quantiles = statistics.quantiles(taken, n=20)
    print(f"after a change, of {changes}: median {statistics.median(taken):.1f} ms, 95 % {quantiles[-1]:.1f} ms")
    used = session.processor_seconds() - used
    print(f"processor time of the server for a change: {1e3 * used / changes:.1f} ms")
    while_running = []
    for number in range(10):
        start = session.write(uri, text.replace("2.9 TB/sec", f"2.8{number} TB/sec"))
        while_running += await session.diagnostics(uri, start, 1)
        await asyncio.sleep(0.25 + 0.03 * (number + 1))  # all rules are running
    print(f"after a change while all rules run: median {statistics.median(while_running):.1f} ms")
    _, rules = await session.diagnostics(uri, session.write(uri, text), 2)
    print(f"all rules, after a change                  {rules:7.0f} ms  (250 ms of it are the pause)")
    document = types.TextDocumentIdentifier(uri)
    line = text[: text.index("2.9 TB/sec")].count("\n")
    at = types.Position(line, 17)
    client = session.client
    hover = await timed(lambda: client.text_document_hover_async(types.HoverParams(document, at)))
    print(f"hover on a figure: {hover:.1f} ms")
    complete = await timed(lambda: client.text_document_completion_async(types.CompletionParams(document, at)))
    print(f"completion: {complete:.1f} ms")
    with tempfile.TemporaryDirectory() as folder:
        long = Path(folder) / "chips" / "long.yaml"
        long.parent.mkdir()
        claim = "  - {at: spec.sbuf, says: 1 MiB}\n"
        head = text[: text.index("claims:")] + "claims:\n"
        lines = head + claim * (900_000 // len(claim))
        await_first = await session.diagnostics(long.as_uri(), session.write(long.as_uri(), lines), 1)
        print(f"{lines.count(chr(10)):,} lines, {len(lines):,} bytes: {await_first[0]:.0f} ms")
    await client.shutdown_async(None)
    client.exit(None)
    await client.stop()


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--changes", type=int, default=60)
    asyncio.run(measure(parser.parse_args().changes))


if __name__ == "__main__":
    main()
