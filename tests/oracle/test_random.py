"""Random bits are JAX's, bit by bit; floats to rounding, and texts of keys."""

import jax
import numpy as np
import pytest

import minijax
from tests.commands import LONG, blocks, some
from tests.sampler_cases import CASES, COUNTED, EXACT, FLOATS, PLAIN, VECTORS

SEEDS = [0, 1, -1, 2**31, 2**32 + 5, -(2**40), 123456789]
WIDTHS = ["uint8", "uint16", "uint32"]


def keys(seed):
    return [module.random.key(seed) for module in (minijax, jax)]


def same(ours, theirs):
    ours, theirs = np.asarray(ours), np.asarray(theirs)
    assert (ours.dtype, ours.shape) == (theirs.dtype, theirs.shape)
    assert np.array_equal(ours, theirs)


def both(call, seed):
    return [call(m, k) for m, k in zip((minijax, jax), keys(seed))]


@pytest.mark.parametrize("x64", [False, True])
@pytest.mark.parametrize("seed", SEEDS)
def test_keys(seed, x64):
    with minijax.enable_x64(x64), jax.enable_x64(x64):
        same(*both(lambda m, k: m.random.key_data(k), seed))
        same(*both(lambda m, k: m.random.PRNGKey(seed), seed))
        same(*both(lambda m, k: m.random.bits(k), seed))
        for num in (1, 2, 3, 0, (), (2, 3)):
            same(*both(lambda m, k: m.random.key_data(m.random.split(k, num)), seed))  # noqa: B023
        for data in (0, 7, 2**31):
            found = both(lambda m, k: m.random.fold_in(k, data), seed)  # noqa: B023
            same(*[m.random.key_data(k) for m, k in zip((minijax, jax), found)])


@pytest.mark.parametrize("dtype", WIDTHS)
@pytest.mark.parametrize("shape", [(), (3,), (100, 120), (0,), (2, 0)])
def test_bits(shape, dtype):
    same(*both(lambda m, k: m.random.bits(k, shape, dtype), 5))


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float32"])
def test_uniform_and_normal(dtype):
    dtype = np.dtype(jax.numpy.dtype(dtype))
    same(*both(lambda m, k: m.random.uniform(k, (20_000,), dtype), 6))
    found = both(lambda m, k: m.random.normal(k, (20_000,), dtype), 6)
    ours, theirs = [np.asarray(x).astype(float) for x in found]
    tolerance = 4e-2 if dtype.itemsize == 2 else 1e-5
    np.testing.assert_allclose(ours, theirs, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize(
    "call",
    [
        lambda m, k: m.random.split(k),
        lambda m, k: m.random.split(m.random.key_data(k), (2, 3)),
        lambda m, k: m.random.fold_in(k, 3),
        lambda m, k: m.random.bits(k, (2,)),
        lambda m, k: m.random.key_data(k),
        lambda m, k: m.random.clone(k),
        lambda m, k: m.vmap(lambda k: m.random.bits(k, (2,)))(m.random.split(k, 3)),
    ],
)
def test_texts(call):
    texts = both(lambda m, k: str(m.make_jaxpr(lambda k: call(m, k))(k)), 0)
    assert texts[0] == texts[1]
    assert len({repr(k) for k in keys(3)}) == 1


def compared(m, k):
    many = m.random.split(k, (2, 3))
    row = m.random.split(k, 3)
    cases = [
        (k, k), (row, row[::-1]), (row, row[1]), (many, row), (many[0], many),
        (many[:, :1], many), (row[:0], row[0]),
    ]  # fmt: skip
    return cases, [lambda x, y: x == y, lambda x, y: x != y, m.numpy.not_equal]


def test_comparisons():
    """Values and texts: eager, compiled, of rows, and of what does not broadcast."""
    for seed in (0, 5):
        ours, theirs = both(compared, seed)
        for x, y in zip(ours[0], theirs[0], strict=True):
            for f, g in zip(ours[1], theirs[1], strict=True):
                same(f(*x), g(*y))
                same(minijax.jit(f)(*x), jax.jit(g)(*y))
                assert str(minijax.make_jaxpr(f)(*x)) == str(jax.make_jaxpr(g)(*y))
                if x[0].ndim == 1:
                    same(*[m.vmap(h, (0, None))(*k) for m, h, k in
                           ((minijax, f, x), (jax, g, y))])  # fmt: skip
    for m, k in zip((minijax, jax), keys(0)):
        row = m.random.split(k, 3)
        same(m.lax.eq(row, row), m.lax.ne(row, k))
        assert m.numpy.array_equal(row, row) and (row == None) is False  # noqa: E711
        with pytest.raises(ValueError, match="broadcasting"):
            _ = row == m.random.split(k, (2, 2))
        for wrong in (row[:2], 1, m.random.key_data(row)):
            with pytest.raises(TypeError, match=r"broadcasting|key<fry>"):
                _ = row == wrong


def both_draws(case, shape, seed=31):
    found = [case(m.random, k, shape) for m, k in zip((minijax, jax), keys(seed))]
    ours, theirs = map(np.asarray, found)
    assert (ours.dtype, ours.shape) == (theirs.dtype, theirs.shape)
    return ours, theirs


SHAPES = [(), (1,), (7,), (33,), (3, 5)]


def shapes_for(name, names, count=2):
    """Very many draws, and some shapes, others for the next sampler; `LONG=1`: all."""
    start = [*names].index(name)
    turn = [SHAPES[(start + i) % len(SHAPES)] for i in range(count)]
    return [(12_000,), *(SHAPES if LONG else turn)]


@pytest.mark.parametrize("name", EXACT)
def test_samplers_of_bits(name):
    for shape in shapes_for(name, EXACT):
        same(*both_draws(EXACT[name], shape))


@pytest.mark.parametrize("name", COUNTED)
def test_samplers_of_counts(name):
    for shape in shapes_for(name, COUNTED):
        ours, theirs = both_draws(COUNTED[name], shape)
        assert (ours != theirs).sum() <= 2  # where rounding has moved an end


@pytest.mark.parametrize("name", FLOATS)
def test_samplers_of_floats(name):
    for shape in shapes_for(name, FLOATS, 1):
        ours, theirs = both_draws(FLOATS[name], shape)
        np.testing.assert_allclose(ours, theirs, rtol=2e-4, atol=2e-4)


@pytest.mark.parametrize("name", VECTORS)
def test_samplers_of_vectors(name):
    ours, theirs = both_draws(VECTORS[name], (12_000,))
    np.testing.assert_allclose(ours, theirs, rtol=2e-4, atol=2e-4)


@pytest.fixture
def older_layout():
    with minijax.threefry_partitionable(False), jax.threefry_partitionable(False):
        yield


ROWS = [(), (1,), (2,), (3,), (5, 7), (0,), (2, 0), (1001,)]


def in_all_ways(m, f, k):
    """What `f` makes of a key: plain, compiled, and mapped over keys in a row."""
    row = m.random.split(k, 3)
    return [f(k), m.jit(f)(k), m.vmap(f)(row), m.jit(m.vmap(f))(row)]


@pytest.mark.parametrize("width", [8, 16, 32, 64])
def test_bits_in_the_older_layout(older_layout, width):
    with minijax.enable_x64(), jax.enable_x64(True):
        for shape in ROWS:
            draws = [
                in_all_ways(m, lambda k: m.random.bits(k, shape, f"uint{width}"), k)  # noqa: B023
                for m, k in zip((minijax, jax), keys(7))
            ]
            for pair in zip(*draws):
                same(*pair)


@pytest.mark.parametrize("num", [0, 1, 2, 3, (2, 3), (), 501])
def test_keys_in_the_older_layout(older_layout, num):
    for make in (
        lambda m, k: m.random.key_data(m.random.split(k, num)),
        lambda m, k: m.random.key_data(m.random.fold_in(k, 5)),
    ):
        draws = [
            in_all_ways(m, lambda k: make(m, k), k)  # noqa: B023
            for m, k in zip((minijax, jax), keys(8))
        ]
        for pair in zip(*draws):
            same(*pair)


@pytest.mark.parametrize("name", some({**EXACT, **COUNTED, **FLOATS}, 3))
def test_samplers_in_the_older_layout(older_layout, name):
    ours, theirs = both_draws(CASES[name], (33,))
    np.testing.assert_allclose(ours, theirs, rtol=2e-4, atol=2e-4)


def test_a_program_keeps_the_layout_for_which_it_was_written():
    drawn = minijax.jit(minijax.random.bits)
    key = minijax.random.key(0)
    for partitionable in (True, False, True):
        with jax.threefry_partitionable(partitionable):
            theirs = jax.random.bits(jax.random.key(0))
        with minijax.threefry_partitionable(partitionable):
            same(drawn(key), theirs)
            program = drawn.lower(key)
        same(program.compile()(key), theirs)


# What `jax.random` has besides samplers.
KEYS = """PRNGKey clone fold_in key key_data key_dtype key_impl split wrap_key_data
    random_gamma_p"""


def test_each_sampler_of_jax_is_drawn_often():
    drawn = {name.split()[0] for name in {**CASES, **VECTORS}} | PLAIN
    names = {name for name in dir(jax.random) if not name.startswith("_")}
    assert names - {*KEYS.split()} == drawn


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize(
    "name",
    "exponential laplace logistic gumbel maxwell truncated_normal pareto".split(),
)
def test_samplers_of_halves(name, dtype):
    args = {"truncated_normal": (-1.0, 2.0), "pareto": (2.5,)}.get(name, ())
    found = [
        getattr(m.random, name)(k, *args, shape=(10_000,), dtype=jax.numpy.dtype(dtype))
        for m, k in zip((minijax, jax), keys(5))
    ]
    assert found[0].dtype == found[1].dtype
    ours, theirs = (np.asarray(x).astype(float) for x in found)
    far = ~np.isclose(ours, theirs, rtol=0.05, atol=0.05)
    assert far.mean() < 0.005  # of the ends, where half a digit is all there is


@pytest.mark.parametrize(
    "name", ["exponential", "gumbel", "gamma", "beta", "poisson few"]
)
def test_samplers_of_doubles(name):
    with minijax.enable_x64(), jax.enable_x64(True):
        ours, theirs = both_draws(CASES[name], (12_000,))
        np.testing.assert_allclose(ours, theirs, rtol=1e-9)


def test_broadcast_parameters():
    a, b = np.float32([[0.5], [2], [9]]), np.float32([1, 3])
    for call in (
        lambda r, k, s: r.beta(k, a, b),
        lambda r, k, s: r.gamma(k, a, (3, 7)),
        lambda r, k, s: r.dirichlet(k, a + b),
        lambda r, k, s: r.triangular(k, -a, 0.0, b),
        lambda r, k, s: r.multinomial(k, 50.0, np.float32([[0.5, 0.5], [0.1, 0.9]])),
        lambda r, k, s: r.randint(k, (3, 2), a.astype(int), b.astype(int) + 9),
        lambda r, k, s: r.categorical(k, a + b, 0, (5, 2)),
    ):
        np.testing.assert_allclose(*both_draws(call, None), rtol=1e-4)


@pytest.mark.parametrize("name", ["gamma", "loggamma", "beta", "chisquare", "t"])
def test_slopes_of_gamma(name):
    args = {"beta": (2.5, 0.7)}.get(name, (2.5,))
    places = tuple(range(len(args)))
    found = [
        m.grad(lambda *xs: getattr(m.random, name)(k, *xs, shape=(50,)).sum(), places)(  # noqa: B023
            *args
        )
        for m, k in zip((minijax, jax), keys(8))
    ]
    np.testing.assert_allclose(*found, rtol=1e-3)


@pytest.mark.parametrize("name", ["loggamma", "beta", "dirichlet", "chisquare", "f"])
def test_slopes_of_small_shapes(name):
    samplers = {
        "beta": lambda r, k, a: r.beta(k, a, 0.7),
        "dirichlet": lambda r, k, a: r.dirichlet(k, a * np.float32([1, 2]))[0],
        "f": lambda r, k, a: r.f(k, a, 3.0),
    }
    draw = samplers.get(name, lambda r, k, a: getattr(r, name)(k, a))
    found = [
        m.vmap(m.grad(lambda a: draw(m.random, k, a)))(  # noqa: B023
            m.numpy.array([0.001, 0.003, 0.01, 0.05, 0.2])
        )
        for m, k in zip((minijax, jax), keys(0))
    ]
    assert np.isfinite(found[1]).all()
    np.testing.assert_allclose(*found, rtol=1e-3)


@pytest.mark.parametrize("name", ["randint", "gamma", "poisson few", "categorical"])
def test_samplers_over_keys(name):
    def draws(m, k):
        return m.jit(m.vmap(lambda k: CASES[name](m.random, k, (5,))))(
            m.random.split(k, 9)
        )

    np.testing.assert_allclose(*both(draws, 4), rtol=1e-4)


STEPS = {
    "split": lambda m, k, x: (m.random.split(k)[0], x),
    "fold": lambda m, k, x: (m.random.fold_in(k, 3), x),
    "normal": lambda m, k, x: (k, x + m.random.normal(k, x.shape)),
    "uniform": lambda m, k, x: (k, x * m.random.uniform(k)),
    "coins": lambda m, k, x: (
        k,
        m.numpy.where(m.random.bernoulli(k, 0.5, x.shape), x, 0.5),
    ),
    "dice": lambda m, k, x: (k, x + m.random.randint(k, x.shape, 0, 6)),
    "many": lambda m, k, x: (
        m.random.split(k, 2)[1],
        x + m.vmap(m.random.exponential)(m.random.split(k, x.shape[0])),
    ),
    "scan": lambda m, k, x: m.lax.scan(
        lambda c, v: ((m.random.split(c)[1]), v + m.random.normal(c)), k, x
    ),
    "cond": lambda m, k, x: (
        k,
        m.lax.cond(
            m.random.bernoulli(k), lambda k: x + m.random.laplace(k), lambda k: -x, k
        ),
    ),
}


@pytest.mark.parametrize("block", blocks(1, 10))
def test_random_programs_with_keys(block):
    for seed in range(30 * block, 30 * block + 30):
        rng = np.random.default_rng(seed)
        names = rng.choice([*STEPS], rng.integers(2, 6))
        x = rng.normal(size=rng.choice([1, 7, 16])).astype(np.float32)

        def program(m, k):
            value = m.numpy.asarray(x)  # noqa: B023
            for name in names:  # noqa: B023
                k, value = STEPS[name](m, k, value)
            return value

        theirs = np.asarray(program(jax, jax.random.key(seed)))
        with minijax.disable_jit():
            eager = program(minijax, minijax.random.key(seed))
        jitted = minijax.jit(lambda k: program(minijax, k))(minijax.random.key(seed))
        for ours in (eager, jitted):
            np.testing.assert_allclose(
                ours, theirs, 1e-3, 1e-3, err_msg=str([seed, *names])
            )


@pytest.mark.parametrize("name", ["zeros_like", "empty_like", "ones_like"])
def test_keys_from_nothing(name):
    found = [
        m.random.key_data(wrap(getattr(m.numpy, name))(m.random.split(k)))
        for m, k in zip((minijax, jax), keys(3))
        for wrap in (lambda f: f, m.jit)
    ]
    for words in found[:-1]:
        np.testing.assert_array_equal(words, found[-1])


def test_keys_become_no_numbers():
    for m, k in zip((minijax, jax), keys(3)):
        for call in (
            lambda k: m.numpy.asarray(k, "uint32"),  # noqa: B023
            lambda k: m.lax.convert_element_type(k, "float32"),  # noqa: B023
            lambda k: m.numpy.any(k),  # noqa: B023
            m.jit(lambda k: k.astype("uint32")),
        ):
            with pytest.raises(ValueError, match="convert_element_type from key<fry>"):
                call(k)
