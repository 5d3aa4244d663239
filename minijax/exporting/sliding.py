"""StableHLO of windows that slide: pools and convolutions."""

# Made from chapters/40_export_rest.md by `make chapter`;
# edit the chapter, not this file.

import numpy as np

from minijax import lax
from minijax.exporting.places import array_of, flag
from minijax.exporting.programs import called, stablehlo_rules, write_program
from minijax.exporting.rearranging import filled, joining, numbers, precisions
from minijax.factorizations.cholesky import cholesky_p
from minijax.factorizations.triangular import triangular_solve_p
from minijax.jaxprs.jaxpr import ClosedJaxpr
from minijax.lax.reductions import highest, lowest
from minijax.numpy.fft.fourier import FftType, fft_p


def pairs(padding):
    """Return pairs of numbers as an attribute."""
    return f"dense<{[[*pair] for pair in padding]}> : tensor<{len(padding)}x2xi64>"


def window_attributes(params):
    """Return how a window slides."""
    names = {
        "base_dilation": "base_dilations", "window_dilation": "window_dilations",
        "window_dimensions": "window_dimensions", "window_strides": "window_strides",
    }  # fmt: skip
    said = [f"{names[k]} = {array_of(params[k])}" for k in names if k in params]
    return ", ".join([*said, f"padding = {pairs(params['padding'])}"])


def pool(name, nothing):
    """Return the rule of a primitive that combines the elements in windows."""

    def rule(block, eqn, x):
        scalar = x.aval.update(shape=())
        start = filled(block, nothing(x.aval.dtype), scalar)
        region = block.region([scalar] * 2, joining(name))
        avals, how = [eqn.outvars[0].aval], window_attributes(eqn.params)
        return block.generic(
            "stablehlo.reduce_window", [x, start], avals, how, [region]
        )

    return rule


stablehlo_rules[lax.reduce_window_sum_p] = pool("add", lambda dtype: 0)
stablehlo_rules[lax.reduce_window_max_p] = pool("maximum", lowest)
stablehlo_rules[lax.reduce_window_min_p] = pool("minimum", highest)


def _reduce_window(block, eqn, *operands):
    params, count = eqn.params, len(operands) // 2
    program = ClosedJaxpr(params["jaxpr"], params["consts"])
    scalars = [x.aval.update(shape=()) for x in operands[:count]]
    region = block.region(
        [*scalars, *scalars], lambda inner, *xs: write_program(inner, program, xs)
    )
    avals = [var.aval for var in eqn.outvars]
    return block.generic(
        "stablehlo.reduce_window", operands, avals, window_attributes(params), [region]
    )


stablehlo_rules[lax.reduce_window_p] = _reduce_window


def _wins(select_prim):
    """Return the comparison by which an element stays, and what all others beat."""
    return (
        ("compare GE,", lowest) if select_prim is lax.ge_p else ("compare LE,", highest)
    )


def _select_and_gather_add(block, eqn, tangents, operand):
    name, worst = _wins(eqn.params["select_prim"])
    scalar, other = operand.aval.update(shape=()), tangents.aval.update(shape=())
    starts = [filled(block, worst(scalar.dtype), scalar), filled(block, 0, other)]

    def better(inner, x, t, y, u):
        stays = inner.op(name, [x, y], scalar.update(dtype=np.dtype(bool)))
        return [
            inner.op("select", [stays, x, y], scalar),
            inner.op("select", [stays, t, u], other),
        ]

    region = block.region([scalar, other, scalar, other], better)
    aval = eqn.outvars[0].aval
    avals = [aval.update(dtype=scalar.dtype), aval]
    how = window_attributes(eqn.params)
    return block.generic(
        "stablehlo.reduce_window", [operand, tangents, *starts], avals, how, [region]
    )[1]


def _select_and_scatter_add(block, eqn, source, operand):
    name, _ = _wins(eqn.params["select_prim"])
    scalar = operand.aval.update(shape=())
    choose = block.region(
        [scalar] * 2,
        lambda inner, x, y: [
            inner.op(name, [x, y], scalar.update(dtype=np.dtype(bool)))
        ],
    )
    join = block.region([scalar] * 2, joining("add"))
    operands = [operand, source, filled(block, 0, scalar)]
    avals, how = [eqn.outvars[0].aval], window_attributes(eqn.params)
    return block.generic(
        "stablehlo.select_and_scatter", operands, avals, how, [choose, join]
    )


stablehlo_rules[lax.select_and_gather_add_p] = _select_and_gather_add
stablehlo_rules[lax.select_and_scatter_add_p] = _select_and_scatter_add


def _axes(spec, letters):
    """Return which axis is which, in the order of the array: ``[b, 0, 1, f]``."""
    first, second, *space = spec
    said = dict(zip([first, second, *space], [*letters, *map(str, range(len(space)))]))
    return f"[{', '.join(said[d] for d in range(len(spec)))}]"


def _convolution(block, eqn, x, y):
    params = eqn.params
    numbers_ = params["dimension_numbers"]
    specs = numbers_.lhs_spec, numbers_.rhs_spec, numbers_.out_spec
    axes = "{}x{}->{}".format(*map(_axes, specs, ("bf", "oi", "bf")))
    window = {
        "stride": [*params["window_strides"]],
        "pad": [[*pair] for pair in params["padding"]],
        "lhs_dilate": [*params["lhs_dilation"]],
        "rhs_dilate": [*params["rhs_dilation"]],
    }
    said = ", ".join(f"{key} = {value}" for key, value in window.items())
    asked = map("#stablehlo<precision {}>".format, precisions(params["precision"]))
    groups = [f"{name}_group_count" for name in ("batch", "feature")]
    groups = ", ".join(f"{name} = {params[name]} : i64" for name in groups)
    [result] = block.inputs([eqn.outvars[0].aval])
    names = f"{x.name}, {y.name}"
    block.line(
        f"{result.name} = stablehlo.convolution({names}) dim_numbers = {axes}, "
        f"window = {{{said}}} {{{groups}, precision_config = [{', '.join(asked)}]}} "
        f": ({x.type}, {y.type}) -> {result.type}"
    )
    return result


stablehlo_rules[lax.conv_general_dilated_p] = _convolution


def _fft(block, eqn, x):
    if len(eqn.params["fft_lengths"]) > MOST_AXES:
        return called(block, _in_parts, x, **eqn.params)
    kind = ("FFT", "IFFT", "RFFT", "IRFFT")[int(eqn.params["fft_type"])]
    more = f", type = {kind}" + numbers("length", eqn.params["fft_lengths"])
    return block.op("fft", [x], eqn.outvars[0].aval, more)


MOST_AXES = 3  # of one transform in StableHLO


def _in_parts(x, fft_type, fft_lengths):
    """Transform along the last axes, and along those in front of them."""
    front, last = fft_lengths[:-MOST_AXES], fft_lengths[-MOST_AXES:]
    axes = [*range(x.ndim)]
    batch = x.ndim - len(fft_lengths)
    turned = [*axes[:batch], *axes[-MOST_AXES:], *axes[batch:-MOST_AXES]]

    def along_last(x):
        return fft_p.bind(x, fft_type=fft_type, fft_lengths=last)[0]

    def along_front(x):
        kind = FftType.IFFT if "I" in FftType(fft_type).name else FftType.FFT
        x = lax.transpose(x, turned)
        [x] = fft_p.bind(x, fft_type=kind, fft_lengths=front)
        return lax.transpose(x, np.argsort(turned).tolist())

    if fft_type == FftType.IRFFT:  # the real axis is the last one to be transformed
        return along_last(along_front(x))
    return along_front(along_last(x))


def _triangle(x, real_diagonal):
    """Return the lower triangle of matrices, or all of them but for a real diagonal."""
    row, column = (
        lax.broadcasted_iota(np.int32, x.shape, x.ndim + i) for i in (-2, -1)
    )
    if not real_diagonal:
        return lax.select(lax.ge(row, column), x, lax.full_like(x, 0))
    return lax.select(
        lax.eq(row, column), lax.complex(lax.real(x), lax.full_like(lax.real(x), 0)), x
    )


def _cholesky(block, eqn, x):
    """What is above the diagonal is undefined in StableHLO, and zero here."""
    if x.aval.dtype.kind == "c":
        [x] = called(block, lambda x: _triangle(x, True), x)
    factor = block.op("cholesky", [x], x.aval, ", lower = true")
    return called(block, lambda x: _triangle(x, False), factor)


def _triangular_solve(block, eqn, a, b):
    params, kind = eqn.params, "NO_TRANSPOSE"
    if params["transpose_a"]:
        kind = "ADJOINT" if params["conjugate_a"] else "TRANSPOSE"
    elif params["conjugate_a"] and a.aval.dtype.kind == "c":
        [a] = called(block, lax.conj, a)
    names = "left_side", "lower", "unit_diagonal"
    flags = ", ".join(f"{name} = {flag(params[name])}" for name in names)
    how = f"{flags}, transpose_a = #stablehlo<transpose {kind}>"
    return block.generic(
        "stablehlo.triangular_solve", [a, b], [eqn.outvars[0].aval], how
    )


stablehlo_rules[fft_p] = _fft
stablehlo_rules[cholesky_p] = _cholesky
stablehlo_rules[triangular_solve_p] = _triangular_solve
