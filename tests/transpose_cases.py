"""Linear functions of every primitive that can be transposed, for minijax and JAX.

`CASES` maps a name to `(call, operands)`: `call(lax, *operands)` is linear in all of
its operands, which are NumPy arrays.
"""

import numpy as np

_random = np.random.default_rng(9)


def normal(*shape, dtype="float32"):
    """Return normally distributed numbers; of complex ones, both parts."""
    values = _random.normal(size=shape)
    if np.dtype(dtype).kind == "c":
        values = values + 1j * _random.normal(size=shape)
    return np.asarray(values, dtype)


def cases_of_products():
    """Yield all kinds of matrix products: `(lhs shape, rhs shape, numbers)`."""
    yield (2, 3), (3, 4), (((1,), (0,)), ((), ()))
    yield (3,), (3,), (((0,), (0,)), ((), ()))
    yield (3,), (4,), (((), ()), ((), ()))
    yield (3, 4, 5), (5, 4, 2), (((1,), (1,)), ((2,), (0,)))
    yield (6, 4, 5), (5, 4, 2, 6), (((0, 1), (3, 1)), ((2,), (0,)))
    yield (2, 3, 4, 5), (3, 5, 4, 6), (((3, 2), (1, 2)), ((1,), (0,)))
    yield (2, 3, 4), (2, 3, 4), (((2,), (2,)), ((1, 0), (1, 0)))
    yield (2, 3, 4), (3, 2, 5), (((), ()), ((1, 0), (0, 1)))
    yield (0, 3), (3, 4), (((1,), (0,)), ((), ()))


M, V, C = normal(2, 3), normal(3), normal(3, dtype="complex64")
MASK = np.array([True, False, True])
WHICH = np.array([2, 0, 1], "int32")

CASES = {
    "neg": (lambda lax, x: lax.neg(x), [V]),
    "copy": (lambda lax, x: lax.copy_p.bind(x), [V]),
    "select_n": (lambda lax, x, y: lax.select_n(MASK, x, y), [V, normal(3)]),
    "select_n scalar": (lambda lax, x, y: lax.select_n(True, x, y), [V, normal(3)]),
    "select_n three": (
        lambda lax, x, y, z: lax.select_n(WHICH, x, y, z),
        [V, normal(3), normal(3)],
    ),
    "reduce_sum": (lambda lax, x: lax.reduce_sum(x, (0, 2)), [normal(2, 3, 4)]),
    "reshape": (lambda lax, x: lax.reshape(x, (3, 2)), [M]),
    "squeeze": (lambda lax, x: lax.squeeze(x, (0, 2)), [normal(1, 3, 1)]),
    "transpose": (lambda lax, x: lax.transpose(x, (2, 0, 1)), [normal(2, 3, 4)]),
    "rev": (lambda lax, x: lax.rev(x, (1,)), [M]),
    "real": (lambda lax, z: lax.real(z), [C]),
    "imag": (lambda lax, z: lax.imag(z), [C]),
    "conj": (lambda lax, z: lax.conj(z), [C]),
    "complex": (lambda lax, x, y: lax.complex(x, y), [V, normal(3)]),
    "mul complex": (lambda lax, z: lax.mul(C, z), [normal(3, dtype="complex64")]),
    "reduce_precision": (lambda lax, x: lax.reduce_precision(x, 8, 23), [V]),
}
for reverse in (False, True):
    CASES[f"cumsum {reverse}"] = (
        lambda lax, x, r=reverse: lax.cumsum(x, axis=1, reverse=r),
        [M],
    )
for shape in ((2, 3), (1, 3), (2, 1), (1, 1), ()):
    small = normal(*shape)
    for name in ("add", "sub"):
        CASES[f"{name} {shape}"] = (
            lambda lax, x, y, name=name: getattr(lax, name)(x, y),
            [small, normal(2, 3)],
        )
    CASES[f"mul {shape}"] = lambda lax, x: lax.mul(x, M), [small]
    CASES[f"mul {shape} right"] = lambda lax, x: lax.mul(M, x), [small]
    CASES[f"div {shape}"] = lambda lax, x: lax.div(x, M), [small]
for new_dtype in ("float16", "complex64"):
    CASES[f"convert {new_dtype}"] = (
        lambda lax, x, d=new_dtype: lax.convert_element_type(x, d),
        [V],
    )
for shape, target, places in (
    ((2, 3), (4, 2, 5, 3), (1, 3)),
    ((1, 3), (4, 2, 3), (1, 2)),
    ((1, 3), (4, 1, 3), (1, 2)),
    ((), (2, 2), ()),
):
    CASES[f"broadcast_in_dim {shape} {target}"] = (
        lambda lax, x, t=target, p=places: lax.broadcast_in_dim(x, t, p),
        [normal(*shape)],
    )
for start, limit, strides in (
    ((1, 0), (3, 4), None),
    ((1, 0), (4, 5), (2, 3)),
    ((0, 1), (4, 5), (3, 2)),
    ((1, 0), (1, 5), (2, 3)),
):
    CASES[f"slice {start} {limit} {strides}"] = (
        lambda lax, x, s=start, e=limit, d=strides: lax.slice(x, s, e, d),
        [normal(4, 5)],
    )
for low, high, interior in (
    (1, 2, 0),
    (-1, 2, 1),
    (-1, -1, 2),
    (0, 0, 3),
    (3, -1, 1),
    (-2, 5, 1),
):
    config = ((low, high, interior),)
    CASES[f"pad {config}"] = (
        lambda lax, x, value, c=config: lax.pad(x, value, c),
        [V, normal()],
    )
for axis, shapes in ((0, [(1, 3), (4, 3), (2, 3)]), (1, [(2, 1), (2, 0), (2, 2)])):
    CASES[f"concatenate {axis}"] = (
        lambda lax, *xs, axis=axis: lax.concatenate(xs, axis),
        [normal(*shape) for shape in shapes],
    )
for left, right, numbers in cases_of_products():
    lhs, rhs = normal(*left), normal(*right)
    CASES[f"dot_general {left} {right} left"] = (
        lambda lax, x, y=rhs, n=numbers: lax.dot_general(x, y, n),
        [lhs],
    )
    CASES[f"dot_general {left} {right} right"] = (
        lambda lax, y, x=lhs, n=numbers: lax.dot_general(x, y, n),
        [rhs],
    )
HALF = normal(3, 4, dtype="float16")
CASES["dot_general float16"] = (
    lambda lax, x: lax.dot_general(
        x,
        HALF,
        (((1,), (0,)), ((), ())),
        preferred_element_type=np.float32,
    ),
    [normal(2, 3, dtype="float16")],
)
TRIANGLE = normal(3, 3) + 4 * np.eye(3, dtype="float32")
for left, conjugate in ((True, False), (False, True)):
    side = normal(3, 2) if left else normal(2, 3)
    CASES[f"triangular_solve {left}"] = (
        lambda lax, b, left=left, conjugate=conjugate: lax.linalg.triangular_solve(
            TRIANGLE.astype(b.dtype), b, left_side=left, conjugate_a=conjugate
        ),
        [(side + 1j * side[::-1]).astype("complex64") if conjugate else side],
    )
