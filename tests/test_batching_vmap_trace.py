"""vmap against a Python loop: every rule, every subset of operands, every axis."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from minijax import grad, jit, lax
from minijax import numpy as jnp
from minijax.arrays.array import ShapedArray, eval_rules, shape_rules, typeof
from minijax.batching import vmap as batching_rules
from minijax.batching.vmap import BatchTracer, MappedAxis, batch_flat_fun, vmap
from minijax.core import Trace, current_trace, set_current_trace
from minijax.errors import UnexpectedTracerError
from minijax.interpreters.batching import register_vmappable, unregister_vmappable
from minijax.numpy.fft.primitive import FftType
from minijax.pytrees.api_util import jvp
from tests.arity import arity

vmap_rules = batching_rules.vmap_rules
SIZE = 2
RNG = np.random.default_rng(5)
F32, I32, U8, BOOL, C64 = map(
    np.dtype, ("float32", "int32", "uint8", "bool", "complex64")
)


def sample(shape, dtype):
    """Return positive numbers below one (floats) or below five (integers)."""
    if dtype == BOOL:
        return RNG.random(shape) > 0.5
    if dtype.kind in "iu":
        return RNG.integers(1, 5, shape).astype(dtype)
    values = RNG.uniform(0.2, 0.9, shape)
    if dtype.kind == "c":
        values = values + 1j * RNG.uniform(0.2, 0.9, shape)
    return np.asarray(values, dtype)



def accepted(primitive, arity):
    """Return a dtype that an elementwise primitive takes."""
    for dtype in (F32, I32, BOOL, C64):
        try:
            shape_rules[primitive](*[ShapedArray((), dtype)] * arity)
        except TypeError:
            continue
        return dtype
    raise AssertionError(f"no sample for {primitive}")


STRUCTURED = {
    "fft": [
        ([((2, 6), C64)], {"fft_type": FftType.FFT, "fft_lengths": (6,)}),
        ([((2, 6), C64)], {"fft_type": FftType.IFFT, "fft_lengths": (2, 6)}),
        ([((2, 6), F32)], {"fft_type": FftType.RFFT, "fft_lengths": (6,)}),
        ([((2, 4), C64)], {"fft_type": FftType.IRFFT, "fft_lengths": (7,)}),
    ],
    "select_n": [
        ([((2, 3), BOOL), ((2, 3), F32), ((2, 3), F32)], {}),
        ([((), BOOL), ((2, 3), F32), ((2, 3), F32)], {}),
        ([((), I32), ((), F32), ((), F32), ((), F32), ((), F32), ((), F32)], {}),
    ],
    "clamp": [
        ([((2, 3), F32)] * 3, {}),
        ([((), F32), ((2, 3), F32), ((), F32)], {}),
        ([((), F32)] * 3, {}),
    ],
    "broadcast_in_dim": [
        ([((3, 4), F32)], {"shape": (3, 5, 4), "broadcast_dimensions": (0, 2)}),
        ([((1, 4), F32)], {"shape": (3, 4), "broadcast_dimensions": (0, 1)}),
        ([((), I32)], {"shape": (3,), "broadcast_dimensions": ()}),
    ],
    "reshape": [([((2, 3), F32)], {"new_sizes": (3, 2)})],
    "transpose": [([((2, 3, 4), F32)], {"permutation": (2, 0, 1)})],
    "squeeze": [([((1, 3, 1), F32)], {"dimensions": (0, 2)})],
    "slice": [
        (
            [((3, 4), F32)],
            {"start_indices": (1, 0), "limit_indices": (3, 4), "strides": strides},
        )
        for strides in (None, (1, 2))
    ],
    "pad": [
        ([((3, 4), F32), ((), F32)], {"padding_config": ((1, -1, 2), (0, 2, 0))}),
        ([((3,), BOOL), ((), BOOL)], {"padding_config": ((1, 1, 0),)}),
    ],
    "rev": [([((3, 4), F32)], {"dimensions": (1,)})],
    "concatenate": [([((3, 4), F32), ((3, 1), F32)], {"dimension": 1})],
    "convert_element_type": [([((3, 4), F32)], {"new_dtype": I32, "weak_type": False})],
    "bitcast_convert_type": [([((3, 4), F32)], {"new_dtype": I32})],
    "integer_pow": [([((3, 4), F32)], {"y": y}) for y in (-2, 3)],
    "reduce_precision": [([((3, 4), F32)], {"exponent_bits": 5, "mantissa_bits": 10})],
    "round": [([((3, 4), F32)], {"rounding_method": 1})],
    "argmax": [([((3, 4), F32)], {"axes": (1,), "index_dtype": I32})],
    "argmin": [([((3, 4), I32)], {"axes": (0,), "index_dtype": I32})],
    "dot_general": [
        (
            [(lhs, F32), (rhs, F32)],
            {"dimension_numbers": numbers, "preferred_element_type": F32},
        )
        for lhs, rhs, numbers in [
            ((3, 4), (4, 5), (((1,), (0,)), ((), ()))),
            ((4,), (4,), (((0,), (0,)), ((), ()))),
            ((2,), (3,), (((), ()), ((), ()))),
            ((2, 3, 4), (2, 4, 5), (((2,), (1,)), ((0,), (0,)))),
            ((3, 2, 5, 4), (4, 6, 2, 3), (((3, 0), (0, 3)), ((1,), (2,)))),
        ]
    ],
}
MATRIX, VECTOR = ((3, 3), F32), ((3,), F32)
STRUCTURED |= {
    "hessenberg": [([MATRIX], {})],
    "tridiagonal": [([MATRIX], {"lower": lower}) for lower in (False, True)],
    "geqrf": [([((3, 2), F32)], {}), ([((3, 3), C64)], {})],
    "householder_product": [([((3, 2), F32), ((2,), F32)], {})],
    "ormqr": [
        ([MATRIX, VECTOR, MATRIX], {"left": left, "transpose": not left})
        for left in (False, True)
    ],
    "schur": [
        (
            [((3, 3), dtype)],
            {
                "compute_schur_vectors": True,
                "sort_eig_vals": False,
                "select_callable": None,
            },
        )
        for dtype in (F32, C64)
    ],
    "symmetric_product": [([((3, 2), F32), MATRIX], {"alpha": 2.0, "beta": 0.5})],
}
for name in "sum prod max min".split():
    STRUCTURED[f"reduce_{name}"] = [([((3, 4, 2), F32)], {"axes": (0, 2)})]
    STRUCTURED[f"cum{name}"] = [([((3, 4), F32)], {"axis": 1, "reverse": True})]
for name in "and or xor".split():
    STRUCTURED[f"reduce_{name}"] = [([((3, 4), BOOL)], {"axes": (1,)})]
STRUCTURED["cumlogsumexp"] = [([((3, 4), F32)], {"axis": 0, "reverse": False})]

PAIRS = [((2, 3), (2, 3)), ((), (2, 3)), ((1, 3), (2, 1)), ((), ())]
TRIPLES = [((2, 3),) * 3, ((), (), (2, 3)), ((1, 3), (2, 1), ()), ((),) * 3]
SHAPES = {1: [((2, 3),), ((),)], 2: PAIRS, 3: TRIPLES}


def samples(primitive):
    """Return operands' shapes and dtypes, with parameters, for a primitive."""
    if primitive.name in STRUCTURED:
        return STRUCTURED[primitive.name]
    shapes = SHAPES[arity(primitive)]
    dtype = accepted(primitive, len(shapes[0]))
    return [([(shape, dtype) for shape in group], {}) for group in shapes]


def placements(operands):
    """Return every choice of mapped axes, except that of none at all."""
    choices = [[None, *range(len(shape) + 1)] for shape, _ in operands]
    return [dims for dims in itertools.product(*choices) if set(dims) != {None}]


def batched(shape, dtype, dim):
    shape = shape if dim is None else (*shape[:dim], SIZE, *shape[dim:])
    return sample(shape, dtype)


def check_against_loop(f, args, dims):
    axis = MappedAxis(None, SIZE)
    [value], [dim] = batch_flat_fun(lambda *xs: [f(*xs)], args, dims, axis)
    expected = [
        f(*[x if d is None else np.take(x, i, d) for x, d in zip(args, dims)])
        for i in range(SIZE)
    ]
    assert typeof(value).weak_type == typeof(expected[0]).weak_type
    result = np.moveaxis(np.asarray(value), dim, 0)
    expected = np.stack([np.asarray(x) for x in expected])
    assert result.dtype == expected.dtype
    np.testing.assert_allclose(result, expected, rtol=1e-5, err_msg=str(dims))


COLLECTIVE = "psum pmax pmin ppermute all_gather reduce_scatter all_to_all".split()
NOT_HERE = ["iota", "empty2", "axis_index", *COLLECTIVE]
# Those that act on keys, which are no numbers: tests/test_prng_keys.py.
KEYED = "seed wrap unwrap split fold_in bits clone".split()
NOT_HERE += [f"random_{name}" for name in KEYED]
NOT_HERE += ["sort"]  # tests/test_sorting_sort_rules.py
# tests/test_windows.py
WINDOWS = "conv_general_dilated select_and_gather_add select_and_scatter_add"
NOT_HERE += [*WINDOWS.split(), "reduce_window"]
NOT_HERE += [f"reduce_window_{name}" for name in ("sum", "max", "min")]
# They want matrices: tests/test_linear_algebra_primitives.py.
MATRICES = "cholesky eig eigh lu lu_pivots_to_permutation qr svd triangular_solve"
NOT_HERE += [*MATRICES.split(), "tridiagonal_solve", "cholesky_update"]
# tests/test_indexing_gather_scatter_rules.py
NOT_HERE += ["gather", "scatter", "dynamic_slice", "dynamic_update_slice"]
NOT_HERE += [f"scatter-{how}" for how in "add sub mul min max".split()]
NOT_HERE += ["shard_map"]  # whose tests are in tests/test_sharding_replicas.py
FLOOR_2 = [p for p in eval_rules if p.name not in NOT_HERE]


def test_every_primitive_has_a_rule_or_a_reason():
    holes = [
        p for p in shape_rules if p not in vmap_rules and p not in vmap_rules.reasons
    ]
    assert not holes


@pytest.mark.parametrize("primitive", FLOOR_2, ids=str)
def test_rule_equals_loop(primitive):
    for operands, params in samples(primitive):
        for dims in placements(operands):
            args = [batched(*operand, dim) for operand, dim in zip(operands, dims)]
            check_against_loop(
                lambda *xs: primitive.bind_all(*xs, **params)[0],  # noqa: B023
                args,
                dims,
            )


@settings(max_examples=60)
@given(st.data())
def test_dot_general_of_any_rank(data):
    count = st.integers(0, 2)
    batch, contract = data.draw(count), data.draw(count)
    kinds = ["b"] * batch + ["c"] * contract
    sides, numbers = [], []
    for _ in range(2):
        free = ["f"] * data.draw(count)
        labels = [f"{kind}{i}" for i, kind in enumerate(kinds)] + free
        order = data.draw(st.permutations(labels))
        sides.append(tuple(2 if x == "f" else 2 + int(x[1]) for x in order))
        places = {x: i for i, x in enumerate(order) if x != "f"}
        numbers.append([places[x] for x in labels if x != "f"])
    batches = tuple(tuple(side[:batch]) for side in numbers)
    contracts = tuple(tuple(side[batch:]) for side in numbers)
    dims = [data.draw(st.sampled_from([None, *range(len(s) + 1)])) for s in sides]
    if dims == [None, None]:
        return
    args = [batched(shape, F32, dim) for shape, dim in zip(sides, dims)]
    check_against_loop(
        lambda x, y: lax.dot_general(x, y, (contracts, batches)), args, dims
    )


class RecordTrace(Trace):
    """Notes the names of primitives, and lets the parent compute."""

    def __init__(self, parent):
        self.parent, self.names = parent, []

    def process_primitive(self, primitive, args, params):
        self.names.append(primitive.name)
        with set_current_trace(self.parent):
            return primitive.bind_all(*args, **params)


def operations(f, *args):
    trace = RecordTrace(current_trace())
    with set_current_trace(trace):
        f(*args)
    return trace.names


X, M, T = sample((3,), F32), sample((2, 3), F32), sample((4, 2, 3), F32)
NUMBERS = (((0,), (0,)), ((), ()))

# What is bound below vmap: nothing is moved or stretched that need not be.
ECONOMY = [
    ("same axis", lambda: vmap(lax.add, in_axes=1, out_axes=1)(M, M), ["add"]),
    ("shared scalar", lambda: vmap(lambda x: lax.mul(x, 2.0))(X), ["mul"]),
    (
        "shared array stretches by an axis of size 1",
        lambda: vmap(lax.add, in_axes=(0, None))(M, X),
        ["broadcast_in_dim", "add"],
    ),
    (
        "shared computation runs once, on one example",
        lambda: vmap(lambda x: lax.add(x, lax.sin(lax.cos(X))))(M),
        ["cos", "sin", "broadcast_in_dim", "add"],
    ),
    (
        "one batched operand of a product is a free axis",
        lambda: vmap(lambda x: lax.dot_general(x, X, NUMBERS))(M),
        ["dot_general"],
    ),
    (
        "two are batch axes",
        lambda: vmap(lambda x, y: lax.dot_general(x, y, NUMBERS))(M, M),
        ["dot_general"],
    ),
    (
        "reduction in place",
        lambda: vmap(lambda x: lax.reduce_sum(x, (0,)), 1)(T),
        ["reduce_sum"],
    ),
    (
        "transposed once",
        lambda: vmap(lambda x: lax.transpose(x, (1, 0)), 2)(T),
        ["transpose"],
    ),
    ("constant result", lambda: vmap(lambda x: 1.0)(X), ["broadcast_in_dim"]),
    ("constant result, not mapped", lambda: vmap(lambda x: 1.0, out_axes=None)(X), []),
    ("identity", lambda: vmap(lambda x: x)(M), []),
]


@pytest.mark.parametrize(
    ("f", "expected"), [case[1:] for case in ECONOMY], ids=[case[0] for case in ECONOMY]
)
def test_economy(f, expected):
    assert operations(f) == expected


def test_pytrees_prefixes_and_keywords():
    def f(params, x, *, scale):
        return {"y": lax.mul(params["w"], x), "b": (params["b"], scale)}

    params = {"w": M, "b": X}
    result = vmap(
        f, in_axes=({"w": 0, "b": None}, None), out_axes={"y": 1, "b": (None, 0)}
    )(params, X, scale=sample((2,), F32))
    assert result["y"].shape == (3, 2)
    np.testing.assert_allclose(result["y"], (M * X).T, rtol=1e-6)
    assert result["b"][0] is X
    assert result["b"][1].shape == (2,)


def test_negative_axes_and_last_out_axis():
    result = vmap(lambda x: lax.mul(x, 2.0), in_axes=-2, out_axes=-1)(T)
    np.testing.assert_allclose(result, np.moveaxis(T, 1, -1) * 2)


def test_axis_size_without_mapped_arguments():
    assert vmap(lambda x: lax.sin(x), in_axes=None, axis_size=4)(X).shape == (4, 3)
    assert vmap(lambda: 1.0, axis_size=4)().shape == (4,)


def test_zero_examples():
    assert vmap(lambda x: lax.reduce_sum(x, (0,)))(np.ones((0, 3), F32)).shape == (0,)


def test_arguments_that_are_not_mapped_may_be_anything():
    def scaled(x, how):
        return lax.mul(x, {"double": 2.0}[how])

    np.testing.assert_allclose(vmap(scaled, (0, None))(X, "double"), X * 2)
    assert vmap(lambda x, nothing: x)(X, None) is X


def test_function_is_called_once():
    calls = []
    vmap(lambda x: calls.append(x) or x)(M)
    [tracer] = calls
    assert isinstance(tracer, BatchTracer)
    assert (tracer.shape, tracer.dtype) == ((3,), F32)
    assert repr(tracer) == "BatchTracer(aval=float32[3], batched=float32[2,3])"


def test_metadata_is_that_of_the_function():
    def affine(x):
        "Double."
        return lax.mul(x, 2.0)

    assert vmap(affine).__name__ == "affine"
    assert vmap(affine).__doc__.endswith("Original documentation:\n\nDouble.")


def test_nested_axes():
    outer = vmap(vmap(lax.mul, in_axes=(0, None)), in_axes=(None, 0))
    np.testing.assert_allclose(outer(X, sample((2,), F32)).shape, (2, 3))
    product = vmap(
        vmap(lambda x, y: lax.dot_general(x, y, NUMBERS), (None, 0)), (0, None)
    )
    np.testing.assert_allclose(product(M, M), M @ M.T, rtol=1e-6)


def test_inner_vmap_leaves_outer_tracers_alone():
    result = vmap(lambda x: vmap(lambda y: lax.mul(x, y))(X))(X)
    np.testing.assert_allclose(result, np.outer(X, X), rtol=1e-6)
    result = vmap(lambda x: vmap(lambda y: x)(X))(X)
    np.testing.assert_allclose(result, np.broadcast_to(X[:, None], (3, 3)))


def test_vmap_of_jvp_and_jvp_of_vmap():
    def f(x):
        return lax.mul(lax.sin(x), x)

    per_example = vmap(lambda x, t: jvp(f, (x,), (t,)))(X, 2 * X)
    whole = jvp(vmap(f), (X,), (2 * X,))
    for a, b in zip(per_example, whole):
        np.testing.assert_allclose(a, b, rtol=1e-6)


def test_shared_tangent_stays_shared():
    values, slopes = vmap(
        lambda x: jvp(lambda y: lax.mul(y, 3.0), (x,), (np.float32(1),)),
        out_axes=(0, None),
    )(X)
    assert slopes.shape == ()


def test_leaked_tracer():
    kept = []
    vmap(lambda x: kept.append(x) or x)(X)
    with pytest.raises(UnexpectedTracerError, match="'sin' was applied to BatchTracer"):
        lax.sin(kept[0])


def identity(x):
    return x


def two(first, second):
    return first


ERRORS = [
    (TypeError, "Expected a callable value, got 3", lambda: vmap(3)),
    (
        TypeError,
        "in_axes must be an int, None, or a tuple",
        lambda: vmap(identity, "a"),
    ),
    (TypeError, "but got True", lambda: vmap(identity, True)),
    (TypeError, "but got {'x': 0}", lambda: vmap(identity, {"x": 0})),
    (TypeError, "container with those types as leaves", lambda: vmap(identity, (0.5,))),
    (TypeError, "vmap out_axes must be an int", lambda: vmap(identity, out_axes=0.5)),
    (TypeError, "unhashable type: 'list'", lambda: vmap(identity, axis_name=[0])),
    (
        ValueError,
        r"len\(in_axes\)=2, len\(args\)=1",
        lambda: vmap(identity, (0, 0))(X),
    ),
    (
        ValueError,
        r"at in_axes\[0\]: expected a dict",
        lambda: vmap(identity, ({"a": 0},))({"a": X, "b": X}),
    ),
    (
        ValueError,
        r"along axis 3, which implies that its rank should be at least 4, "
        r"but is only 1 \(its shape is \(3,\)\): x\['w'\]",
        lambda: vmap(identity, 3)({"w": X}),
    ),
    (
        ValueError,
        "rank should be at least 3, but is only 2",
        lambda: vmap(identity, -3)(M),
    ),
    (ValueError, "at least 1, but is only 0", lambda: vmap(identity)(1.0)),
    (
        ValueError,
        r"\* one axis had size 3: axis 0 of argument first\['a'\] of type "
        r"float32\[3\];\n  \* one axis had size 2: axis 0 of argument second of type "
        r"float32\[2,3\]\n",
        lambda: vmap(two)({"a": X}, M),
    ),
    (
        ValueError,
        r"\* the `axis_size` argument was 4;\n  \* one axis had size 3: axis 0 of "
        r"argument x of",
        lambda: vmap(identity, axis_size=4)(X),
    ),
    (
        ValueError,
        r"most axes \(3 of them\) had size 2, e.g. axis 0 of argument x\[0\] of",
        lambda: vmap(identity)([M, M, M, X]),
    ),
    (
        ValueError,
        "something to map over",
        lambda: vmap(two, (None, None))(X, X),
    ),
    (ValueError, "argument containing an array", lambda: vmap(two)({}, ())),
    (
        TypeError,
        "map second along axis 0, but it is no array: 's'",
        lambda: vmap(two)(X, "s"),
    ),
    (TypeError, "returned a value of type str", lambda: vmap(lambda x: "s")(X)),
    (
        ValueError,
        r"at vmap out_axes\['r'\]\[0\], got axis spec None but output",
        lambda: vmap(lambda x: {"r": (x, 1.0)}, out_axes={"r": (None, None)})(X),
    ),
    (
        ValueError,
        r"out_axes\['q'\], axis -5 is out of bounds for array of dimension 2",
        lambda: vmap(lambda x: {"q": x}, out_axes=-5)(M),
    ),
    (
        ValueError,
        "axis 5 is out of bounds for array of dimension 1",
        lambda: vmap(lambda x: 1.0, out_axes=5)(X),
    ),
    (
        ValueError,
        "expected a tuple of length 3",
        lambda: vmap(lambda x: (x, x), out_axes=(0, 1, 2))(X),
    ),
    (  # as many examples as the other operand has elements
        TypeError,
        r"select cases must have the same shapes.* got \(\), \(\) and \(3,\)",
        lambda: vmap(lambda x: lax.select_n(np.arange(3) > 0, x, x))(np.ones(3)),
    ),
    (
        TypeError,
        r"got min.shape=\(3,\), operand.shape=\(\)",
        lambda: vmap(lambda x: lax.clamp(np.zeros(3), x, np.ones(3)))(np.ones(3)),
    ),
]


@pytest.mark.parametrize(("error", "message", "call"), ERRORS)
def test_errors(error, message, call):
    with pytest.raises(error, match=message):
        call()


class Named:
    """An array whose axes have names; an example of it has one name less."""

    def __init__(self, names, array):
        self.names, self.array = names, array


class At:
    def __init__(self, name, axis):
        self.name, self.axis = name, axis


def named_example(go_on, indices, x, at):
    if isinstance(at, At):
        names = tuple(name for name in x.names if name != at.name)
        return Named(names, go_on(x.array, at.axis))
    return Named(x.names, x.array)


def named_whole(go_on, size, x, at):
    names = (*x.names[: at.axis], at.name, *x.names[at.axis :])
    return Named(names, go_on(size, x.array, at.axis))


def test_objects_that_know_their_examples():
    register_vmappable(Named, At, int, named_example, named_whole, None)
    rows = Named(("row", "column"), jnp.arange(6.0).reshape(2, 3))

    def f(x, y, shift=0.0):
        assert x.names == ("column",)
        return Named(x.names, x.array * y + shift), y

    axes = (At("row", 0), 0), (At("row", 1), 0)
    for size in (2, None):
        whole, same = vmap(f, *axes, axis_size=size)(rows, jnp.array([1.0, 10.0]))
        assert whole.names == ("column", "row")
        np.testing.assert_array_equal(whole.array, [[0, 30], [1, 40], [2, 50]])
        np.testing.assert_array_equal(same, [1, 10])
    compiled = jit(lambda a: vmap(f, *axes)(Named(rows.names, a), jnp.ones(2))[0].array)
    np.testing.assert_array_equal(compiled(rows.array), rows.array.T)
    slope = grad(lambda a: (compiled(a) ** 2).sum())(rows.array)
    np.testing.assert_array_equal(slope, 2 * rows.array)
    with pytest.raises(ValueError, match="needs axis_size"):
        vmap(lambda x: x, At("row", 0), At("row", 0))(rows)
    with pytest.raises(ValueError, match="out_axes is None"):
        vmap(lambda x: x.array, At("row", 0), None, axis_size=2)(rows)
    unregister_vmappable(Named)
    assert vmap(lambda x: 2 * x)(jnp.ones(2)).shape == (2,)
