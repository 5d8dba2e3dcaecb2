"""Link graphs: shapes (torus, ring, chain, hypercube, mesh, switched), their measures, and isomorphism.

Pure: text and numbers in, values out.  ``fabric`` is the graph, ``shapes`` and ``switched`` name graphs, ``measures``,
``bisection`` and ``rings`` count on them, ``compare`` decides isomorphism, ``parse`` reads published notations.  Only the
search for a bisection imports numpy, when it runs.
"""

from __future__ import annotations
