"""trnspec itself, told as a plugin: it has no door that others have not."""

from __future__ import annotations

from trnspec import catalog
from trnspec.codes import CODES
from trnspec.commands import COMMANDS
from trnspec.kinds import KINDS
from trnspec.plugin import API, Command, Evaluator, Plugin
from trnspec.rules import formulas, names, plausibility, provenance, ratios, sums, transformers, units, wiring

plugin = Plugin(
    name="trnspec",
    api=API,
    kinds=KINDS,
    rules=(
        names.name_not_file_name,
        provenance.unsourced_figure,
        provenance.misplaced_claim,
        provenance.conflict_without_verdict,
        provenance.superseded_figure,
        provenance.impossible_date,
        sums.aggregate_mismatch,
        provenance.self_contradiction,
        formulas.derived_mismatch,
        transformers.parameter_count,
        transformers.impossible_dimensions,
        wiring.topology_size_mismatch,
        wiring.degree_mismatch,
        wiring.topologies_differ,
        units.decimal_memory,
        plausibility.sparse_below_dense,
        plausibility.narrow_type_slower,
        plausibility.dma_below_memory,
        plausibility.implausible_ridge,
        ratios.ratio_mismatch,
        plausibility.tensor_above_chip,
    ),
    codes=CODES,
    catalogs=(catalog.shipped(),),
    evaluators=(
        Evaluator(
            "accuracy",
            "How far computed times lie from published measurements.",
            "trnspec.evaluators.accuracy:run",
            rows=True,
        ),
        Evaluator(
            "collective",
            "The time of a collective: every algorithm, and what none undercuts.",
            "trnspec.evaluators.collective:run",
        ),
        Evaluator(
            "memory",
            "The memory of a rank, whether it fits, and what would make it fit.",
            "trnspec.evaluators.memory:run",
        ),
        Evaluator(
            "roofline",
            "What a kernel or each part of a model can reach, and what binds it.",
            "trnspec.evaluators.roofline:run",
        ),
        Evaluator(
            "inference",
            "What serving a model takes: first token, every other token, throughput and memory.",
            "trnspec.evaluators.inference:run",
        ),
        Evaluator(
            "search",
            "The fastest layouts of a training run that fit into memory.",
            "trnspec.evaluators.search:run",
            rows=True,
        ),
        Evaluator(
            "training", "The time of a training step with its parts, MFU and memory.", "trnspec.evaluators.training:run"
        ),
    ),
    commands=tuple(Command(name, summary, f"trnspec.cli.{name}:command") for name, summary in COMMANDS.items()),
)
