"""StableHLO texts, compiled and run by the runtime that jaxlib brings along."""

import jax
import numpy as np
import pytest

import minijax
import minijax.numpy as jnp
from minijax import export, grad, jit, lax, make_jaxpr, vmap
from minijax.extend.core import jaxpr_as_fun
from minijax.stablehlo.exported import mlir_module_text
from minijax.stablehlo.lowering import stablehlo_rules
from tests import control_cases, stablehlo_runtime
from tests.test_rule_tables import SAMPLES, operands

WRITTEN = [p for p, samples in SAMPLES.items() if p in stablehlo_rules and samples]


def compare(closed, xs, exact=False):
    """The results of a program, and those of its text under XLA."""
    wanted = jaxpr_as_fun(closed)(*xs)
    found = stablehlo_runtime.run(mlir_module_text(closed, "f"), xs)
    for mine, theirs in zip(wanted, found, strict=True):
        mine = np.asarray(mine)
        assert (mine.shape, mine.dtype) == (theirs.shape, theirs.dtype)
        if exact or mine.dtype.kind in "biu":
            assert mine.tobytes() == theirs.tobytes()
        else:
            np.testing.assert_allclose(theirs, mine, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("primitive", WRITTEN, ids=str)
def test_equations(primitive):
    """Two of the equations with which the other batteries use a primitive."""
    for types, params in SAMPLES[primitive][:2]:
        xs = operands(primitive, types)
        compare(make_jaxpr(lambda *xs: primitive.bind_all(*xs, **params))(*xs), xs)  # noqa: B023


def test_every_rule_is_met():
    drawn = "seed wrap unwrap split fold_in bits clone gamma".split()
    untold = {f"random_{name}" for name in drawn} | {"pvary", "sharding_constraint"}
    calls = {"custom_jvp_call", "custom_vjp_call", "custom_vmap_call", "linear_call"}
    left = {p.name for p in stablehlo_rules} - {p.name for p in WRITTEN}
    assert left <= untold | calls | {"custom_linear_solve", "dce_sink"}


def test_a_sink_has_no_result():
    def f(x):
        lax.dce_sink(lax.sin(x))
        return x * 2

    closed = make_jaxpr(f)(np.float32(3))
    assert "dce_sink" in str(closed)
    compare(closed, [np.float32([3])[0]], exact=True)


odd = np.float32([np.nan, 2, -0.0, 0.0, -np.inf, np.inf, -np.nan, 2, 1])
LEDGER = np.arange(12, dtype=np.float32).reshape(4, 3)
FAR = np.int32([[-7], [1], [3], [9]])
NUMBERS = lax.GatherDimensionNumbers((1,), (0,), (0,))
INTO = lax.ScatterDimensionNumbers((1,), (0,), (0,))


def gathers(mode):
    return lambda x, i: lax.gather(x, i, NUMBERS, (1, 3), mode=mode)


def scatters(kind, mode):
    return lambda x, i: getattr(lax, kind)(x, i, x * 10, INTO, mode=mode)


@minijax.custom_vjp
def steep(x):
    return jnp.sin(x)


steep.defvjp(lambda x: (jnp.sin(x), x), lambda x, ct: (3 * ct * jnp.cos(x),))

COMPLEX = np.complex64([
    1 + 2j, 1 + 3j, 1 - 1j, 9j, 2, complex(np.nan, 1), complex(1, np.nan), -np.inf, 5
])  # fmt: skip
TIED = COMPLEX.real + 1j * np.flip(COMPLEX.imag[:9]).astype("float32")
TIED[5:8] = 3 + 1j, 1 + 1j, complex(2, np.nan)
INDICES = np.int32([0, 0, 2, 3, 4, 5, 6, 7, 3])
X0 = np.float32(0.5)


@jit
def größe(x):
    return x + 1


def oddly_named(x):
    return x * 3


oddly_named.__name__ = "1 b"
EXACT = {
    "sort": (lambda x: lax.sort([x, lax.iota("int32", 9)], num_keys=1)[1], odd),
    "sort by two": (
        lambda x, y: lax.sort([x, y, lax.iota("int32", 9)], num_keys=2)[2],
        np.float32([1, 1, 0, np.nan, np.nan, 0, -0.0, 1, 2]),
        np.int8([3, -1, 5, 2, 1, 5, 4, -1, 0]),
    ),
    "sort complex": (
        lambda x: lax.sort([x, lax.iota("int32", 4)], num_keys=1)[1],
        np.complex64([1 + 2j, 1 - 2j, -1 + 5j, 1 + 2j]),
    ),
    "top_k": (lambda x: lax.top_k(x, 4)[1], odd),
    "argmax": (lambda x, y: (jnp.argmax(x), jnp.argmin(y)), odd, odd[1:6]),
    "compare": (lambda x: (x < 1, x == x, jnp.isfinite(x), jnp.sign(x)), odd),
    "max": (lambda x: (jnp.max(x[1:6]), jnp.min(x[1:6])), odd),
    "integers": (
        lambda x, y: (x // y, x % y, x >> 1, x << y, ~x, abs(x), lax.clz(x), -x),
        np.int8([-128, 7, -7, 100]),
        np.int8([3, 2, 2, -1]),
    ),
    "unsigned": (
        lambda x: (x >> 3, jnp.sign(x), x * x, x**3),
        np.uint16([0, 9, 65535]),
    ),
    "to bool": (lambda x: x.astype(bool), odd),
    "halves": (lambda x: (x * 3).astype("bfloat16").astype("float16"), odd[1:6]),
    "rounds": (lambda x: (jnp.round(x), lax.round(x, 0)), np.float32([-1.5, 0.5, 2.5])),
    "choice": (
        lambda i, x: lax.select_n(i, x, x + 1, x + 2),
        np.int32([0, 1, 2]),
        np.float32([1, 2, 3]),
    ),
    "constants": (lambda: (jnp.array([[True, False], [True, True]]), np.arange(99.0)),),
    "nothing": (lambda x: (x[:0], jnp.zeros((0, 3)).sum(0), x[:0].sum()), odd),
    "mixed powers": (lambda x: (x**2, x**-1, 2.0**x), np.float32([1, 2, 4])),
    **{
        f"{kind} {mode}": (scatters(kind, mode), LEDGER, FAR)
        for kind in ("scatter_add", "scatter_max", "scatter")
        for mode in ("clip", "fill")
    },
    **{f"gather {mode}": (gathers(mode), LEDGER, FAR) for mode in ("clip", "fill")},
    "narrow indices": (gathers("fill"), LEDGER, FAR.astype("int8")),
    "bits": (
        lambda: [
            minijax.random.bits(minijax.random.key(7), (3, 5), f"uint{width}")
            for width in (8, 16, 32)
        ],
    ),
    "keys": (
        lambda seed: minijax.random.key_data(
            minijax.random.fold_in(
                minijax.random.split(minijax.random.key(seed), 4)[2], 5
            )
        ),
        np.int32(-3),
    ),
    "keys in a loop": (
        lambda: minijax.random.key_data(
            lax.fori_loop(
                0, 3, lambda i, k: minijax.random.split(k)[i % 2], minijax.random.key(1)
            )
        ),
    ),
    "larger complex numbers": (
        lambda x, y: (lax.max(x, y), lax.min(x, y)),
        COMPLEX,
        TIED,
    ),
    "largest complex numbers": (
        lambda x: (x.max(0), x.min(1), x.max(), lax.cummax(x, 1)),
        COMPLEX.reshape(3, 3)[:2],
    ),
    "complex updates": (
        lambda x, y: (x.at[INDICES].max(y), x.at[INDICES].min(y)),
        COMPLEX,
        TIED,
    ),
    "complex windows": (
        lambda x: (
            lax.reduce_window(x, -jnp.inf, lax.max, (3,), (1,), "SAME"),
            lax.reduce_window(x, jnp.inf, lax.min, (3,), (2,), "VALID"),
        ),
        COMPLEX[:6],
    ),
    "choices between bools": (
        lambda x, y: (jnp.where(x, y, ~x), lax.select(x, x, y)),
        np.array([True, False, True]),
        np.array([False, False, True]),
    ),
    "updates of numbers": (lambda x, y: lax.dynamic_update_slice(x, y, ()), X0, 2 * X0),
    "the same bits": (lambda x: lax.bitcast_convert_type(x, "float32"), LEDGER),
    "loops without turns": (
        lambda c, xs: (
            lax.scan(lambda c, x: (c + x.sum(), c * x), c, xs),
            lax.map(lambda x: x + 1, xs),
            lax.scan(lambda c, x: (c, x), c, xs, reverse=True),
        ),
        X0,
        np.ones((0, 2), "float32"),
    ),
    "one case": (
        lambda p, q, x: (lax.select_n(p, x), lax.select_n(q, x)),
        np.array([False, False]),
        np.int32([0, 0]),
        np.float32([1, 2]),
    ),
    "names": (lambda x: jit(oddly_named)(größe(x)), X0),
    "batches of keys": (
        lambda: vmap(lambda k: minijax.random.bits(k, (2,)))(
            minijax.random.split(minijax.random.key(0), 3)
        ),
    ),
}


@pytest.mark.parametrize("name", EXACT)
def test_bit_by_bit(name):
    f, *xs = EXACT[name]
    compare(make_jaxpr(f)(*xs), xs, exact=True)


def mixture(x):
    """Calls, branches, loops and rules, one inside of another."""
    inner = jit(lambda y: steep(y) * 2)

    def step(carry, row):
        carry = lax.cond(row.sum() > 0, inner, lambda y: y - row, carry)
        carry = minijax.checkpoint(jnp.tanh)(carry)
        return carry, lax.while_loop(
            lambda y: (y * y).sum() < 4, lambda y: 2 * y + 0.1, carry
        )

    return lax.scan(step, x[0], x[::-1], reverse=True)


def smooth(x):
    return lax.scan(lambda c, row: (jnp.sin(c) * row, inner_sum(c)), x[0], x)[1].sum()


inner_sum = jit(lambda y: (steep(y) ** 2).sum())
X = np.float32([[0.5, -1, 2], [0.25, 1, 1], [-1, -1, 0.5]])
WAVES = vmap(lambda x: jnp.fft.fftn(x[..., None] * 1j), 4, 1)
PROGRAMS = {
    "mixture": (mixture, X),
    "batched": (vmap(mixture), np.stack([X, -X])),
    "gradient": (grad(smooth), X),
    "curvature": (minijax.hessian(smooth), X),
    "normal": (lambda: minijax.random.normal(minijax.random.key(3), (4,)),),
    "gamma": (lambda a: minijax.random.gamma(minijax.random.key(3), a), X[:, :2] + 2),
    "attention": (
        lambda q, k: minijax.nn.dot_product_attention(q, k, k),
        np.ones((2, 3, 2, 4), "float32"),
        np.linspace(-1, 1, 48, dtype="float32").reshape(2, 3, 2, 4),
    ),
    "complex totals": (
        lambda x: (lax.cumlogsumexp(x), lax.cumlogsumexp(x, reverse=True)),
        COMPLEX[:5],
    ),
    "four axes": (
        lambda x: (jnp.fft.fftn(x), jnp.fft.ifftn(x, axes=(0, 1, 2, 3)), WAVES(x)),
        np.linspace(-1, 1, 240).reshape(2, 3, 4, 5, 2).astype("complex64") ** 2,
    ),
    "real waves": (
        lambda x: (jnp.fft.rfftn(x), jnp.fft.irfftn(x + 0j, axes=(1, 2, 3, 4))),
        np.linspace(-1, 1, 240).reshape(2, 3, 4, 5, 2).astype("float32"),
    ),
    "totals": (lambda x: (jnp.cumsum(x, 1), lax.cumlogsumexp(x, 0, reverse=True)), X),
    "names": (lambda x: export_names(x), X),
}
export_names = jit(lambda x: jnp.linalg.cholesky(x @ x.T + jnp.eye(3)) + x)


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs(name):
    f, *xs = PROGRAMS[name]
    compare(make_jaxpr(f)(*xs), xs)


@pytest.mark.parametrize("name", sorted(control_cases.cases(minijax))[::3])
def test_control_flow(name):
    call, xs = control_cases.cases(minijax)[name]
    xs = [np.asarray(x, "float32") if np.asarray(x).dtype == float else x for x in xs]
    compare(make_jaxpr(lambda *xs: call(lax, *xs))(*xs), [np.asarray(x) for x in xs])


def test_random_numbers_in_the_older_layout():
    def drawn():
        keys = minijax.random.split(minijax.random.key(7), 2)
        bits = [
            vmap(lambda k, w=width: minijax.random.bits(k, (5,), f"uint{w}"))(keys)
            for width in (8, 16, 32, 64)
        ]
        return bits, minijax.random.key_data(minijax.random.split(keys[0], 3))

    with minijax.threefry_partitionable(False), minijax.enable_x64(True):
        compare(make_jaxpr(drawn)(), [])


def test_64_bits():
    with minijax.enable_x64(True):
        x = np.linspace(0, 1, 5)
        compare(make_jaxpr(lambda x: (jnp.exp(x) / 3, x.sum(), jnp.arange(3)))(x), [x])


def test_exported_is_jax_s():
    """The parts that JAX has under the same names."""

    def f(x, y):
        return {"sum": x @ y, "norm": (x * x).sum()}

    x, y = np.ones((2, 3), "float32"), np.ones(3, "float32")
    mine = export.export(jit(f))(x, y)
    theirs = jax.export.export(jax.jit(f))(x, y)
    assert (mine.fun_name, mine.platforms) == (theirs.fun_name, theirs.platforms)
    for avals in ("in_avals", "out_avals"):
        ours = [(a.shape, a.dtype) for a in getattr(mine, avals)]
        assert ours == [(a.shape, a.dtype) for a in getattr(theirs, avals)]
    assert str(mine.out_tree) == str(theirs.out_tree)
    found = stablehlo_runtime.run(mine.mlir_module(), [x, y])
    for ours, other in zip(found, jax.tree.leaves(theirs.call(x, y)), strict=True):
        np.testing.assert_allclose(ours, other, rtol=1e-6)
    assert jit(f).lower(x, y).as_text("stablehlo").startswith("module @jit_f ")


def test_pullbacks_of_integers_are_jax_s():
    """A tangent of an integer has no bits; in a text it is False."""
    x, n, ct = np.float32([1, 2, 3]), np.arange(3, dtype=np.int32), np.ones(3, "f4")
    mine = export.export(jit(lambda x, n: (x * n, n)))(x, n).vjp()
    theirs = jax.export.export(jax.jit(lambda x, n: (x * n, n)))(x, n).vjp()
    for avals in ("in_avals", "out_avals"):
        ours = [(a.shape, a.dtype) for a in getattr(mine, avals)]
        assert ours == [(a.shape, a.dtype) for a in getattr(theirs, avals)]
    nothing = np.zeros(3, bool)
    found = stablehlo_runtime.run(mine.mlir_module(), [x, n, ct, nothing])
    np.testing.assert_array_equal(found[0], n)
    np.testing.assert_array_equal(found[1], nothing)
