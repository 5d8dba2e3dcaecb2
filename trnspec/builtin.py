"""trnspec itself, told as a plugin: it has no door that others have not."""

from __future__ import annotations

from trnspec.checks.codes import CODES
from trnspec.checks.rules import derived, names, plausibility, provenance, ratios, topology, totals, transformers, units
from trnspec.loading.files import shipped
from trnspec.plugins.api import API, Command, Evaluator, Plugin
from trnspec.plugins.builtin_commands import COMMANDS
from trnspec.plugins.builtin_kinds import KINDS

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
        totals.aggregate_mismatch,
        provenance.self_contradiction,
        derived.derived_mismatch,
        transformers.parameter_count,
        transformers.impossible_dimensions,
        topology.topology_size_mismatch,
        topology.degree_mismatch,
        topology.topologies_differ,
        units.decimal_memory,
        plausibility.sparse_below_dense,
        plausibility.narrow_type_slower,
        plausibility.dma_below_memory,
        plausibility.implausible_ridge,
        ratios.ratio_mismatch,
        plausibility.tensor_above_chip,
    ),
    codes=CODES,
    catalogs=(shipped(),),
    evaluators=(
        Evaluator(
            "accuracy",
            "Errors of computed times against published measurements.",
            "trnspec.evaluators.accuracy:run",
            rows=True,
        ),
        Evaluator(
            "collective",
            "Time of a collective: each algorithm, and a lower bound.",
            "trnspec.evaluators.collective:run",
        ),
        Evaluator(
            "memory",
            "Memory per rank, whether it fits, and changes that fit.",
            "trnspec.evaluators.memory:run",
        ),
        Evaluator(
            "roofline",
            "Attainable rate of a kernel or a model on one chip, and its bottleneck.",
            "trnspec.evaluators.roofline:run",
        ),
        Evaluator(
            "inference",
            "Serving: TTFT, TPOT, throughput and memory.",
            "trnspec.evaluators.inference:run",
        ),
        Evaluator(
            "search",
            "Fastest training layouts that fit in memory.",
            "trnspec.evaluators.search:run",
            rows=True,
        ),
        Evaluator(
            "training", "Time of a training step with its breakdown, MFU and memory.", "trnspec.evaluators.training:run"
        ),
    ),
    commands=tuple(Command(name, summary, f"trnspec.cli.{name}:command") for name, summary in COMMANDS.items()),
)
