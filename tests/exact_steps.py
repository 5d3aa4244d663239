"""Steps of exact programs on elements: arithmetic, complex parts, views, cuts, folds.

Each is a function of a `Draw` and a value that returns an expression and its bound.
"""

import numpy as np

from tests.exact_values import EXACT_BELOW, RANK, fits, need


def elementwise(draw, x):
    """Two values that broadcast."""
    y = draw.peer(x)
    a, b, twice = x.bound, y.bound, 1 + (x.kind == "c")
    if x.kind == "b":
        return f"{x} {draw.one('&|^')} {y}", 1
    options = [(f"{x} + {y}", a + b), (f"{x} - {y}", a + b)]
    options += [(f"{x} * {y}", twice * a * b)] * 2
    if x.kind != "c":
        options += [
            (f"jnp.maximum({x}, {y})", max(a, b)),
            (f"jnp.minimum({x}, {y})", max(a, b)),
            (f"jnp.where({x} > {y}, {x}, {y} * 2)", max(a, 2 * b)),
            (f"jnp.where({x} == {y}, {y}, -{x})", max(a, b)),
        ]  # fmt: skip
    return draw.exact(x, options)


SHIFTS = ["left", "right_logical", "right_arithmetic"]


def of_integers(draw, x):
    """Quotients, shifts and bits."""
    need(x.kind in "iu")
    y = draw.peer(x)
    both = f"*jnp.broadcast_arrays({x}, {y})"
    options = [
        f"{x} // {y}", f"{x} % {y}", f"lax.div({both})", f"lax.rem({both})",
        *[f"lax.shift_{way}({both})" for way in SHIFTS],
        f"{x} & {y}", f"{x} | {y}", f"{x} ^ {y}", f"{x} ** 3", f"{x} // 3", f"{x} % 8",
        f"lax.population_count({x})",
    ]  # fmt: skip
    return draw.one(options), 1


def unary(draw, x):
    """One value."""
    a = x.bound
    if x.kind == "b":
        return draw.one([f"~{x}", f"{x} == False", f"jnp.where({x}, False, {x})"]), 1
    options = [
        (f"-{x}", a), (f"jnp.square({x})", 2 * a * a), (f"{x} + 1", a + 1),
        (f"{x} * 2", 2 * a),
    ]  # fmt: skip
    if x.kind == "c":
        return draw.exact(x, [*options, (f"jnp.conj({x})", a)])
    low = 0 if x.kind == "u" else -2
    options += [
        (f"jnp.abs({x})", a), (f"jnp.sign({x})", 1), (f"jnp.clip({x}, {low}, 3)", 3),
        (f"{x} % 3", 3), (f"{x} % 5 - {-low}", 5),
    ]  # fmt: skip
    if x.kind == "f":
        options += [(f"jnp.round({x} / 2)", a), (f"jnp.floor({x} / 4)", a)]
    return draw.exact(x, options)


TARGETS = "float32 float32 int32 int8 uint8 uint16 int16 float16 bfloat16 bool uint32"


def cast(draw, x):
    """Another dtype."""
    need(x.kind != "c")
    wide = x.dtype in ("int64", "uint64", "float64")
    to = draw.one([*TARGETS.split(), *["float64", "int64"] * wide])
    a, text = x.bound, str(x)
    if to in EXACT_BELOW and not fits(to, a):
        text, a = f"({x} % 4)", 4
    elif x.kind == "f" and to not in EXACT_BELOW and to != "bool":
        text = f"jnp.abs({x})" if to[0] == "u" else text
        need(a <= 100)
    return f"{text}.astype({to!r})", a


def complex_parts(draw, x):
    """A complex number's parts, or numbers of which one part is a view or a fold."""
    a = x.bound
    if x.kind == "c":
        names = [(f"jnp.real({x})", a), (f"jnp.imag({x})", a), (f"jnp.conj({x})", a)]
        square = [(f"jnp.real({x} * jnp.conj({x}))", 2 * a * a)]
        return draw.exact(x, [*names, *square])
    need(x.dtype in ("float32", "float64"))
    parts = [(str(y), y.bound) for y in [draw.peer(x)]]
    for y in draw.values:
        if y.dtype == x.dtype and y.ndim and y.size and y.size <= draw.most:
            axis = draw.axis(y)
            options = [(f"lax.rev({y}, ({axis},))", y.bound, y.shape)]
            whole, fewer = y.bound * y.shape[axis], y.shape[:axis] + y.shape[axis + 1 :]
            options += [(f"jnp.cumsum({y}, {axis})", whole, y.shape)]
            options += [(f"jnp.sum({y}, {axis})", whole, fewer)]
            parts += [o[:2] for o in options if fit_together(draw, x.shape, o[2])]
    text, b = draw.one(parts)
    both = f"{x}, {text}" if draw.chance(0.5) else f"{text}, {x}"
    need(fits("complex64", max(a, b)))
    return f"lax.complex(*jnp.broadcast_arrays({both}))", max(a, b)


def fit_together(draw, shape, other):
    """Whether two shapes broadcast to few numbers."""
    try:
        shape = np.broadcast_shapes(shape, other)
    except ValueError:
        return False
    return len(shape) <= RANK and np.prod(shape) <= draw.most


def complex_folds(draw, x):
    """Sums of parts of complex numbers."""
    need(x.kind == "c")
    axis, a = draw.axis(x), x.bound
    n = x.shape[axis]
    return draw.exact(x, [
        (f"jnp.real({x}).sum({axis})", n * a), (f"jnp.imag({x}).sum({axis})", n * a),
        (f"jnp.conj({x}).sum({axis}, keepdims=True)", n * a),
        (f"jnp.real({x}) + jnp.imag({x}).sum({axis}, keepdims=True)", (n + 1) * a),
        (f"jnp.real({x}).max({axis}, keepdims=True)", a),
        (f"jnp.argmax(jnp.imag({x}), {axis})", 1),
        (f"({x} * jnp.conj({x})).sum({axis})", 2 * n * a * a),
    ])  # fmt: skip


def views(draw, x):
    """The same numbers at other places."""
    if not x.ndim:
        return f"jnp.broadcast_to({x}, ({draw.one([1, 2, 3, 8, 17])},))", x.bound
    axis, shape = draw.axis(x), x.shape
    before, behind = shape[:axis], shape[axis + 1 :]
    order = tuple(map(int, draw.rng.permutation(x.ndim)))
    options = [
        f"jnp.transpose({x}, {order})", f"{x}.reshape(-1)", f"lax.rev({x}, ({axis},))",
        f"{x}.reshape{shape[::-1]}", f"jnp.roll({x}, {draw.below(-5, 6)}, {axis})",
        f"lax.rev({x}, {tuple(range(x.ndim))})",
    ]  # fmt: skip
    if x.ndim < RANK:
        options += [f"jnp.expand_dims({x}, {axis})"]
        options += [f"jnp.broadcast_to({x}, {(3, *shape)})"]
        parts = [d for d in range(2, 40) if shape[axis] % d == 0]
        for part in parts[:1] + parts[-1:]:
            split = (*before, part, shape[axis] // part, *behind)
            options += [f"{x}.reshape({split})"] * 2
    if x.ndim > 1:
        merged = (*shape[:-2], shape[-2] * shape[-1])
        options += [f"{x}.reshape({merged})", f"{x}.reshape({(*shape[1:], shape[0])})"]
    return draw.one(options), x.bound


def against_itself(draw, x):
    """A value and its transpose, or two of its slices, which may overlap."""
    need(x.kind != "b")
    if draw.chance(0.5) and x.ndim == 1 and x.size**2 <= draw.most:
        return draw.exact(x, [(f"{x}[None, :] + {x}[:, None]", 2 * x.bound)])
    if draw.chance(0.5) and x.ndim > 1 and x.shape[-1] == x.shape[-2]:
        turned = f"jnp.swapaxes({x}, -1, -2)"
        return draw.exact(x, [(f"{x} - {turned}", 2 * x.bound)])
    axis = draw.axis(x)
    n = x.shape[axis]
    need(n > 1)
    width, stride = draw.below(1, n), draw.below(1, 3)
    p, q = (
        f"lax.slice_in_dim({x}, {start}, {start + width}, {stride}, {axis})"
        for start in (draw.below(0, n - width + 1), draw.below(0, n - width + 1))
    )
    q = f"lax.rev({q}, ({axis},))" if draw.chance(0.4) else q
    return draw.exact(x, [(f"{p} + {q}", 2 * x.bound)])


PADDINGS = [
    (1, 1, 0), (2, 0, 0), (-1, 2, 0), (1, 0, 1), (0, 0, 2), (3, -1, 1), (0, 9, 0),
]  # fmt: skip


def cuts(draw, x):
    """Pieces, put together again, padded or written over."""
    axis, a = draw.axis(x), x.bound
    n = x.shape[axis]
    start, width, stride = draw.below(0, n), draw.below(1, n + 1), draw.below(1, 4)
    part = f"lax.slice_in_dim({x}, 0, {width}, axis={axis})"
    turned = f"lax.rev({part}, ({axis},))"
    every = ":, " * axis
    config = [(0, 0, 0)] * x.ndim
    config[axis] = draw.one(PADDINGS)
    options = [
        (f"lax.slice_in_dim({x}, {start}, {n}, axis={axis})", a),
        (f"lax.slice_in_dim({x}, 0, {width}, {stride}, {axis})", a),
        (f"lax.dynamic_slice_in_dim({x}, {draw.start()}, {width}, {axis})", a),
        (f"lax.dynamic_update_slice_in_dim({x}, {draw.one([part, turned])}, "
         f"{draw.start()}, {axis})", a),
        (f"{x}.at[{every}{start}::{stride}].set({x.kind == 'b' or 1})", max(1, a)),
    ]  # fmt: skip
    if n > 2:
        one = f"np.ones((), {x.type_text})"
        options += [(f"lax.pad({x}, {one}, {config})", max(1, a))] * 2
    if x.kind != "b":
        options += [(f"jnp.concatenate([{x}, {x} * 2], {axis})", 2 * a)]
        options += [(f"jnp.diff({x}, axis={axis})", 2 * a)]
        options += [(f"{x}.at[{every}{start}].add(1)", a + 1)]
    rest = (x.shape[:axis], x.shape[axis + 1 :])
    others = [
        y
        for y in draw.like(x, ndim=x.ndim)
        if (y.shape[:axis], y.shape[axis + 1 :]) == rest
    ]
    if others:
        more = [draw.one(others) for _ in range(draw.below(1, 4))]
        joined = ", ".join(map(str, [x, *more]))
        bound = max(y.bound for y in [x, *more])
        options += [(f"jnp.concatenate([{joined}], {axis})", bound)] * 2
    return draw.exact(x, options)


def folds(draw, x):
    """What remains when axes are folded, with them or without them."""
    need(x.size)
    axes = None if draw.chance(0.15) else draw.axes(x)
    n = x.size if axes is None else int(np.prod([x.shape[axis] for axis in axes]))
    rest = f"{axes}, keepdims={draw.chance(0.6)}"
    if x.kind == "b":
        return f"jnp.{draw.one('any all sum max'.split())}({x}, {rest})", n
    a = x.bound
    options = [(f"jnp.sum({x}, {rest})", n * a)] * 3
    if x.kind == "c":
        return draw.exact(x, options)
    place = draw.one(["argmax", "argmin"])
    options += [
        (f"jnp.max({x}, {rest})", a), (f"jnp.min({x}, {rest})", a),
        (f"jnp.sum({x} > 0, {rest})", 1), (f"jnp.any({x} > 1, {rest})", 1),
        (f"jnp.{place}({x}, {draw.axis(x)})", 1), (f"jnp.{place}({x})", 1),
        (f"{x} - jnp.max({x}, {axes}, keepdims=True)", 2 * a),
        (f"{x} + jnp.sum({x}, {axes}, keepdims=True)", (n + 1) * a),
    ]  # fmt: skip
    if x.kind in "iu" or a <= 1:
        options += [(f"jnp.prod({x}, {rest})", 1)]
    elif n < 20:
        options += [(f"jnp.prod({x}, {rest})", a**n)]
    if x.kind in "iu":
        options += [(f"lax.reduce_xor({x}, {axes or tuple(range(x.ndim))})", 1)]
    return draw.exact(x, options)


def running(draw, x):
    """Running folds, both ways."""
    need(x.kind != "b")
    axis, a = draw.axis(x), x.bound
    rest, n = f"{axis}, reverse={draw.chance(0.5)}", x.shape[axis]
    options = [(f"lax.cumsum({x}, {rest})", n * a)] * 2
    if x.kind != "c":
        options += [(f"lax.cummax({x}, {rest})", a), (f"lax.cummin({x}, {rest})", a)]
        options += [(f"lax.cumprod({x}, {rest})", 1)] * (x.kind in "iu" or a <= 1)
    return draw.exact(x, options)


def windows(draw, x):
    """Sums, maxima and minima of windows."""
    need(x.kind != "b")
    first, a = draw.axis(x), x.bound
    sizes, strides, holes, gaps = ([1] * x.ndim for _ in range(4))
    edges = [(0, 0)] * x.ndim
    for axis in {first, draw.axis(x) if draw.chance(0.5) else first}:
        sizes[axis] = draw.below(1, min(x.shape[axis], 7) + 1)
        strides[axis] = draw.below(1, 4)
        if draw.chance(0.3):
            edges[axis] = (draw.below(0, 3), draw.below(0, 3))
        gaps[axis], holes[axis] = 1 + draw.chance(0.2), 1 + draw.chance(0.2)
    padding = draw.one(["VALID", "SAME", edges])
    rest = f"{tuple(sizes)}, {tuple(strides)}, {padding!r}"
    if draw.chance(0.5):
        spans = [(size - 1) * gap + 1 for size, gap in zip(sizes, gaps)]
        need(padding == "SAME" or all(map(np.less_equal, spans, x.shape)))
        rest += f", base_dilation={tuple(holes)}, window_dilation={tuple(gaps)}"
    count = int(np.prod(sizes))
    zero = f"np.zeros((), {x.type_text})[()]"
    options = [(f"lax.reduce_window({x}, {zero}, lax.add, {rest})", count * a)] * 2
    if x.kind != "c":
        how = draw.one(["max", "min"])
        if x.kind == "f":
            start = "-np.inf" if how == "max" else "np.inf"
        else:
            start = f"jnp.iinfo({x.type_text}).{'min' if how == 'max' else 'max'}"
        start = f"np.asarray({start}, {x.type_text})[()]"
        text = f"lax.reduce_window({x}, {start}, lax.{how}, {rest})"
        options += [(finite(text) if x.kind == "f" else text, a)]
    return draw.exact(x, options)


def finite(text):
    """An expression in which what is infinite is zero."""
    return f"(lambda r: jnp.where(jnp.isinf(r), 0, r))({text})"
