"""``trnspec calibrate``: fits the achieved efficiencies of a chip to measurements."""

from __future__ import annotations

from typing import Any

import click

from trnspec.cli.calibrate_fit import run
from trnspec.cli.calibrate_import import command as import_
from trnspec.cli.common import catalogs_option
from trnspec.cli.complete import documents
from trnspec.cli.help import GroupedCommand, documented, option
from trnspec.cli.render import formats


class _Calibrate(GroupedCommand):
    """``trnspec calibrate DATA.csv`` fits; ``trnspec calibrate import`` is a command of its own."""

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        """The context of the command that the arguments are for."""
        if args[:1] == ["import"]:
            return import_.make_context(f"{info_name} import", args[1:], parent, **extra)
        return super().make_context(info_name, args, parent, **extra)


@documented(
    "calibrate",
    ("trnspec calibrate steps.csv --software Megatron-LM --rows", "Print the fit and the error of every row:"),
    (
        "trnspec calibrate steps.csv --software Neuron --catalog my-catalog --out my-catalog --name neuron --source acme-2026-10",
        "Write a calibration for each chip of the rows:",
    ),
    ("trnspec calibrate steps.csv --software Neuron --prior none", "A fit that starts from typical values:"),
    ("trnspec calibrate steps.csv --software Neuron --format json", "The parameters and errors, for programs:"),
    cls=_Calibrate,
)
@click.argument("files", metavar="DATA.csv...", nargs=-1, required=True, type=click.Path())
@option(
    "--of",
    "Measurements",
    "What to fit; the kind of the rows when left out.",
    type=click.Choice(["training", "inference", "collectives"]),
)
@option("--software TEXT", "Measurements", "The software that ran: Megatron-LM.")
@option(
    "--chip NAME chips",
    "Measurements",
    "Only rows of this chip; may be repeated.",
    multiple=True,
    shell_complete=documents("chips"),
)
@option("--framework NAME", "Measurements", "The framework that ran, as --framework of eval names it: megatron.")
@option(
    "--era TEXT eras",
    "Measurements",
    "Year or release with which the era of the software begins: 2026. May be repeated: a document for each, fitted together.",
    multiple=True,
)
@option(
    "--models",
    "Measurements",
    "Only rows of dense models, or of models with experts.",
    type=click.Choice(["dense", "experts"]),
)
@option("--only REGEX", "Measurements", "Only rows whose id matches.")
@option("--also REGEX", "Measurements", "Rows that widen the interval but are not fitted.")
@option(
    "--pool",
    "Measurements",
    "Serving with requests in flight: one fit to all chips and frameworks of the rows, which borrow from each other; a "
    "document for each of them.",
)
@option(
    "--prior NAME",
    "Measurements",
    "The calibration from which the fit starts, and near which it stays where the rows say little; none for typical "
    "values.  [default: auto, the nearest without one of the rows]",
    default="auto",
    show_default=False,
)
@option("--out DIR", "Output", "Add a fit for each chip to its list in this catalog folder.")
@option(
    "--name NAME",
    "Output",
    "The name of the documents after the chip, before the models and what was measured.  [default: framework and era]",
)
@option(
    "--source NAME",
    "Output",
    "The source of the measurements, a document of the catalog.",
    shell_complete=documents("sources"),
)
@option(
    "--document CHIP written",
    "Output",
    "Write only the document of this chip; may be repeated.",
    multiple=True,
    shell_complete=documents("chips"),
)
@option(
    "--transfer PATH",
    "Output",
    "Measurements, or a folder of them, whose rows outside the fit show how it transfers to other chips and other "
    "software.  [default: those of trnspec]",
)
@option("--force", "Output", "Replace existing fits.")
@option("--rows every", "Output", "Print every row with its error.")
@formats("text", "json")
@catalogs_option()
def command(files: tuple[str, ...], **options: Any) -> None:
    """Fit the achieved efficiencies of a chip to measured training steps, inference or collectives.

    The first line of DATA.csv names its columns; the column kind is required. A measured step is a row of kind train:
    model, hardware, n_chips, seq, global_batch, precision and step_time_s are required; tp, pp, dp, microbatch and
    others describe the parallelism. A measured deployment is a row of kind infer: model, hardware, n_chips, tp, isl,
    batch_conc, precision and tpot_ms are required; osl is with continuous batching; ttft_ms is fitted too. A measured
    collective is a row of kind collective: hardware, n_chips, collective, size_bytes and time_us are required. All columns are described in
    docs/reference/calibrate.md. Rows that cannot be evaluated are listed with the reason. The errors of the fit
    are printed, and those of fits without the model of each row.

    A fit starts from the nearest calibration. For each parameter it prints the value of that prior, and how much the rows narrow
    it: 0% is the prior, 100% the rows alone. A warning lists the parameters that the rows do not determine.

    --document may name a chip without rows: the document then names the chips of its rows, and its errors and interval
    come from fits that held out one chip at a time, of which there must be at least two.

    trnspec calibrate import writes DATA.csv from logs and result files, see its --help.
    """
    run(files, options)
