"""``trnspec calibrate``: fits the achieved efficiencies of a chip to measurements."""

from __future__ import annotations

from functools import partial
from typing import Any

import click

from trnspec.cli.complete import documents
from trnspec.cli.help import GroupedCommand, GroupedOption

_measurements = partial(click.option, cls=GroupedOption, group="Measurements")
_output = partial(click.option, cls=GroupedOption, group="Output")


class _Calibrate(GroupedCommand):
    """``trnspec calibrate DATA.csv`` fits; ``trnspec calibrate import`` is a command of its own."""

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        """The context of the command that the arguments are for."""
        if args[:1] == ["import"]:
            from trnspec.cli.calibrate_import import command as import_

            return import_.make_context(f"{info_name} import", args[1:], parent, **extra)
        return super().make_context(info_name, args, parent, **extra)


@click.command(
    "calibrate",
    cls=_Calibrate,
    examples=(
        ("trnspec calibrate steps.csv --software Megatron-LM --rows", "Print the fit and the error of every row:"),
        (
            "trnspec calibrate steps.csv --software Neuron --catalog my-catalog --out my-catalog --name neuron --source acme-2026-10",
            "Write a calibration for each chip of the rows:",
        ),
        ("trnspec calibrate steps.csv --software Neuron --prior none", "A fit that starts from typical values:"),
        ("trnspec calibrate steps.csv --software Neuron --format json", "The parameters and errors, for programs:"),
    ),
)
@click.argument("files", metavar="DATA.csv...", nargs=-1, required=True, type=click.Path())
@_measurements(
    "--of",
    type=click.Choice(["training", "inference", "collectives"]),
    help="What to fit; the kind of the rows when left out.",
)
@_measurements("--software", metavar="TEXT", help="The software that ran: Megatron-LM.")
@_measurements(
    "--chip",
    "chips",
    multiple=True,
    metavar="NAME",
    shell_complete=documents("chips"),
    help="Only rows of this chip; may be repeated.",
)
@_measurements("--framework", metavar="NAME", help="The framework that ran, as --framework of eval names it: megatron.")
@_measurements(
    "--era",
    "eras",
    multiple=True,
    metavar="TEXT",
    help="Year or release with which the era of the software begins: 2026. May be repeated: a document for each, fitted together.",
)
@_measurements(
    "--models", type=click.Choice(["dense", "experts"]), help="Only rows of dense models, or of models with experts."
)
@_measurements("--only", metavar="REGEX", help="Only rows whose id matches.")
@_measurements("--also", metavar="REGEX", help="Rows that widen the interval but are not fitted.")
@_measurements(
    "--pool",
    is_flag=True,
    help="Serving with requests in flight: one fit to all chips and frameworks of the rows, which borrow from each "
    "other; a document for each of them.",
)
@_measurements(
    "--prior",
    metavar="NAME",
    default="auto",
    help="The calibration from which the fit starts, and near which it stays where the rows say little; none for typical "
    "values.  [default: auto, the nearest without one of the rows]",
)
@_output("--out", metavar="DIR", help="Add a fit for each chip to its list in this catalog folder.")
@_output(
    "--name",
    metavar="NAME",
    help="The name of the documents after the chip, before the models and what was measured.  [default: framework and era]",
)
@_output(
    "--source",
    metavar="NAME",
    shell_complete=documents("sources"),
    help="The source of the measurements, a document of the catalog.",
)
@_output(
    "--document",
    "written",
    multiple=True,
    metavar="CHIP",
    shell_complete=documents("chips"),
    help="Write only the document of this chip; may be repeated.",
)
@_output(
    "--transfer",
    metavar="PATH",
    help="Measurements, or a folder of them, whose rows outside the fit show how it transfers to other chips and other "
    "software.  [default: those of trnspec]",
)
@_output("--force", is_flag=True, help="Replace existing fits.")
@_output("--rows", "every", is_flag=True, help="Print every row with its error.")
@_output(
    "--format", type=click.Choice(["text", "json"]), default="text", help="How the result is printed.  [default: text]"
)
@click.option(
    "--catalog", cls=GroupedOption, group="Catalog", multiple=True, metavar="DIR",
    help="Also resolve names in this catalog; may be repeated.",
)  # fmt: skip
def command(files: tuple[str, ...], **options: Any) -> None:
    """Fit the achieved efficiencies of a chip to measured training steps, inference or collectives.

    The first line of DATA.csv names its columns; the column kind is required. A measured step is a row of kind train:
    model, hardware, n_chips, seq, global_batch, precision and step_time_s are required; tp, pp, dp, microbatch and
    others describe the parallelism. A measured deployment is a row of kind infer: model, hardware, n_chips, tp, isl,
    batch_conc, precision and tpot_ms are required; osl is with continuous batching; ttft_ms is fitted too. A measured
    collective is a row of kind collective: hardware, n_chips, collective, size_bytes and time_us are required. All columns are described in
    docs/reference/calibrate.md. Rows that cannot be evaluated are listed with the reason. The errors are printed of the
    fit, and of fits that held out the model of each row.

    A fit starts from the nearest calibration. For each parameter it prints the value of that prior, and how much the rows narrow
    it: 0% is the prior, 100% the rows alone. A warning lists the parameters that the rows do not determine.

    --document may name a chip without rows: the document then names the chips of its rows, and its errors and interval
    come from fits that held out one chip at a time, of which there must be at least two.

    trnspec calibrate import writes DATA.csv from logs and result files, see its --help.
    """
    from trnspec.cli.calibrate_fit import run

    run(files, options)
