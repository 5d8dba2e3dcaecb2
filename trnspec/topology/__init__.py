"""Link graphs: shapes (torus, ring, chain, hypercube, mesh, switched), their measures, and whether two are the same.

Pure: text and numbers in, values out.  ``fabric`` is the graph, ``shapes`` and ``switched`` name graphs, ``measures``,
``bisection`` and ``rings`` count on them, ``compare`` decides sameness, ``parse`` reads what people print.  Only the
search for a bisection imports numpy, when it runs.
"""

from __future__ import annotations
