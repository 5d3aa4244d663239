"""Convolutions and folds of windows beside real JAX: values, derivatives, texts."""

import jax
import numpy as np
import pytest

import minijax
from minijax import errors  # noqa: F401
from tests.window_cases import convolution, pool

rng = np.random.default_rng(30)


def close(ours, theirs, tolerance=2e-4):
    for x, y in zip(jax.tree.leaves(ours), jax.tree.leaves(theirs), strict=True):
        x, y = np.asarray(x), np.asarray(y)
        assert (x.dtype, x.shape) == (y.dtype, y.shape)
        largest = np.abs(y[np.isfinite(y)]).max(initial=1)
        assert np.allclose(x, y, tolerance, tolerance * largest, equal_nan=True)


def both(call, *args):
    close(call(minijax, *args), call(jax, *args))


def convolved(m, how):
    return lambda x, w: m.lax.conv_general_dilated(x, w, **how)


@pytest.mark.parametrize("seed", range(8))
def test_random_convolutions(seed):
    x, w, how = convolution(np.random.default_rng(100 + seed))
    both(lambda m: convolved(m, how)(x, w))
    both(lambda m: m.jit(convolved(m, how))(x, w))


@pytest.mark.parametrize("seed", range(6))
def test_derivatives(seed):
    x, w, how = convolution(np.random.default_rng(200 + seed), "float32")

    def loss(m):
        return lambda x, w: (convolved(m, how)(x, w) ** 2).sum()

    def second(m, x, w):
        return m.jvp(m.grad(loss(m), (0, 1)), (x, w), (w.sum() + 0 * x, 0 * w + 1))[1]

    both(lambda m: m.grad(loss(m), (0, 1))(x, w))
    both(second, x, w)
    if seed % 2:
        both(lambda m: m.jit(m.grad(loss(m), (0, 1)))(x, w))


@pytest.mark.parametrize("dims", [(0, 0), (0, None), (None, 0), (1, 2)])
@pytest.mark.parametrize("seed", range(2))
def test_batches(seed, dims):
    x, w, how = convolution(np.random.default_rng(300 + seed), "float32")
    args = [
        z if dim is None else np.stack([z, z + 1, 2 * z], min(dim, z.ndim))
        for z, dim in zip((x, w), dims)
    ]
    dims = tuple(d if d is None else min(d, z.ndim) for d, z in zip(dims, (x, w)))
    both(lambda m: m.vmap(convolved(m, how), dims)(*args))


@pytest.mark.parametrize("seed", range(4))
def test_random_pools(seed):
    x, args = pool(np.random.default_rng(400 + seed), "float32")
    x = np.random.default_rng(seed).permutation(x.size).reshape(x.shape).astype("f4")
    for fold, init in ("add", 0.0), ("max", -np.inf), ("min", np.inf), ("max", 2.0):

        def call(m, x, fold=fold, init=init):
            return m.lax.reduce_window(x, init, getattr(m.lax, fold), *args)

        both(call, x)
        if init == 2.0:
            continue
        both(
            lambda m: m.jvp(lambda x: call(m, x), (x,), (x + 1,)),
        )
        both(lambda m: m.vmap(lambda x: call(m, x))(np.stack([x, -x])))


@pytest.mark.parametrize("fold", ["max", "min", "add"])
def test_derivatives_of_pools(fold):
    x = rng.normal(size=(2, 5, 6)).astype("f4")
    x[0, 2] = x[0, 3]

    def call(m):
        init = {"max": -np.inf, "min": np.inf, "add": 0.0}[fold]
        args = (1, 2, 3), (1, 2, 1), "SAME"
        return lambda x: m.lax.reduce_window(x, init, getattr(m.lax, fold), *args)

    def loss(m):
        return lambda x: (call(m)(x) ** 3).sum()

    both(lambda m: m.grad(loss(m))(x))
    both(lambda m: m.jit(m.grad(loss(m)))(x))
    both(lambda m: m.jvp(m.grad(loss(m)), (x,), (x + 1,)))
    both(lambda m: m.vmap(m.grad(loss(m)))(np.stack([x, -x])))
    both(lambda m: m.jacrev(call(m))(x))


def test_programs_of_two_numbers():
    x = rng.normal(size=(5, 6)).astype("f4")

    def call(m):
        def f(x, y):
            return {"a": m.lax.max(x["a"], y["a"]), "b": x["b"] * y["b"]}

        tree, inits = {"a": x, "b": x}, {"a": 0.5, "b": 2.0}
        return m.lax.reduce_window(tree, inits, f, (2, 3), (1, 2), "SAME")

    both(call)
    for fold in "mul", "max":

        def one(m, fold=fold):
            f = getattr(m.lax, fold)
            return lambda x: m.lax.reduce_window(x, 1.0, f, (2, 3), (1, 2), "SAME")

        both(lambda m: m.jvp(one(m), (x,), (x + 1,)))
        both(lambda m: m.vmap(one(m))(np.stack([x, x + 1])))


FORMS = {
    "same": (lambda m, x, w: m.lax.conv(x, w, (1, 2), "SAME")),
    "general": lambda m, x, w: m.lax.conv_with_general_padding(
        x, w, (1, 1), ((1, 2), (0, 1)), (2, 1), (1, 2)
    ),
    "preferred": lambda m, x, w: m.lax.conv_general_dilated(
        x.astype("i1"), w.astype("i1"), (1, 1), "SAME", preferred_element_type="int32"
    ),
    "halves": lambda m, x, w: m.lax.conv_general_dilated(
        x.astype("f2"), w.astype("f2"), (1, 1), "SAME", preferred_element_type="float32"
    ),
    "patches": lambda m, x, w: m.lax.conv_general_dilated_patches(
        x, (3, 2), (2, 1), "SAME"
    ),
    "patches, channels last": lambda m, x, w: m.lax.conv_general_dilated_patches(
        x, (3, 2), (2, 1), "VALID", dimension_numbers=("NWCH", "HWIO", "NHWC")
    ),
    "local": lambda m, x, w: m.lax.conv_general_dilated_local(
        x, np.arange(4 * 18 * 5 * 5.0).reshape(4, 18, 5, 5).astype("f4"), (1, 1),
        "VALID", (3, 2)
    ),
    "local, channels last": lambda m, x, w: m.lax.conv_general_dilated_local(
        x.transpose(0, 2, 3, 1), np.ones((5, 5, 18, 4), "f4"), (1, 1), "VALID", (3, 2),
        dimension_numbers=("NHWC", "HWIO", "NHWC"),
    ),
}  # fmt: skip
for _padding in ("SAME", "VALID", [(1, 2), (0, 1)]):
    for _stride in (1, 2, 3, 5):
        for _kernel in (False, True):
            FORMS[f"transposed {_padding} {_stride} {_kernel}"] = (
                lambda m, x, w, p=_padding, s=_stride, k=_kernel: m.lax.conv_transpose(
                    x, w if k else w.swapaxes(0, 1), (s, 2), p, (2, 1),
                    ("NCHW", "IOHW" if not k else "OIHW", "NCHW"), k and False,
                )
            )  # fmt: skip


@pytest.mark.parametrize("name", list(FORMS))
def test_forms(name):
    x = rng.normal(size=(2, 3, 7, 6)).astype("f4")
    w = rng.normal(size=(4, 3, 3, 2)).astype("f4")
    both(lambda m: FORMS[name](m, x, w))


def test_transposed_kernels():
    x, w = np.ones((2, 5, 5, 3), "f4"), rng.normal(size=(3, 2, 4, 3)).astype("f4")
    for how in {}, {"use_consistent_padding": True}, {"rhs_dilation": (2, 1)}:
        for padding in "SAME", [(1, 2), (0, 1)]:
            more = {"transpose_kernel": True, **how}
            args = x, w, (2, 1), padding
            both(lambda m: m.lax.conv_transpose(*args, **more))  # noqa: B023


@pytest.mark.parametrize("mode", ["full", "same", "valid"])
def test_signals(mode):
    for n, k in (5, 3), (3, 5), (4, 4), (4, 2), (2, 5), (1, 3):
        a, b = rng.normal(size=n) + 1j, rng.normal(size=k) + 0.5j
        for f in "convolve", "correlate":
            for x, y in (a, b), (a.real, b), (a.real.astype("i4"), b.real.astype("i4")):
                both(lambda m: getattr(m.numpy, f)(x, y, mode))  # noqa: B023
                both(lambda m: getattr(m.scipy.signal, f)(x, y, mode))  # noqa: B023
            x, y = np.outer(a, a), np.outer(b, b)
            both(lambda m: getattr(m.scipy.signal, f + "2d")(x, y, mode))  # noqa: B023


def texts(m):
    x, w = np.ones((2, 3, 8, 7), "f4"), np.ones((4, 3, 3, 2), "f4")
    p = np.ones((4, 5), "f4")
    lax, last = m.lax, ("NHWC", "HWIO", "NHWC")

    def same(x, w):
        return lax.conv_general_dilated(x, w, (2, 1), "SAME")

    def pooled(fold, init):
        return lambda x: lax.reduce_window(x, init, fold, (2, 2), (1, 2), "SAME")

    yield m.make_jaxpr(same)(x, w)
    yield m.make_jaxpr(lambda x, w: m.vjp(same, x, w)[1](same(x, w)))(x, w)
    yield m.make_jaxpr(
        lambda x, w: lax.conv_general_dilated(
            x, w, (1, 1), "SAME", dimension_numbers=last, preferred_element_type="f4"
        )
    )(np.ones((2, 5, 5, 3), "f4"), np.ones((3, 3, 3, 4), "f4"))
    for fold, init in (lax.add, 0.0), (lax.max, -np.inf), (lax.min, np.inf):
        yield m.make_jaxpr(pooled(fold, init))(p)
        yield m.make_jaxpr(m.vmap(pooled(fold, init)))(np.stack([p, p]))
        yield m.make_jaxpr(lambda x: m.jvp(pooled(fold, init), (x,), (x,)))(p)  # noqa: B023
    yield m.make_jaxpr(pooled(lax.mul, 1.0))(p)
    yield m.make_jaxpr(m.vmap(pooled(lax.mul, 1.0)))(np.stack([p, p]))
    yield m.make_jaxpr(pooled(lax.max, 2.0))(p)


def test_texts():
    for ours, theirs in zip(texts(minijax), texts(jax), strict=True):
        assert str(ours) == str(theirs)


X, W = np.ones((4, 2, 9, 8), "f4"), np.ones((6, 2, 3, 3), "f4")
REFUSED = {
    "padding": {"padding": "FOO"},
    "padding by name": {"lhs_dilation": (2, 2)},
    "strides": {"window_strides": (1,)},
    "pads": {"padding": [(0, 0)]},
    "pairs": {"padding": [0, 0]},
    "dilation": {"rhs_dilation": (0, 1)},
    "lhs dilation": {"padding": [(0, 0)] * 2, "lhs_dilation": (0, 1)},
    "ranks": {"rhs": W[0]},
    "features": {"rhs": np.ones((6, 3, 3, 3), "f4")},
    "groups": {"feature_group_count": 2},
    "no groups": {"feature_group_count": 0},
    "batch groups": {"batch_group_count": 3},
    "batch groups of features": {"batch_group_count": 4},
    "both groups": {"batch_group_count": 2, "feature_group_count": 2},
    "two strings": {"dimension_numbers": ("NCHW", "OIHW")},
    "letters": {"dimension_numbers": ("NCHW", "OIHW", "NCHX")},
    "too many letters": {"dimension_numbers": ("NCHHW", "OIHW", "NCHW")},
    "too few letters": {"dimension_numbers": ("NCH", "OIH", "NCH")},
    "no numbers": {"dimension_numbers": 3},
    "no strings": {"dimension_numbers": (None, None, None)},
    "dtypes": {"rhs": W.astype("f2")},
    "narrow": {"preferred_element_type": "float16"},
    "integers": {"preferred_element_type": "int32"},
    "complex": {"preferred_element_type": "complex64"},
    "negative": {"padding": [(-7, -7), (0, 0)]},
    "precision": {"precision": "foo"},
}
POOLS = {
    "dimensions": ((2,),),
    "strides": ((2, 2), (1,)),
    "padding": ((2, 2), (1, 1), "X"),
    "pairs": ((2, 2), (1, 1), [(0, 0)]),
    "empty": ((0, 2),),
    "no stride": ((1, 2), (0, 1)),
}


def error_of(call):
    with pytest.raises(Exception) as caught:
        call()
    return caught.type


@pytest.mark.parametrize("name", list(REFUSED))
def test_refused_convolutions(name):
    args = {"lhs": X, "rhs": W, "window_strides": (1, 1), "padding": "SAME"}
    args |= REFUSED[name]
    ours = error_of(lambda: minijax.lax.conv_general_dilated(**args))
    assert ours is error_of(lambda: jax.lax.conv_general_dilated(**args))


@pytest.mark.parametrize("name", list(POOLS))
def test_refused_pools(name):
    x, args = np.ones((4, 5), "f4"), POOLS[name]
    kinds = [
        error_of(lambda: m.lax.reduce_window(x, 0.0, m.lax.add, *args))  # noqa: B023
        for m in (minijax, jax)
    ]
    assert kinds[0] is kinds[1]


def test_shapes():
    for call in (
        lambda m: m.lax.padtype_to_pads((9, 8), (3, 4), (2, 1), "SAME"),
        lambda m: m.lax.padtype_to_pads((9, 8), (3, 4), (2, 1), "SAME_LOWER"),
        lambda m: m.lax.conv_shape_tuple(X.shape, W.shape, (2, 1), "SAME", 2),
        lambda m: m.lax.conv_general_shape_tuple(
            (4, 9, 8, 2), (3, 3, 2, 6), (2, 1), "SAME", ("NHWC", "HWIO", "NCHW")
        ),
        lambda m: m.lax.conv_transpose_shape_tuple(
            (4, 9, 8, 2), (3, 3, 2, 6), (2, 3), "SAME", ("NHWC", "HWIO", "NCHW")
        ),
        lambda m: m.lax.conv_transpose_shape_tuple(
            (4, 9, 8, 2), (3, 3, 2, 6), (2, 5), "VALID", ("NHWC", "HWIO", "NCHW")
        ),
        lambda m: m.lax.reduce_window_shape_tuple(
            (9, 8), (3, 4), (2, 1), ((1, 0), (0, 2)), (2, 1), (1, 2)
        ),
        lambda m: m.lax.conv_general_permutations(("NHWC", "HWIO", "NCHW")),
        lambda m: m.lax.conv_dimension_numbers(X.shape, W.shape, None),
    ):
        ours, theirs = call(minijax), call(jax)
        assert np.array_equal(np.array([*ours]), np.array([*theirs]))
