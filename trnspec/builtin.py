"""trnspec itself, told as a plugin: it has no door that others have not."""

from __future__ import annotations

from trnspec import catalog
from trnspec.codes import CODES
from trnspec.kinds import KINDS
from trnspec.plugin import API, Plugin
from trnspec.rules import formulas, names, plausibility, provenance, ratios, sums, units, wiring

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
)
