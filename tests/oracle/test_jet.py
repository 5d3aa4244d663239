"""Taylor series beside JAX: every rule of `jax.experimental.jet`, and what it lacks."""

from functools import reduce
from importlib import import_module

import jax
import numpy as np
import pytest

import minijax

ORDER = 4


def jet_of(m):
    return import_module(f"{m.__name__}.experimental.jet").jet


def rows(*shapes, low=0.2, high=0.8, seed=0):
    """Return arguments in an interval, and a series for each of them."""
    rng = np.random.default_rng(seed)
    primals = [rng.uniform(low, high, shape) for shape in shapes]
    return primals, [[rng.normal(size=shape) for _ in range(ORDER)] for shape in shapes]


def leaves_of(m, f, primals, series, **how):
    with m.enable_x64(True):
        found = jet_of(m)(lambda *xs: f(m, *xs), primals, series, **how)
        return m.tree_util.tree_leaves(found)


def both(f, primals, series, rtol=1e-9, atol=1e-10, **how):
    """Compare the series that two packages give, in 64 bits."""
    found = [leaves_of(m, f, primals, series, **how) for m in (minijax, jax)]
    for ours, theirs in zip(*found, strict=True):
        assert np.shape(ours) == np.shape(theirs)
        assert np.asarray(ours).dtype == np.asarray(theirs).dtype
        np.testing.assert_allclose(ours, theirs, rtol=rtol, atol=atol)


def nested(m, f, primals, series):
    """Return the value of `f` on a path and its derivatives, by `jvp` inside `jvp`."""

    def path(t):
        powers = [t**k / float(np.prod(range(1, k + 1))) for k in range(1, ORDER + 1)]
        return f(
            m,
            *[
                reduce(lambda x, pair: x + pair[0] * pair[1], zip(powers, terms), x)
                for x, terms in zip(primals, series)
            ],
        )

    found, g = [], path
    for _ in range(ORDER + 1):
        found.append(m.tree_util.tree_leaves(g(0.0)))
        g = lambda t, g=g: m.jvp(g, (t,), (1.0,))[1]  # noqa: E731
    return [x for leaf in zip(*found) for x in leaf]


def beside_nested(f, primals, series, rtol=1e-8, oracle=jax):
    """Compare a jet with the nested derivatives of a package."""
    with minijax.enable_x64(True):
        outs, terms = jet_of(minijax)(lambda *xs: f(minijax, *xs), primals, series)
        outs, treedef = minijax.tree_util.tree_flatten(outs)
        ours = [x for o, t in zip(outs, treedef.flatten_up_to(terms)) for x in (o, *t)]
    with oracle.enable_x64(True):
        theirs = nested(oracle, f, primals, series)
    for one, other in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(one, other, rtol=rtol, atol=1e-9)


UNARY = [
    *("neg real imag conj exp log sin cos sinh cosh tanh logistic sqrt rsqrt").split(),
    *("square expm1 log1p asinh atanh erf erfc erf_inv abs floor ceil round").split(),
    *("sign is_finite stop_gradient reduce_sum reduce_max reduce_min").split(),
    *("cumsum cumprod cummax cummin").split(),
]
COMPLEX = ("real", "imag", "conj")


def unary(name):
    def f(m, x):
        x = m.lax.complex(x, x * x) if name in COMPLEX else x
        if name.startswith("reduce"):
            return getattr(m.lax, name)(x, (0,))
        return getattr(m.lax, name)(x)

    return f


@pytest.mark.parametrize("name", UNARY)
def test_unary(name):
    both(unary(name), *rows((3,)))


def test_acosh():
    both(lambda m, x: m.lax.acosh(x), *rows((3,), low=1.2, high=2))


BINARY = "add sub mul div pow max min atan2 rem complex eq ne lt le gt ge".split()


@pytest.mark.parametrize("name", BINARY)
@pytest.mark.parametrize("moving", ["both", "first", "second"])
def test_binary(name, moving):
    (x, y), (u, w) = rows((3,), (3,))
    f = lambda m, x, y: getattr(m.lax, name)(x, y)  # noqa: E731
    if moving == "both":
        both(f, (x, y), (u, w))
    elif moving == "first":
        both(lambda m, x: f(m, x, m.numpy.asarray(y)), (x,), (u,))
    else:
        both(lambda m, y: f(m, m.numpy.asarray(x), y), (y,), (w,))


@pytest.mark.parametrize("power", [-3, -1, 0, 1, 2, 3, 7])
@pytest.mark.parametrize("low", [-0.8, 0.2])
def test_integer_pow(power, low):
    both(lambda m, x: m.lax.integer_pow(x, power), *rows((3,), low=low, high=low + 0.6))


def test_integer_pow_at_zero():
    both(lambda m, x: m.lax.integer_pow(x, 3), (np.zeros(2),), rows((2,))[1])


def test_pow_of_fixed_exponent():
    both(lambda m, x: x**2.5 + x**-0.5, *rows((3,)))


STRUCTURAL = {
    "broadcast": lambda m, x: m.lax.broadcast_in_dim(x, (2, 3, 4), (1, 2)),
    "concatenate": lambda m, x: m.lax.concatenate([x, x * x], 0),
    "constants": lambda m, x: m.lax.concatenate([x, m.numpy.ones((2, 4))], 0),
    "split": lambda m, x: m.numpy.split(x, 2, axis=1),
    "pad": lambda m, x: m.lax.pad(x, x[0, 0], ((1, 2, 1), (0, 0, 0))),
    "reshape": lambda m, x: m.lax.reshape(x, (4, 3)),
    "squeeze": lambda m, x: m.lax.squeeze(x[:1], (0,)),
    "rev": lambda m, x: m.lax.rev(x, (0,)),
    "transpose": lambda m, x: m.lax.transpose(x, (1, 0)),
    "slice": lambda m, x: m.lax.slice(x, (0, 1), (3, 4), (2, 1)),
    "dynamic slice": lambda m, x: m.lax.dynamic_slice(x, (1, 2), (2, 2)),
    "dynamic update": lambda m, x: m.lax.dynamic_update_slice(x, x[:1] ** 2, (2, 0)),
    "gather": lambda m, x: x[m.numpy.array([2, 0, 2]), m.numpy.array([1, 1, 3])],
    "scatter-add": lambda m, x: x.at[m.numpy.array([2, 0, 2])].add(x * x),
    "select": lambda m, x: m.numpy.where(x > 0.5, x * x, 3.0),
    "select_n": lambda m, x: m.lax.select_n(m.numpy.int32(1), x, x * x, -x),
    "clamp": lambda m, x: m.lax.clamp(x * 0 + 0.3, x, x * 0 + 0.6),
    "convert": lambda m, x: x.astype("float32").astype("float64"),
    "integers": lambda m, x: (x > 0.5, m.lax.floor(x * 10)),
    "fft": lambda m, x: m.numpy.fft.fft(x),
    "window": lambda m, x: m.lax.reduce_window(
        x, 0.0, m.lax.add, (2, 2), (1, 1), "SAME"
    ),
    "mean": lambda m, x: (m.numpy.mean(x, 1), m.numpy.var(x)),
    "tree": lambda m, x: {"a": x, "b": (x * x, 2.0, None)},
}


@pytest.mark.parametrize("name", STRUCTURAL)
def test_structure(name):
    both(STRUCTURAL[name], *rows((3, 4)), rtol=1e-6 if name == "convert" else 1e-9)


def test_products():
    both(lambda m, x, y: x @ y, *rows((2, 3), (3, 4)))
    both(lambda m, x: m.numpy.ones((2, 2)) @ x, *rows((2, 3)))
    shapes = (2, 3, 4), (2, 4, 3)
    both(lambda m, x, y: m.numpy.einsum("bij,bjk->ik", x, y), *rows(*shapes))
    both(
        lambda m, x, y: m.lax.conv_general_dilated(x, y, (1, 1), "SAME"),
        *rows((1, 2, 5, 5), (3, 2, 2, 2)),
    )


PROGRAMS = {
    "mlp": lambda m, x: m.numpy.tanh(x @ m.numpy.sin(x.T)) @ m.nn.softmax(x),
    "jit": lambda m, x: m.jit(lambda y: m.numpy.sin(y) * y)(x),
    "nested jit": lambda m, x: m.jit(lambda y: m.jit(m.numpy.exp)(y) / y)(x),
    "vmap": lambda m, x: m.vmap(lambda y: m.numpy.cumsum(m.lax.exp(y)))(x),
    "grad": lambda m, x: m.grad(lambda y: m.numpy.sum(m.lax.sin(y) * y**3))(x),
    "softplus": lambda m, x: m.numpy.log1p(m.lax.exp(x)),
    "logsumexp": lambda m, x: m.numpy.log(m.numpy.sum(m.lax.exp(x), 1)),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_program(name):
    both(PROGRAMS[name], *rows((3, 4)))


@pytest.mark.parametrize("scaled", [True, False])
def test_scaling(scaled):
    both(lambda m, x: m.lax.sin(x), *rows(()), factorial_scaled=scaled)
    both(lambda m, x: (x > 0, x), *rows(()), factorial_scaled=scaled)


@pytest.mark.parametrize("name", ["abs", "max", "min", "clamp", "reduce_max", "cummax"])
def test_where_sides_meet(name):
    """At a tie, JAX takes the mean of all coefficients; |x| is x at 0."""
    functions = {
        "abs": lambda m, x: m.lax.abs(x),
        "max": lambda m, x: m.lax.max(x, m.numpy.zeros(3)),
        "min": lambda m, x: m.lax.min(x, x * x),
        "clamp": lambda m, x: m.lax.clamp(m.numpy.zeros(3), x, m.numpy.ones(3)),
        "reduce_max": lambda m, x: m.lax.reduce_max(x, (0,)),
        "cummax": lambda m, x: m.lax.cummax(x),
    }
    both(functions[name], (np.zeros(3),), rows((3,))[1])


@pytest.mark.parametrize("transform", ["jit", "vmap", "grad", "jvp", "hessian"])
def test_transformed(transform):
    """A jet is a function like others."""
    (x,), _ = rows((3,))

    def f(m, x):
        jet = jet_of(m)
        g = lambda y: m.numpy.sin(y) / (1 + y**2)  # noqa: E731
        h = lambda y: jet(g, (y,), ((y * y, 2 * y, y - y),))[1][2]  # noqa: E731
        if transform in ("jit", "vmap"):
            return getattr(m, transform)(h)(x)
        if transform == "jvp":
            return m.jvp(h, (x,), (x,))
        return getattr(m, transform)(lambda y: m.numpy.sum(h(y)))(x)

    found = []
    for m in (minijax, jax):
        with m.enable_x64(True):
            found.append(m.tree_util.tree_leaves(f(m, m.numpy.asarray(x))))
    for ours, theirs in zip(*found, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-10)


def _scan(m, x):
    step = lambda c, y: (m.lax.sin(c) * y, c + y)  # noqa: E731
    return m.lax.scan(step, x[0], x)


def _counted(m, x):
    step = lambda c, i: ((c[0] + 1, c[1] * x[0] + i, c[2]), c[1])  # noqa: E731
    (_, *ends), ys = m.lax.scan(step, (0, x[1], 2.0), m.numpy.arange(3))
    return ends, ys


def _while(m, x):
    return m.lax.while_loop(
        lambda c: c[0] < 3, lambda c: (c[0] + 1, c[1] * m.lax.sin(c[1]) * x), (0, x)
    )[1]


def _custom(m, x):
    f = m.custom_jvp(lambda x: m.lax.log(1 + m.lax.exp(x)))
    f.defjvp(lambda ps, ts: (f(*ps), ts[0] * m.lax.logistic(ps[0])))
    return f(x)


# What `jax.experimental.jet` has no rules for, or loses a tracer in.
BEYOND = {
    "scan": _scan,
    "counted scan": _counted,
    "while": _while,
    "fori": lambda m, x: m.lax.fori_loop(0, 3, lambda i, c: c * m.lax.sin(c) + i, x),
    "cond": lambda m, x: m.lax.cond(
        x[0] > 0, lambda y: y**2, lambda y: m.numpy.ones(4), x
    ),
    "switch": lambda m, x: m.lax.switch(1, [m.lax.sin, m.lax.cos, m.lax.exp], x),
    "custom_jvp": _custom,
    "clamp": lambda m, x: m.lax.clamp(0.4, x, 0.6),
    "relu": lambda m, x: m.nn.relu(x - 0.5),
    "logsumexp": lambda m, x: m.nn.logsumexp(x),
    "checkpoint": lambda m, x: m.checkpoint(lambda y: m.lax.sin(y) * y)(x),
    "sort": lambda m, x: m.numpy.sort(x),
    "prod": lambda m, x: m.numpy.prod(x),
    "tan": lambda m, x: m.lax.tan(x),
    "asin": lambda m, x: (m.lax.asin(x), m.lax.acos(x), m.lax.atan(x)),
    "cbrt": lambda m, x: (m.lax.cbrt(x), m.lax.exp2(x)),
    "lgamma": lambda m, x: m.lax.lgamma(x + 1),
    "scatter": lambda m, x: (
        m.numpy.asarray(x).at[m.numpy.array([0, 2])].set(x[:2] ** 2)
    ),
    "scatter-mul": lambda m, x: (
        m.numpy.asarray(x)
        .at[m.numpy.array([0, 2])]
        .multiply(x[:2] ** 2, unique_indices=True)
    ),
    "solve": lambda m, x: m.numpy.linalg.solve(m.numpy.diag(x) + 0.1, x),
    "cholesky": lambda m, x: m.numpy.linalg.cholesky(m.numpy.diag(x) + 0.1),
    "det": lambda m, x: m.numpy.linalg.det(m.numpy.diag(x) + 0.1),
    "power of negative": lambda m, x: m.lax.pow(x - 1, m.numpy.full(4, 3.0)),
    "rem": lambda m, x: m.lax.rem(-3 * x, m.numpy.full(4, 0.31)),
    "associative_scan": lambda m, x: m.lax.associative_scan(m.numpy.multiply, x),
}


@pytest.mark.parametrize("name", BEYOND)
def test_beyond(name):
    """What JAX's jet refuses is compared with JAX's nested derivatives."""
    beside_nested(BEYOND[name], *rows((4,), seed=1))


@pytest.mark.parametrize("seed", range(6))
def test_random_functions(seed):
    """Compositions of random operations: a jet is what nested derivatives are."""
    rng = np.random.default_rng(seed)
    names = rng.choice(["sin", "tanh", "exp", "logistic", "erf", "square", "cosh"], 4)
    steps = rng.choice(["mul", "div", "add", "atan2"], 4)

    def f(m, x, y):
        for name, step in zip(names, steps):
            x, y = getattr(m.lax, name)(y), getattr(m.lax, step)(x, 2 + m.lax.sin(y))
        return x, y

    beside_nested(f, *rows((3,), (3,), seed=seed), rtol=1e-7)
    both(f, *rows((3,), (3,), seed=seed))


MISTAKES = {
    "tree": ([[1.0, 2.0]], [[1.0]], ValueError),
    "tree of terms": ([1.0], [[(1.0, 2.0)]], ValueError),
    "lengths": ([1.0, 2.0], [[1.0], [1.0, 2.0]], ValueError),
    "none": ([], [], ValueError),
    "string": (["a"], [[1.0]], TypeError),
    "no series": ([1.0], [None], TypeError),
    "complex": ([np.float32(1.0)], [[1j]], TypeError),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistake(name):
    primals, series, kind = MISTAKES[name]
    for m in (minijax, jax):
        with pytest.raises(kind):
            jet_of(m)(lambda *xs: [x * x for x in xs], primals, series)
