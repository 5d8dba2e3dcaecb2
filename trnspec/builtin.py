"""trnspec itself as a plugin: its kinds, rules, evaluators, exporters, reporters and commands."""

from __future__ import annotations

from trnspec.checks.codes import CODES
from trnspec.checks.rules import (
    calibrations,
    dates,
    derived,
    measured_rates,
    measurements,
    model_families,
    names,
    peaks,
    plausibility,
    provenance,
    quote_conflicts,
    quotes,
    scenarios,
    software,
    topology,
    transformers,
    units,
    verdicts,
)
from trnspec.loading.files import shipped
from trnspec.plugins.api import API, Command, Evaluator, Exporter, Plugin, Reporter, Rule
from trnspec.plugins.builtin_commands import COMMANDS
from trnspec.plugins.builtin_kinds import KINDS

_EXPORTERS = "trnspec.output.exporters"
_REPORTERS = "trnspec.output.reporters"

_MODULES = (
    calibrations, dates, derived, measured_rates, measurements, model_families, names, peaks, plausibility, provenance, quote_conflicts,
    quotes, scenarios, software, topology, transformers, units, verdicts,
)  # fmt: skip
_RULES = {value for module in _MODULES for value in vars(module).values() if isinstance(value, Rule)}

plugin = Plugin(
    name="trnspec",
    api=API,
    kinds=KINDS,
    rules=tuple(sorted(_RULES, key=lambda rule: rule.code.id)),
    codes=CODES,
    catalogs=(shipped(),),
    evaluators=(
        Evaluator(
            "training",
            "Time of a training step with its breakdown, MFU and memory.",
            "trnspec.evaluators.training:run",
            trace="trnspec.evaluators.traces:trace",
            execution="trnspec.evaluators.traces:execution",
        ),
        Evaluator(
            "search",
            "Best layouts of training, or deployments for serving, that fit in memory.",
            "trnspec.evaluators.searching.report:run",
            rows=True,
        ),
        Evaluator(
            "plan-train",
            "Systems, counts and layouts of a training run: time, cost and energy.",
            "trnspec.evaluators.planning.training:run",
        ),
        Evaluator(
            "plan-serve",
            "Systems and their number that serve a request rate within limits of TTFT and TPOT.",
            "trnspec.evaluators.planning.serving:run",
        ),
        Evaluator(
            "memory",
            "Memory per rank, whether it fits, and changes that fit.",
            "trnspec.evaluators.memory:run",
        ),
        Evaluator(
            "inference",
            "Serving: TTFT, TPOT, throughput and memory.",
            "trnspec.evaluators.inference:run",
        ),
        Evaluator(
            "roofline",
            "Attainable rate of a kernel or a model on one chip, and its bottleneck.",
            "trnspec.evaluators.roofline:run",
        ),
        Evaluator(
            "collective",
            "Time of a collective: each algorithm, and a lower bound.",
            "trnspec.evaluators.collective:run",
        ),
        Evaluator(
            "accuracy",
            "Errors of computed times against published measurements.",
            "trnspec.evaluators.accuracy:run",
            rows=True,
        ),
    ),
    exporters=(
        Exporter(
            "json",
            ".json",
            "documents with all parts, totals and sources",
            one=f"{_EXPORTERS}.resolved:export",
            all=f"{_EXPORTERS}.resolved:export_all",
        ),
        Exporter("dot", ".dot", "the fabric of a system, for Graphviz", one=f"{_EXPORTERS}.dot:export"),
        Exporter("svg", ".svg", "the fabric of a system as a picture", one=f"{_EXPORTERS}.svg:export"),
        Exporter("calculon", ".json", "a system of calculon", one=f"{_EXPORTERS}.calculon:export"),
        Exporter("astra-sim", ".yml", "a network of astra-sim", one=f"{_EXPORTERS}.astra_sim:export"),
        Exporter(
            "llm-analysis",
            ".json",
            "a GPU configuration of llm-analysis",
            one=f"{_EXPORTERS}.llm_analysis:export",
            inline=False,
        ),
        Exporter("infragraph", ".yaml", "an infrastructure of InfraGraph", one=f"{_EXPORTERS}.infragraph:export"),
        Exporter("aiconfigurator", ".yaml", "a system of aiconfigurator", one=f"{_EXPORTERS}.aiconfigurator:export"),
        Exporter("blis", ".json", "a hardware entry of BLIS", one=f"{_EXPORTERS}.blis:export"),
    ),
    reporters=(
        Reporter("text", "findings with source lines, for people", f"{_REPORTERS}.text:report"),
        Reporter("json", "an object for programs", f"{_REPORTERS}.json_:report"),
        Reporter("sarif", "SARIF 2.1.0, for code scanning", f"{_REPORTERS}.sarif:report"),
        Reporter("github", "annotations of GitHub Actions", f"{_REPORTERS}.github:report"),
        Reporter("junit", "JUnit XML, for build servers", f"{_REPORTERS}.junit:report"),
    ),
    commands=tuple(Command(name, summary, f"trnspec.cli.{name}:command") for name, summary in COMMANDS.items()),
)
