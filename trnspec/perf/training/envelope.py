"""The largest of some linear forms, found with a function that has one of those that are the largest at given points."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from attrs import frozen

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Integers = NDArray[np.int64]

_CLOSE = 1e-9
"""Values of forms that differ by less, relative to the coordinates of the point, are equal."""


@frozen(eq=False)
class Cone:
    """The points at which forms are compared: all positive combinations of some rays, as many as dimensions.

    Attributes:
        rays: Its edges.
        facets: Forms that are at least 0 within, each 0 on all rays but one.
    """

    rays: Integers
    facets: Integers


def envelope(
    largest: Callable[[NDArray[Any]], Integers], cone: Cone
) -> tuple[Integers, NDArray[np.float64], NDArray[np.intp]]:
    """The forms that are larger than all others somewhere in a cone, points where one is, and for each point which one.

    The epigraph of the forms that are known is a cone of one dimension more, whose edges are kept by the double description
    method (Motzkin et al. 1953; Fukuda and Prodon 1996).  The largest form is convex, so that all are known once no other one
    is larger on these edges.  All numbers are whole.

    Args:
        largest: For points, one per row, the coefficients of a form that is the largest there.
        cone: Where forms are compared.
    """
    size = cone.rays.shape[1]
    first = largest(cone.rays.sum(axis=0)[None])[0]
    known = [first]
    upwards = np.eye(1, size + 1, size, dtype=np.int64)
    edges = np.concatenate([np.column_stack([cone.rays, cone.rays @ first]), upwards])
    walls = np.concatenate([np.column_stack([cone.facets, np.zeros_like(cone.facets[:, 0])]), _above(first)])
    on = edges @ walls.T == 0
    checked: set[tuple[int, ...]] = {tuple(upwards[0].tolist())}
    while True:
        new = [i for i, edge in enumerate(map(tuple, edges.tolist())) if edge not in checked]
        if not new:
            break
        points, height = edges[new, :size], edges[new, size]
        forms = largest(points)
        higher = (forms * points).sum(axis=1) > height
        checked |= set(map(tuple, edges[new][~higher].tolist()))
        for form in np.unique(forms[higher], axis=0):
            wall = _above(form)
            edges = _cut(edges, on, wall[0])
            walls = np.concatenate([walls, wall])
            on = edges @ walls.T == 0
            known.append(form)
    forms = np.unique(np.array(known), axis=0)
    points = edges[edges[:, :size].any(axis=1), :size]
    values = points @ forms.T
    # The middle of where each is the largest; it is so alone unless that is only an edge of where others are.
    corner, points = values == values.max(axis=1, keepdims=True), points / points.sum(axis=1, keepdims=True)
    middle = corner.T @ points / corner.sum(axis=0)[:, None]
    values = middle @ forms.T
    near = values.max(axis=1, keepdims=True) - values < _CLOSE
    alone = near.sum(axis=1) == 1
    forms, middle, corner = forms[alone], middle[alone], corner[:, alone]
    point, of = np.nonzero(corner)
    return forms, np.concatenate([middle, middle[of] + _OUTWARDS * points[point]]), np.append(np.arange(len(forms)), of)


_OUTWARDS = 3.0
"""Where points between the middle and a corner are: the weight of the corner."""


def _above(form: Integers) -> Integers:
    """The form of one dimension more that is at least 0 above a form."""
    return np.append(-form, 1)[None]


def _cut(edges: Integers, on: NDArray[np.bool_], wall: Integers) -> Integers:
    """The edges of what of a cone is on the positive side of a further wall.

    New ones are between neighbors on either side: edges with walls in common on which no third edge is.

    Args:
        edges: The edges of the cone.
        on: Whether each is on each of its walls.
        wall: The further one.
    """
    side = edges @ wall
    inside, outside = np.flatnonzero(side > 0), np.flatnonzero(side < 0)
    common = on[inside][:, None] & on[outside][None]
    some, other = np.nonzero(common.sum(axis=2) >= edges.shape[1] - 2)
    shared = common[some, other].astype(np.float32)
    count = (shared @ on.T.astype(np.float32) == shared.sum(axis=1, keepdims=True)).sum(axis=1)
    pair = count == 2  # both of them
    some, other = inside[some[pair]], outside[other[pair]]
    between = side[some][:, None] * edges[other] - side[other][:, None] * edges[some]
    between //= np.gcd.reduce(between, axis=1, keepdims=True) if len(between) else 1
    kept = side >= 0
    return np.concatenate([edges[kept], between])
