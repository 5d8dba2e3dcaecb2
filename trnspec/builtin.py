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
