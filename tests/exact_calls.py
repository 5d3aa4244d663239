"""Steps of exact programs that call: indices, sorts, products, loops, branches, vmap.

Each is a function of a `Draw` and a value that returns an expression and its bound.
"""

import numpy as np

from tests.exact_steps import (
    against_itself,
    cast,
    complex_folds,
    complex_parts,
    cuts,
    elementwise,
    finite,
    folds,
    of_integers,
    running,
    unary,
    views,
    windows,
)
from tests.exact_values import RANK, need


def gathers(draw, x):
    """Rows at computed places, some of them out of bounds."""
    axis = draw.axis(x)
    n, i = x.shape[axis], draw.places(x.shape[axis])
    need(i.size * (x.size // n) <= draw.most and x.ndim + i.ndim - 1 <= RANK)
    out = f"({i}.astype('int32') % {n + 3} - 1)"
    modes = ["clip", "wrap"] if x.kind in "fc" else ["clip", "wrap", "fill"]
    options = [f"jnp.take({x}, {out}, axis={axis}, mode={draw.one(modes)!r})"] * 2
    i = i if max(x.shape) < 128 else f"{i}.astype('int32')"  # sizes are of its dtype
    options += [f"jnp.take({x}, {i} % {n}, axis={axis})"]
    options += [f"{x}[{', '.join([':'] * axis + [f'{i} % {n}'])}]"]
    if x.ndim > 1:
        options += [f"{x}[{i} % {x.shape[0]}, ({i} * 3) % {x.shape[1]}]"]
    if x.ndim > 1 and x.kind not in "bc":
        order = f"jnp.argsort({x}, {axis})"
        options += [f"jnp.take_along_axis({x}, {order}, {axis})"]
    return draw.one(options), x.bound


def scatters(draw, x):
    """Updates at computed places."""
    axis, a = draw.axis(x), x.bound
    n, i = x.shape[axis], draw.places(x.shape[axis])
    shape = x.shape[:axis] + i.shape + x.shape[axis + 1 :]
    need(int(np.prod(shape)) <= draw.most and len(shape) <= RANK)
    every = ":, " * axis
    modes = ["", ", mode='drop'", ", mode='clip'", ", mode='promise_in_bounds'"]
    rest = draw.one(modes)
    at = f"{x}.at[{every}{i}.astype('int32') % {n + 3} - 1]"
    if rest.endswith("bounds'"):
        at = f"{x}.at[{every}{i}.astype('int32') % {n}]"
    update, b = f"{x}.reshape(-1)[0]", a
    if fitting := draw.like(x, shape=shape):
        update = draw.one(fitting)
        b = update.bound
    some = list(map(int, draw.rng.permutation(n)[: max(1, n // 2)]))
    apart = f"{x}.at[{every}np.array({some})].set({x}.reshape(-1)[-1])"
    if x.kind == "b":
        return draw.one([f"{at}.max({update}{rest})", apart]), 1
    options = [(f"{at}.add({update}{rest})", a + b * i.size)] * 2
    options += [(f"{at}.subtract({update}{rest})", a + b * i.size), (apart, a)]
    if x.kind != "c":
        options += [(f"{at}.{m}({update}{rest})", max(a, b)) for m in ("max", "min")]
        if x.kind in "iu" or b <= 1:
            options += [(f"{at}.multiply({update}{rest})", a)]
    return draw.exact(x, options)


def segments(draw, x):
    """Folds of rows by segments, in order or not, some of them empty."""
    need(x.kind != "b" and x.ndim and x.size)
    n, a, i = x.shape[0], x.bound, draw.places(x.shape[0])
    count = draw.one([1, 2, 3, 8, 17, 40])
    number = f"(jnp.resize({i}, ({n},)).astype('int32') % {count + 2})"
    number += " - 1" * draw.chance(0.5)
    number = f"jnp.sort({number})" if draw.chance(0.3) else number
    options = [(f"jax.ops.segment_sum({x}, {number}, {count})", n * a)]
    if x.kind != "c":
        for how in ("max", "min"):
            text = f"jax.ops.segment_{how}({x}, {number}, {count})"
            options += [(finite(text) if x.kind == "f" else text, a)]
        if x.kind in "iu" or a <= 1:
            options += [(f"jax.ops.segment_prod({x}, {number}, {count})", 1)]
    return draw.exact(x, options)


def sorts(draw, x):
    """Sorts, with other operands, and what sorts are made for."""
    need(x.kind != "c")
    axis, a = draw.axis(x), x.bound
    options = [(f"jnp.sort({x}, {axis})", a)] * 2
    options += [(f"jnp.sort({x}, {axis}, descending=True)", a)]
    if x.kind == "b":
        return draw.one(options)
    k = min(x.shape[-1], draw.one([1, 3, 8, 2000]))
    options += [
        (f"jnp.argsort({x}, {axis}, stable=True)", 1),
        (f"lax.top_k({x}, {k})[0]", a), (f"lax.top_k({x}, {k})[1]", 1),
    ]  # fmt: skip
    others = [y for y in draw.values if y.shape == x.shape and y.kind != "c"]
    if others:
        y, keys = draw.one(others), draw.below(1, 3)
        how = f"dimension={axis}, num_keys={keys}, is_stable=True"
        options += [(f"lax.sort([{x}, {y}], {how})[0]", a)]
        if y.dtype == x.dtype:
            options += [(f"lax.sort([{x}, {y}], {how})[1]", y.bound)]
    if x.ndim == 1:
        y, side = draw.one(draw.like(x, ndim=1)), draw.one(["left", "right"])
        options += [(f"jnp.searchsorted(jnp.sort({x}), {y}, side={side!r})", 1)] * 2
    return draw.exact(x, options)


def products(draw, x):
    """Sums of products over an axis of each of two values, and with batches."""
    need(x.kind != "b" and x.ndim and x.size)
    y = draw.one([y for y in draw.like(x) if y.ndim])
    equal = [
        (p, q) for p in range(x.ndim) for q in range(y.ndim) if x.shape[p] == y.shape[q]
    ]
    p, q = draw.one(equal)
    n, batch = x.shape[p], ((), ())
    rest = [(r, s) for r, s in equal if r != p and s != q]
    out = (x.size // n) * (y.size // n)
    if rest and draw.chance(0.5):
        r, s = draw.one(rest)
        batch, out = ((r,), (s,)), out // x.shape[r]
    need(out <= draw.most and out * n <= 2**24)
    bound = (1 + (x.kind == "c")) * n * x.bound * y.bound
    axes = f"((({p},), ({q},)), {batch})"
    return draw.exact(x, [(f"lax.dot_general({x}, {y}, {axes})", bound)])


IMAGES = {1: "[None, None]", 2: "[None]", 3: "", 4: ""}
LETTERS = {3: ("NCH", "OIH"), 4: ("NCHW", "OIHW")}


def image(draw, x):
    """An expression and a shape of examples, channels and space."""
    shape = (1,) * (max(3, x.ndim) - x.ndim) + x.shape
    if draw.chance(0.5):  # as many numbers as products of the machine are made for
        shape = (draw.one([1, 2, 8, 32]), draw.one([1, 3, 8, 16, 16]))
        shape += tuple(
            draw.one([1, 1, 2, 3, 5, 8, 17]) for _ in range(draw.below(1, 3))
        )
        need(int(np.prod(shape)) <= draw.most)
        return f"jnp.resize({x}, {shape})", shape
    if x.ndim == 3 and draw.chance(0.5):
        return f"{x}[None]", (1, *shape)
    return f"{x}{IMAGES[x.ndim]}", shape


def weights(draw, shape, groups):
    """A shape of results, channels of a group and a kernel, which may be wider."""
    channels = shape[1]
    out = channels * draw.below(1, 3) if groups > 1 else draw.one([1, 2, 3, 16, 24])
    widest = 5 if draw.chance(0.7) else 40
    kernel = [draw.below(1, min(max(n, 3), widest) + 1) for n in shape[2:]]
    found = (out, channels // groups, *kernel)
    need(int(np.prod(found)) * int(np.prod(shape)) <= 2**23 and out <= 80)
    return found


def convolutions(draw, x):
    """Convolutions: groups, dilations, a space of one pixel, kernels as large as it."""
    need(x.dtype in ("float32", "float64") and x.ndim and x.size)
    text, shape = image(draw, x)
    need(shape[1] <= 64)
    groups, space = shape[1] if draw.chance(0.2) else 1, shape[2:]
    taps = weights(draw, shape, groups)
    filters = f"((jnp.arange({int(np.prod(taps))}) * 5) % 7 - 3).reshape{taps}"
    strides = tuple(draw.below(1, 3) for _ in space)
    edges = [(draw.below(-1, 3), draw.below(0, 3)) for _ in space]
    padding = draw.one(["VALID", "SAME", edges, edges])
    rest = f"{strides}, {padding!r}, feature_group_count={groups}"
    if padding == edges:
        rest += f", lhs_dilation={(2,) * len(space)}" * draw.chance(0.25)
    if padding != "SAME":
        rest += f", rhs_dilation={(2,) * len(space)}" * draw.chance(0.25)
    if draw.chance(0.3):  # channels last
        images, kernels = LETTERS[len(shape)]
        text = f"jnp.transpose({text}, {(0, *range(2, len(shape)), 1)})"
        images = images[0] + images[2:] + "C"
        rest += f", dimension_numbers={(images, kernels, images)}"
    filters = f"{filters}.astype({x.type_text})"
    bound = 3 * int(np.prod(taps[1:])) * x.bound
    return draw.exact(
        x, [(f"lax.conv_general_dilated({text}, {filters}, {rest})", bound)]
    )


# Bodies. Those of loops and branches return what they are given.

BODY = [elementwise, unary, views, cuts, folds, running, sorts, against_itself, windows]


def scans(draw, x):
    """A scan along the first axis: its rows, its carries, or the last carry."""
    need(x.ndim > 1 and x.size and x.shape[0] <= 40)
    carry = {
        "b": "k ^ r", "c": "jnp.conj(r)", "u": "jnp.clip(k + r, 0, 4).astype(k.dtype)",
    }.get(x.kind, "jnp.clip(jnp.where(r > k, k + 1, r - 1), -4, 4)")  # fmt: skip
    carry = f"jnp.roll({carry}, 1, 0)" if draw.chance(0.4) else carry
    bound = x.bound if x.kind == "c" else 4
    row = f"jnp.zeros_like({x}[0])"
    from_carry = type(x)("k", draw.evaluate(row), bound)
    body = draw.body(x, f"{x}[0]", BODY, draw.below(1, 4), [from_carry])
    rest = f"reverse={draw.chance(0.5)}, unroll={draw.one([1, 1, 1, 2, 3])}"
    text = f"lax.scan(lambda k, r: ({carry}, ({body}, k)), {row}, {x}, {rest})"
    return draw.one(
        [(f"{text}[1][0]", body.bound)] * 3
        + [(f"{text}[1][1]", bound), (f"{text}[0]", bound)]
    )


def branches(draw, x):
    """A branch of two or three."""
    need(x.size)
    r = draw.operand
    bodies = [draw.body(x, str(x), [elementwise, unary, views, sorts], 1)
              for _ in range(draw.below(2, 4))]  # fmt: skip
    bodies = [
        y if (y.shape, y.dtype) == (x.shape, x.dtype) else type(x)(r, x.array, x.bound)
        for y in bodies
    ]
    functions = [f"lambda {r}: {y}" for y in bodies]
    if len(bodies) == 2:
        text = f"lax.cond({draw.start()} > 2, {', '.join(functions)}, {x})"
    else:
        text = f"lax.switch({draw.start()} % 5 - 1, [{', '.join(functions)}], {x})"
    return text, max(y.bound for y in bodies)


def loops(draw, x):
    """Loops as often as a number says, or three times."""
    axis, a = draw.axis(x), x.bound
    turned = draw.one([f"jnp.roll(s[1], 1, {axis})", f"lax.rev(s[1], ({axis},))"])
    count = f"{draw.start()} % 4 + {draw.below(0, 3)}"
    options = [(
        f"lax.while_loop(lambda s: s[0] < {count}, lambda s: (s[0] + 1, {turned}), "
        f"(jnp.int32(0), {x}))[1]", a,
    )]  # fmt: skip
    if x.kind != "b":
        body = f"lambda j, s: s.at[j % {x.shape[0]}].add(s[0])"
        options += [(f"lax.fori_loop(0, 3, {body}, {x})", 8 * a)]
    if x.kind not in "bc":
        body = f"lambda j, s: jnp.cumsum(s, {axis}) % 3 + j.astype(s.dtype)"
        options += [(f"lax.fori_loop(0, 3, {body}, {x} % 3)", 5 * x.shape[axis])]
    return draw.exact(x, options)


def batches(draw, x):
    """A body for each part along an axis, and one that is put at another."""
    need(x.ndim > 1)
    axis = draw.axis(x)
    row = f"jnp.take({x}, 0, axis={axis})"
    steps = [*BODY, gathers, scatters, products, segments, branches, loops]
    body = draw.body(x, row, steps, draw.below(1, 4))
    need(body.ndim < RANK)
    to = draw.below(0, body.ndim + 1)
    return f"jax.vmap(lambda {draw.operand}: {body}, {axis}, {to})({x})", body.bound


def calls(draw, x):
    """A body in a function of its own."""
    body = draw.body(x, str(x), BODY, draw.below(1, 4))
    how = draw.one(["jax.jit", "jax.checkpoint"])
    return f"{how}(lambda {draw.operand}: {body})({x})", body.bound


def totals(draw, x):
    """Sums along an axis, running ones too."""
    axis = draw.axis(x)
    n = x.shape[axis]
    ways = [f"jnp.sum({x}, {axis})", f"lax.cumsum({x}, {axis}, reverse=True)"]
    ways += [f"{x} - jnp.sum({x}, {axis}, keepdims=True)", f"jnp.cumsum({x}, {axis})"]
    return draw.exact(x, [(way, (n + 1) * x.bound) for way in ways])


def slopes(draw, x):
    """A tangent or a cotangent of a body that is linear but for a constant."""
    need(x.kind == "f" and x.size)
    one, linear = type(x)(x.text, x.array, 1), [views, cuts, against_itself, totals]
    body = draw.body(one, str(x), [*linear, gathers], draw.below(1, 4))
    function = f"lambda {draw.operand}: {body}"
    tangent = f"jax.jvp({function}, ({x},), ({x},))[1]"
    cotangent = f"jax.vjp({function}, {x})[1](jnp.ones({body.shape}, {x.type_text}))[0]"
    return draw.exact(x, [
        (tangent, body.bound * max(1, x.bound)), (cotangent, body.bound * body.size),
        (cotangent, body.bound * body.size),
    ])  # fmt: skip


def costly(draw, x):
    """Functions that are worth storing, of numbers for which they are exact."""
    need(x.kind == "f")
    y = draw.peer(x)
    a, b = x.bound, y.bound
    return draw.exact(x, [
        (f"jnp.cos({x} * 0) - {y}", b + 1), (f"{x} - jnp.tanh({y} * 0)", a),
        (f"jnp.exp({x} * 0) * {y}", b), (f"jnp.sqrt({x} * {x}) + {y}", a * a + b),
    ])  # fmt: skip


def chain(draw, x):
    """Running sums, sorts and products of small arrays, written over each other."""
    need(x.kind in "fi" and x.size and x.ndim)
    axis, a, n = draw.axis(x), x.bound, x.shape[-1]
    whole, y = a * x.shape[axis], draw.peer(x)
    run = f"jnp.cumsum({x}, {axis})"
    options = [(run, whole)] * 2 + [(f"{run} + {y}", whole + y.bound)] * 2
    options += [(f"{run} - jnp.cos({y} * 0)", whole + 1)] * 2 * (x.kind == "f")
    options += [(f"jnp.sort({x}, {axis})", a)]
    if x.ndim > 1:
        square = f"(jnp.arange({n * n}) % 3 - 1).reshape({n}, {n})"
        options += [(f"{x} @ {square}.astype({x.type_text})", a * n)]
    return draw.exact(x, options)


def small_again(draw, x):
    """Numbers near zero, for sums to come."""
    need(x.kind in "fi" and x.bound > 8)
    return draw.one([f"{x} % 5 - 2", f"jnp.clip({x}, -2, 2)"]), 5


ELEMENTS = [*[elementwise] * 4, costly, *[of_integers] * 2, *[unary] * 3, *[cast] * 2]
COMPLEX = [*[complex_parts] * 2, *[complex_folds] * 2]
ARRAYS = [*[views] * 4, *[cuts] * 3, *[folds] * 4, *[running] * 2, windows,
          *[against_itself] * 2]  # fmt: skip
INDEXED = [*[gathers] * 2, *[scatters] * 2, segments, *[sorts] * 2]
CALLED = [*[products] * 2, convolutions, scans, branches, loops, *[batches] * 2, calls,
          *[slopes] * 2]  # fmt: skip
IMAGED = [*[convolutions] * 3, windows, elementwise, views]
STEPS = [*ELEMENTS, *COMPLEX, *ARRAYS, *INDEXED, *CALLED]
FUSABLE = [*ELEMENTS, *COMPLEX, *ARRAYS, *ARRAYS, windows, running, gathers, products]
CHAIN = [*[chain] * 6, *[costly] * 2, elementwise, small_again]
