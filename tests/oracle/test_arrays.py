"""Arrays, dtypes and the primitives of `minijax.lax` against the real JAX.

With ``MINIJAX_ORACLE=record`` the promotion table in `tests/data` is written anew.
"""

import itertools
import json
import os
import warnings
from pathlib import Path

import numpy as np
import pytest

jax = pytest.importorskip("jax")
import jax.numpy as jnp  # noqa: E402

import minijax  # noqa: E402
from minijax import lax  # noqa: E402
from minijax.arrays.array import as_array_impl  # noqa: E402
from minijax.lax.reductions import common_dtype_and_weak_type, promote_types  # noqa: E402
from tests import array_cases as cases  # noqa: E402
from tests.commands import LONG  # noqa: E402

TABLE = Path(__file__).parents[1] / "data" / "promotion.json"
BITS = pytest.mark.parametrize("x64", [False, True], ids=["32 bits", "64 bits"])
TOLERANCES = {"float16": 2e-3, "bfloat16": 4e-2, "float32": 4e-6, "complex64": 2e-5}


def run(function, *args, **params):
    """The result of a call, or the class of its error."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return function(*args, **params)
    except Exception as error:
        return error


def check(ours, theirs, what, tolerance=None):
    """Both failed with one class, or both gave the same array."""
    if isinstance(ours, Exception) or isinstance(theirs, Exception):
        assert type(ours) is type(theirs), f"{what}: {ours!r}, but JAX: {theirs!r}"
        return
    if isinstance(theirs, tuple | list):
        assert len(ours) == len(theirs), what
        for one, other in zip(ours, theirs):
            check(one, other, what, tolerance)
        return
    if not hasattr(theirs, "dtype"):
        assert ours == theirs, f"{what}: {ours}, but JAX: {theirs}"
        return
    signature = [(x.shape, x.dtype, x.weak_type) for x in (ours, theirs)]
    assert signature[0] == signature[1], f"{what}: {signature}"
    compare(np.asarray(ours), np.asarray(theirs), what, tolerance)


def compare(ours, theirs, what, tolerance=None):
    """Equal numbers, to a few units in the last place."""
    name = ours.dtype.name
    wide = np.complex128 if ours.dtype.kind == "c" else np.float64
    if ours.dtype.kind in "biu":
        np.testing.assert_array_equal(ours, theirs, what)
        return
    rtol = tolerance or TOLERANCES.get(name, 1e-12)
    with np.errstate(all="ignore"):
        ours, theirs = ours.astype(wide), theirs.astype(wide)
    np.testing.assert_allclose(ours, theirs, rtol=rtol, atol=rtol / 10, err_msg=what)


def both(x):
    """Our array and JAX's, of the same NumPy array."""
    return as_array_impl(x), jnp.asarray(x)


@BITS
@pytest.mark.parametrize("a", [*cases.DTYPES, "int*", "float*", "complex*"])
def test_promotion(a, x64):
    types = {"int*": int, "float*": float, "complex*": complex}
    table = record_promotion() if recording() else json.loads(TABLE.read_text())
    rows = table["64" if x64 else "32"]
    for b in [*cases.DTYPES, *types]:
        with jax.enable_x64(x64), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            nodes = [types.get(node, node) for node in (a, b)]
            dtype, weak = jax.dtypes.result_type(*nodes, return_weak_type_flag=True)
            assert rows[a][b] == [dtype.name, weak]
        with jax.enable_x64(x64), minijax.enable_x64(x64):
            theirs = jnp.promote_types(*nodes)
            assert promote_types(*nodes) == theirs, (a, b)


def recording():
    """Whether tables are to be written anew."""
    return os.environ.get("MINIJAX_ORACLE") == "record"


def record_promotion():
    """Write JAX's promotion table to `tests/data`, and return it."""
    types = {"int*": int, "float*": float, "complex*": complex}
    nodes = [*cases.DTYPES, *types]
    table = {}
    for bits in ("32", "64"):
        with jax.enable_x64(bits == "64"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            table[bits] = {a: {b: joined(types, a, b) for b in nodes} for a in nodes}
    lines = json.dumps(table, indent=0).replace("\n", "").replace("}, ", "},\n")
    TABLE.write_text(lines.replace('},"', '},\n"') + "\n")
    return table


def joined(types, a, b):
    """What JAX says of two types: the dtype and whether it is weak."""
    nodes = [types.get(node, node) for node in (a, b)]
    dtype, weak = jax.dtypes.result_type(*nodes, return_weak_type_flag=True)
    return [dtype.name, weak]


@BITS
def test_promotion_of_values(x64):
    values = [1, 1.0, 1j, True, np.int8(1), np.float64(1), np.ones(2, np.float16)]
    with jax.enable_x64(x64), minijax.enable_x64(x64):
        for pair in itertools.product(values, repeat=2):
            dtype, weak = jax.dtypes.result_type(*pair, return_weak_type_flag=True)
            assert common_dtype_and_weak_type(*pair) == (dtype, weak), pair


@pytest.mark.parametrize("dtype", cases.DTYPES)
@pytest.mark.parametrize("name", cases.UNARY)
def test_unary(name, dtype):
    x = cases.specimen(dtype)
    with jax.enable_x64(True), minijax.enable_x64(True):
        ours, theirs = both(x)
        what, tolerance = f"{name}({dtype})", cases.TOLERANCES.get(name)
        skip = cases.unspecified(name, x)
        ours, theirs = (
            run(getattr(lax, name), ours),
            run(getattr(jax.lax, name), theirs),
        )
        if not isinstance(ours, Exception) and not isinstance(theirs, Exception):
            assert (ours.shape, ours.dtype) == (theirs.shape, theirs.dtype), what
            ours, theirs = np.asarray(ours)[~skip], np.asarray(theirs)[~skip]
            compare(ours, theirs, what, max_tolerance(tolerance, dtype))
        else:
            check(ours, theirs, what)


def max_tolerance(tolerance, dtype):
    """The looser of a primitive's tolerance and its dtype's."""
    return tolerance and max(tolerance, TOLERANCES.get(dtype, 1e-12))


@pytest.mark.parametrize("dtype", cases.DTYPES)
@pytest.mark.parametrize("name", cases.BINARY)
def test_binary(name, dtype):
    x = cases.specimen(dtype)
    a, b = (
        np.ascontiguousarray(part).ravel()
        for part in np.broadcast_arrays(x[:, None], x)
    )
    keep = ~cases.unspecified_pair(name, a, b)
    a, b = a[keep], b[keep]
    with jax.enable_x64(True), minijax.enable_x64(True):
        ours = run(getattr(lax, name), as_array_impl(a), as_array_impl(b))
        theirs = run(getattr(jax.lax, name), jnp.asarray(a), jnp.asarray(b))
        tolerance = max_tolerance(cases.TOLERANCES.get(name), dtype)
        check(ours, theirs, f"{name}({dtype})", tolerance)


@pytest.mark.parametrize("dtype", cases.DTYPES)
def test_conversions(dtype):
    with jax.enable_x64(True), minijax.enable_x64(True):
        for new in cases.DTYPES:
            ours, theirs = both(cases.specimen(dtype))
            ours = run(lax.convert_element_type, ours, new)
            theirs = run(jax.lax.convert_element_type, theirs, new)
            check(ours, theirs, f"{dtype} to {new}")
            ours, theirs = both(cases.specimen(dtype))
            ours = run(lax.bitcast_convert_type, ours, new)
            theirs = run(jax.lax.bitcast_convert_type, theirs, new)
            if not (dtype == new == "bool"):
                check(ours, theirs, f"bits of {dtype} as {new}")


@pytest.mark.parametrize("dtype", cases.DTYPES)
@pytest.mark.parametrize("name", cases.REDUCTIONS)
def test_reductions(name, dtype):
    """A third of the shapes and axes, others for the next dtype; `LONG=1`: all."""
    if name == "cumlogsumexp" and cases.dtype_of(dtype).kind in "iu":
        pytest.skip("JAX raises an OverflowError here, minijax a TypeError")
    function, reference = getattr(lax, name), getattr(jax.lax, name)
    with jax.enable_x64(True), minijax.enable_x64(True):
        every, turn = cases.reductions(name), cases.DTYPES.index(dtype) % 3
        for shape, args in every if LONG else every[turn::3]:
            ours, theirs = both(cases.numbers(shape, dtype))
            what = f"{name}({dtype}{shape}, {args})"
            tolerance = {"complex64": 1e-4, "float16": 1e-2}.get(dtype)
            check(
                run(function, ours, *args),
                run(reference, theirs, *args),
                what,
                tolerance,
            )


@BITS
@pytest.mark.parametrize("program", cases.PROGRAMS)
def test_programs(program, x64):
    with jax.enable_x64(x64), minijax.enable_x64(x64):
        ours = run(eval, program, cases.environment(minijax, lax, as_array_impl))
        theirs = run(eval, program, cases.environment(jax, jax.lax, jnp.asarray))
        check(ours, theirs, program)


@pytest.mark.parametrize("program", cases.LENIENT)
def test_numbers_of_python(program):
    ours = run(eval, program, cases.environment(minijax, lax, as_array_impl))
    theirs = run(eval, program, cases.environment(jax, jax.lax, jnp.asarray))
    assert isinstance(theirs, TypeError)
    assert not isinstance(ours, Exception)


@BITS
@pytest.mark.parametrize("program", cases.MISTAKES)
def test_mistakes(program, x64):
    with jax.enable_x64(x64), minijax.enable_x64(x64):
        ours = run(eval, program, cases.environment(minijax, lax, as_array_impl))
        theirs = run(eval, program, cases.environment(jax, jax.lax, jnp.asarray))
        assert isinstance(ours, Exception)
        check(ours, theirs, program)


@pytest.mark.parametrize("dtype", cases.DTYPES)
def test_text(dtype):
    shapes = [
        (),
        (0,),
        (1,),
        (3,),
        (2, 3),
        (0, 3),
        (30,),
        (2, 2, 2),
        (1, 1, 1),
        (1200,),
    ]
    widths = range(1, 25) if dtype == "float32" else ()
    with jax.enable_x64(True), minijax.enable_x64(True):
        for shape in [*shapes, *((n,) for n in widths)]:
            ours, theirs = both(cases.numbers(shape, dtype))
            assert repr(ours) == repr(theirs)
            assert str(ours) == str(theirs)
            assert f"{ours}" == f"{theirs}"
        for number in (1, 1.5, 2j, True):
            assert repr(as_array_impl(number)) == repr(jnp.asarray(number))
        assert f"{as_array_impl(1.5):.3f}" == f"{jnp.asarray(1.5):.3f}"


@BITS
def test_abstract_values(x64):
    values = [
        1,
        1.0,
        1j,
        True,
        np.int8(1),
        np.float64(1),
        np.ones((2, 3)),
        np.arange(3),
    ]
    with jax.enable_x64(x64), minijax.enable_x64(x64):
        for value in values:
            ours, theirs = minijax.typeof(value), jax.typeof(value)
            assert repr(ours) == repr(theirs)
            assert ours.str_short() == theirs.str_short(short_dtypes=True)


def test_devices():
    assert repr(minijax.devices()) == repr(jax.devices())
    assert str(minijax.devices()[0]) == str(jax.devices()[0]).lower().replace("_", ":")
    for name in ("default_backend", "device_count", "local_device_count"):
        assert getattr(minijax, name)() == getattr(jax, name)()
