"""docs/explanation/security.md: the limits it names are those of the code."""

from tests.support.programs import ROOT
from trnspec.catalog.frames import SQL_MEMORY, SQL_RESULT, SQL_SECONDS
from trnspec.checks.rules import topology
from trnspec.cli import eval as eval_
from trnspec.evaluators.planning import training
from trnspec.loading import measured, settings
from trnspec.loading.schema import check
from trnspec.model.annotations import MOST_PATHS
from trnspec.model.document import PathText
from trnspec.output.exporters import link_table, svg
from trnspec.perf.collectives import groups
from trnspec.plugins import discovery, failures
from trnspec.yaml import ReadingLimits

LIMITS = {
    "size of a document": f"{ReadingLimits().bytes // 1_000_000} MB",
    "depth of a document": f"{ReadingLimits().depth}",
    "keys and values of a document": f"{ReadingLimits().nodes:,}",
    "one key or text": f"{ReadingLimits().scalar:,} characters",
    "listed findings per code, for reading and structuring a file": f"{ReadingLimits().problems}",
    "structure errors per document": f"{check._MOST:,}",
    "a table of measurements": f"{measured.MOST_BYTES // 1_000_000} MB",
    "integers": "64 bits",
    "a path with alternatives, `{a,b}`": f"{PathText.__metadata__[0].longest} characters, {MOST_PATHS} paths",
    "`trnspec.toml`, `pyproject.toml`": f"{settings._MOST_BYTES // 1_000_000} MB",
    "chips of a compared topology": f"{topology.MOST_CHIPS:,}",
    "links of an exported fabric": f"{link_table.MOST_LINKS:,}",
    "chips of a diagram": f"{svg.MOST:,}",
    "ranks of a group, of a fabric": f"{groups.MOST_RANKS:,}, {groups.MOST_FABRIC_RANKS:,}",
    "chips of a training plan without a count": f"{training.MOST_CHIPS:,}",
    "combinations of a sweep with one evaluation each": f"{eval_.MOST:,}",
    "SQL": f"SELECT; {SQL_SECONDS:g} s, {SQL_MEMORY} MB, a result of {SQL_RESULT} MB",
    "import of a plugin": f"{discovery.SECONDS:g} s (`TRNSPEC_PLUGIN_SECONDS`)",
    "one call of a rule of a plugin": f"{failures.RULE_SECONDS:g} s (`TRNSPEC_RULE_SECONDS`)",
    "wait for another freeze in the same folder": "30 s",
}


def test_limits() -> None:
    page = (ROOT / "docs" / "explanation" / "security.md").read_text("utf-8")
    table = page.partition("## Limits")[2].partition("## Tests")[0]
    rows = [line.strip("| ").split(" | ") for line in table.splitlines() if line.startswith("| ")][1:]

    assert {row[0]: row[1] for row in rows} == LIMITS
