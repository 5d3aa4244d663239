"""`ds` in an index, arrays in files, and tokens, beside real JAX."""

import io

import jax
import numpy as np
import pytest

import minijax

CASES = {
    "start and size": lambda m, x: x[m.ds(1, 2)],
    "size": lambda m, x: x[m.ds(2)],
    "all": lambda m, x: x[m.ds(None)],
    "stride": lambda m, x: x.ravel()[m.ds(1, 3, 2)],
    "computed": lambda m, x: m.jit(lambda i: x[m.ds(i, 2)])(1),
    "computed stride": lambda m, x: m.jit(lambda i: x.ravel()[m.ds(i, 3, 3)])(2),
    "beyond the end": lambda m, x: x[m.ds(3, 2)],
    "from the end": lambda m, x: x[m.ds(-2, 2)],
    "beside an integer": lambda m, x: m.jit(lambda i: x[i, m.ds(i, 2)])(1),
    "beside a slice": lambda m, x: m.jit(lambda i: x[m.ds(i, 2), ::2])(1),
    "beside an array": lambda m, x: x[m.ds(1, 2), m.numpy.array([2, 0])],
    "beside arrays": lambda m, x: x[None, m.numpy.array([2, 0]), m.ds(1, 3)],
    "behind an ellipsis": lambda m, x: x[..., m.ds(1, 2)],
    "two": lambda m, x: m.jit(lambda i: x[m.ds(i, 2), m.ds(i + 1, 2)])(1),
    "as an argument": lambda m, x: m.jit(lambda s: x[s])(m.ds(1, 2)),
    "set": lambda m, x: x.at[m.ds(1, 2)].set(0.0),
    "set, computed": lambda m, x: m.jit(lambda i: x.at[i, m.ds(i, 2)].set(7.0))(1),
    "add": lambda m, x: x.at[m.ds(0, 2), m.numpy.array([1, 1])].add(1.0),
    "multiply, with a stride": lambda m, x: x.at[:, m.ds(0, 2, 2)].mul(3.0),
    "get": lambda m, x: x.at[m.ds(1, 2)].get(mode="clip"),
    "grad": lambda m, x: m.grad(lambda x: (x[m.ds(1, 2)] ** 2).sum())(x),
    "grad of set": lambda m, x: m.grad(lambda v: (x.at[m.ds(1, 2)].set(v) ** 2).sum())(
        x[:2]
    ),
    "vmap": lambda m, x: m.vmap(lambda i: x[m.ds(i, 2)])(m.numpy.arange(2)),
    "reference": lambda m, x: _of_reference(m, x),
}


def _of_reference(m, x):
    ref = m.new_ref(x)
    ref[m.ds(1, 2)] = x[:2] * 10
    m.jit(lambda ref, i: ref.__setitem__((i, m.ds(i, 2)), x[0, :2]))(ref, 1)
    return ref[m.ds(1, 2), 0], ref[...]


@pytest.mark.parametrize("name", CASES)
def test_windows_whose_start_is_computed(name):
    found, wanted = (
        CASES[name](m, m.numpy.arange(12.0).reshape(3, 4)) for m in (minijax, jax)
    )
    pairs = zip(jax.tree.leaves(found), jax.tree.leaves(wanted), strict=True)
    for one, other in pairs:
        assert (one.shape, one.dtype) == (other.shape, other.dtype)
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("args", [(0, 2, -1), (0, 2, 1.5), (0, "2")])
def test_what_is_no_window_is_refused(args):
    for m in (minijax, jax):
        with pytest.raises((TypeError, ValueError)):
            m.numpy.arange(4.0)[m.ds(*args)]


NARROW = """
    int2 uint2 int4 uint4 float4_e2m1fn float8_e3m4 float8_e4m3 float8_e4m3fn
    float8_e4m3b11fnuz float8_e4m3fnuz float8_e5m2 float8_e5m2fnuz bfloat16 float16
    int8 bool
""".split()


@pytest.mark.parametrize("dtype", NARROW)
@pytest.mark.parametrize("save", ["save", "savez", "numpy"])
def test_files_hold_narrow_arrays_as_those_of_jax(dtype, save):
    results = []
    for m in (minijax, jax):
        file = io.BytesIO()
        writer = np.save if save == "numpy" else getattr(m.numpy, save)
        writer(file, m.numpy.array([[0, 1], [1, 0]], dtype))
        file.seek(0)
        try:
            found = m.numpy.load(file)
            found = found["arr_0"] if save == "savez" else found
        except ValueError as error:
            results.append((b"", str(error), ()))
            continue
        kind = isinstance(found, m.Array), str(found.dtype), found.shape
        results.append((b"" if save == "savez" else file.getvalue(), kind, found))
    (*ours, one), (*theirs, other) = results
    assert ours == theirs
    assert np.asarray(one).tobytes() == np.asarray(other).tobytes()


@pytest.mark.parametrize("m", [minijax, jax], ids=["ours", "theirs"])
def test_tokens_go_through_programs(m):
    lax = m.lax

    def f(x):
        token = lax.after_all(lax.create_token(), lax.create_token(x))
        token, x = m.jit(lambda token, x: (lax.after_all(token), x * 2))(token, x)
        return x, lax.after_all(token, lax.create_token())

    assert float(m.jit(f)(1.0)[0]) == float(f(1.0)[0]) == 2
    assert m.jit(lax.create_token)() is not None and lax.after_all() is not None
