"""Sharding rules of convolutions, and of folds of windows.

Reference: GSPMD, https://arxiv.org/abs/2105.04663, section 3.
"""

# Made from chapters/36_replicas_rest.md by `make chapter`;
# edit the chapter, not this file.

from minijax import lax
from minijax.spmd.spreading import Piece, agreed, gathered, recut, sharding_rules
from minijax.spmd.spreading_rules import along


def convolve_pieces(primitive, left, right, dimension_numbers, **params):
    """Convolve parts of a batch; if features are cut, each device has part of a sum."""
    if params["feature_group_count"] != 1 or params["batch_group_count"] != 1:
        whole = params | {"dimension_numbers": dimension_numbers}
        return gathered(primitive, left, right, **whole)
    (batch, feature, *_), (out, into, *_), (rows, columns, *_) = dimension_numbers
    cuts = agreed(
        [[left.spec[batch]], [left.spec[feature], right.spec[into]], [right.spec[out]]]
    )
    operands = [
        recut(piece, tuple([places.get(i, ()) for i in range(len(piece.spec))]))
        for piece, places in (
            (left, {batch: cuts[0], feature: cuts[1]}),
            (right, {into: cuts[1], out: cuts[2]}),
        )
    ]
    [y] = primitive.bind(*operands, dimension_numbers=dimension_numbers, **params)
    places = {rows: cuts[0], columns: cuts[2]}
    spec = tuple([places.get(i, ()) for i in range(len(left.spec))])
    return [Piece(lax.psum(y, cuts[1]) if cuts[1] else y, spec)]


def slid_axes(window_dimensions, window_strides, padding, **params):
    """Return the axes along which windows are more than single elements."""
    sliding = zip(window_dimensions, window_strides, padding)
    ones = params.get("base_dilation", (1,) * len(padding))
    return [
        i
        for i, (size, step, pads) in enumerate(sliding)
        if (size, step, ones[i], *pads) != (1, 1, 1, 0, 0)
    ]


sharding_rules[lax.conv_general_dilated_p] = convolve_pieces
sharding_rules.update(dict.fromkeys(
    (
        lax.reduce_window_sum_p, lax.reduce_window_max_p, lax.reduce_window_min_p,
        lax.select_and_scatter_add_p, lax.select_and_gather_add_p,
    ),
    along(slid_axes),
))  # fmt: skip
