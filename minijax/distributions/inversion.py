"""Samplers that are one formula from uniform numbers, and gamma numbers.

Source: Marsaglia and Tsang, *A simple method for generating gamma variables* (TOMS
2000). Reference: ``jax.random.gamma``.

Source: Figurnov, Mohamed and Mnih, *Implicit reparameterization gradients* (NeurIPS
2018); the series and the fraction are those of Cephes (``igam``, ``igamc``).

References: ``_check_shape``, ``_check_broadcast_shapes`` in ``jax._src.random.core``,
``jax_default_prng_impl`` and its neighbours in ``jax.config``, ``jax.random``.
"""

# Made from chapters/32_random_rest.md by `make chapter`;
# edit the chapter, not this file.

import math
import os
from functools import partial
from typing import Any

import numpy as np

from minijax import config, jit, lax, typeof, vmap
from minijax import numpy as jnp
from minijax.arrays.dtypes import ExtendedDType, _on_or_off
from minijax.batching.vmap import batch_dim_to_front
from minijax.core import Array, Primitive, impl_rules
from minijax.extend.arguments import with_out_sharding
from minijax.extend.core import ClosedJaxpr
from minijax.extend.rules import (
    callee_rules,
    jvp_rules,
    kernel_rules,
    python_rules,
    shape_rules,
    transpose_rules,
    vmap_rules,
    write_evaluation,
)
from minijax.jaxprs.jaxpr import trace_to_jaxpr
from minijax.passes.simplification import inlined_primitives
from minijax.prng.keys import (
    KEY,
    canonicalize_sample_shape,
    check_one_key,
    float_dtype,
    key_dtype_of,
    normal,
    random_bits,
    random_split_impl,
    uniform,
)
from minijax.rematerialization.caching import (
    KeyedCache,
    trace_context,
    trace_context_switches,
)
from minijax.typing import ArrayLike

# What samplers ask of their arguments.


WORDS = (
    "{} parameter shapes must be broadcast-compatible with shape argument, and the "
    "result of broadcasting the shapes must equal the shape argument, but got result "
    "{} for shape argument {}."
)


def check_shape(name, shape, *shapes):
    """Raise a ValueError unless the shapes of parameters broadcast to a shape."""
    broadcast = lax.broadcast_shapes(shape, *shapes)
    if shape != broadcast:
        raise ValueError(WORDS.format(name, broadcast, shape))


def resolve_sample_shape(name, shape, *params):
    """Return the shape that was asked for, or the one that parameters broadcast to."""
    shapes = [np.shape(x) for x in params]
    if shape is None:
        return lax.broadcast_shapes(*shapes)
    shape = canonicalize_sample_shape(shape)
    check_shape(name, shape, *shapes)
    return shape


def check_lossless_cast(name, dtype, *params):
    """Raise unless parameters become a dtype without losing anything."""
    for x in params:
        if jnp.result_type(x, dtype) != dtype:
            raise ValueError(
                f"In arguments to {name}, cannot safely cast argument of type "
                f"{jnp.result_type(x)} to {dtype}"
            )


def promote_sample_args(name, key, shape, dtype, *params, cast=False):
    """Return the key, the shape and the dtype of a sample of floats.

    Args:
      name: of the sampler.
      key, shape, dtype: what the user gave.
      *params: parameters of the distribution.
      cast: whether the parameters have to be safe to convert.
    """
    key, _ = check_one_key(name, key)
    dtype = float_dtype(name, dtype)
    shape = resolve_sample_shape(name, shape, *params)
    if cast:
        check_lossless_cast(name, dtype, *params)
    return key, shape, dtype


def broadcast_parameter(x, dtype, shape):
    """Return a parameter as an array of the dtype and the shape of the sample."""
    return jnp.broadcast_to(lax.convert_element_type(x, dtype), shape)


# Switches of the samplers.

_switch = "jax_high_dynamic_range_gumbel"
config.define(_switch, os.environ.get(_switch.upper(), "0"), _on_or_off)
trace_context_switches.append(_switch)


# The dtype of keys, by the name of their generator.


def key_dtype(impl_spec: str | None = None) -> ExtendedDType:
    """Return the dtype of the keys of a generator.

    Reference: ``jax.random.key_dtype``.
    """
    return key_dtype_of(impl_spec)


# Samplers that are one formula away from uniform numbers.


@with_out_sharding
def exponential(
    key: ArrayLike, shape: Any = (), dtype: Any = None, *, out_sharding: Any = None
) -> Array:
    """Return waiting times of mean 1: the density is exp(-x).

    Reference: ``jax.random.exponential``.
    """
    return _exponential(*promote_sample_args("exponential", key, shape, dtype))


@with_out_sharding
def laplace(
    key: ArrayLike, shape: Any = (), dtype: Any = None, *, out_sharding: Any = None
) -> Array:
    """Return floats of density exp(-|x|) / 2.

    Reference: ``jax.random.laplace``.
    """
    return _laplace(*promote_sample_args("laplace", key, shape, dtype))


@with_out_sharding
def logistic(
    key: ArrayLike, shape: Any = (), dtype: Any = None, *, out_sharding: Any = None
) -> Array:
    """Return floats whose sigmoid is uniform.

    Reference: ``jax.random.logistic``.
    """
    return _logistic(*promote_sample_args("logistic", key, shape, dtype))


@with_out_sharding
def cauchy(
    key: ArrayLike, shape: Any = (), dtype: Any = None, *, out_sharding: Any = None
) -> Array:
    """Return floats of density 1 / (pi (1 + x**2)).

    Reference: ``jax.random.cauchy``.
    """
    return _cauchy(*promote_sample_args("cauchy", key, shape, dtype))


@with_out_sharding
def gumbel(
    key: ArrayLike,
    shape: Any = (),
    dtype: Any = None,
    mode: str | None = None,
    *,
    out_sharding: Any = None,
) -> Array:
    """Return floats of density exp(-(x + exp(-x))).

    Args:
      key, shape, dtype: as for all samplers.
      mode: ``"low"``, one uniform number for each; ``"high"``, two, so that the upper
        tail is right; ``"highest"``, 64 bits for a float32. The default is "low", or
        "high" if the switch ``jax_high_dynamic_range_gumbel`` is on.

    Reference: ``jax.random.gumbel``.
    """
    key, shape, dtype = promote_sample_args("gumbel", key, shape, dtype)
    if mode is None:
        mode = "high" if config.jax_high_dynamic_range_gumbel else "low"
    if mode not in GUMBELS:
        raise ValueError(f"Must provide valid mode for gumbel got: {mode}")
    return _gumbel(key, shape, dtype, mode)


@partial(jit, static_argnums=(1, 2))
def _exponential(key, shape, dtype):
    return lax.neg(lax.log1p(lax.neg(uniform(key, shape, dtype))))


@partial(jit, static_argnums=(1, 2))
def _laplace(key, shape, dtype):
    u = uniform(key, shape, dtype, -1.0 + jnp.finfo(dtype).epsneg, 1.0)
    return lax.mul(lax.sign(u), lax.log1p(lax.neg(lax.abs(u))))


@partial(jit, static_argnums=(1, 2))
def _logistic(key, shape, dtype):
    x = uniform(key, shape, dtype, jnp.finfo(dtype).tiny, 1.0)
    return lax.sub(lax.log(x), lax.log1p(lax.neg(x)))


@partial(jit, static_argnums=(1, 2))
def _cauchy(key, shape, dtype):
    u = uniform(key, shape, dtype, jnp.finfo(dtype).eps, 1.0)
    return lax.tan(dtype.type(np.pi) * (u - dtype.type(0.5)))


def _gumbel_low(key, shape, dtype):
    u = uniform(key, shape, dtype, jnp.finfo(dtype).tiny, 1.0)
    return -jnp.log(-jnp.log(u))


def _gumbel_high(key, shape, dtype):
    info = jnp.finfo(dtype)
    high, low = uniform(key, (2, *shape), dtype)
    small = high + 2.0**-info.nmant * low + info.tiny
    return -jnp.log(-jnp.log1p(-jnp.where(high >= 0.5, high, small)))


def _gumbel_highest(key, shape, dtype):
    if dtype != np.float32:
        return _gumbel_high(key, shape, dtype)
    high, low = random_bits(key, 32, (2, *shape))
    lower = high < np.uint32(2**31)
    carry = lax.convert_element_type(low == 0, np.uint32)
    other = _as_float(lax.bitwise_not(high) + carry, lax.neg(low))
    x = lax.select(lower, _as_float(high, low), other)
    return jnp.where(lower, -jnp.log(-jnp.log1p(-x)), -jnp.log(-jnp.log(x)))


GUMBELS = {"low": _gumbel_low, "high": _gumbel_high, "highest": _gumbel_highest}


@partial(jit, static_argnums=(1, 2, 3))
def _gumbel(key, shape, dtype, mode):
    return GUMBELS[mode](key, shape, dtype)


def _as_float(high, low):
    """Return 64 bits behind the point as a float32, rounded down."""
    zeros, more = lax.clz(high), lax.clz(low)
    below = lax.shift_right_logical(low, np.uint32(32) - zeros)
    below = jnp.where(jnp.equal(zeros, 32), lax.shift_left(low, more), below)
    bits = lax.shift_left(high, zeros) | below
    mantissa = lax.shift_right_logical(bits, np.uint32(8))
    exponent = np.uint32(126) - jnp.where(jnp.equal(zeros, 32), 32 + more, zeros)
    exponent = lax.shift_left(exponent, np.uint32(23)) & np.uint32(0x3FC00000)
    word = exponent | (mantissa & np.uint32(0x7FFFFF))
    return lax.bitcast_convert_type(word, np.float32)


# Gamma numbers, by rejection; and how one changes with its shape.


def one_gamma(key, a, log_space):
    """Return a gamma number of shape `a`, or its logarithm."""
    large, number = a >= 1, a.dtype.type
    d = lax.select(large, a, a + 1) - number(1 / 3)
    key, rest = random_split_impl(key, (2,))
    v = _accepted(key, d, number(1 / 3) / lax.sqrt(d))
    if not log_space:
        u = 1 - uniform(rest, (), a.dtype)
        return d * v * lax.select(large, lax.full_like(a, 1), lax.pow(u, 1 / a))
    log_u = lax.neg(exponential(rest, (), a.dtype))
    no_boost = large | jnp.equal(log_u, 0)
    boost = lax.select(no_boost, lax.full_like(a, 0), log_u * (1 / a))
    return lax.log(d) + lax.log(v) + boost


def _accepted(key, d, c):
    """Return the cube of a number near 1 that has been accepted."""

    def refused(state):
        _, x, v, u = state
        outside = u >= 1 - d.dtype.type(0.0331) * (x * x)
        exactly = lax.log(u) >= x * 0.5 + d * ((1 - v) + lax.log(v))
        return outside & exactly

    def again(state):
        key, x_key, u_key = random_split_impl(state[0], (3,))
        x, v = _positive(x_key, c)
        return key, x * x, v * v * v, uniform(u_key, (), d.dtype)

    zero = lax.full_like(d, 0)
    return lax.while_loop(refused, again, (key, zero, zero + 1, zero + 2))[2]


def _positive(key, c):
    """Return a normal number x for which 1 + c x is positive, and that."""

    def again(state):
        key, rest = random_split_impl(state[0], (2,))
        x = normal(rest, (), c.dtype)
        return key, x, 1 + x * c

    zero = lax.full_like(c, 0)
    start = key, zero, zero - 1
    return lax.while_loop(lambda state: state[2] <= 0, again, start)[1:]


random_gamma_p = Primitive("random_gamma")


def gammas(key, a, log_space):
    """Return gamma numbers of shapes `a`, whose first axes are those of the keys."""
    count = math.prod(a.shape[key.ndim :])
    keys = random_split_impl(key, (count,)).reshape(-1)
    draw, row = partial(one_gamma, log_space=log_space), a.reshape(-1)
    if key.dtype == KEY:
        return vmap(draw)(keys, row).reshape(a.shape)
    # Others draw for a batch from its first key, which stays when its loop has ended.
    return lax.map(lambda pair: draw(*pair), (keys, row)).reshape(a.shape)


def _shape(key, a, log_space):
    return [a]


_compiled = jit(gammas, static_argnames="log_space")
shape_rules[random_gamma_p] = _shape
impl_rules[random_gamma_p] = lambda *args, **params: [_compiled(*args, **params)]
python_rules[random_gamma_p] = write_evaluation


def _vmap(axis, args, dims, log_space):
    key, a = (batch_dim_to_front(x, dim, axis.size) for x, dim in zip(args, dims))
    return random_gamma_p.bind_all(key, a, log_space=log_space), [0]


vmap_rules[random_gamma_p] = _vmap


_programs = KeyedCache()


def _callee(eqn):
    avals = tuple([x.aval for x in eqn.invars])

    def write():
        draw = partial(gammas, **eqn.params)
        return ClosedJaxpr(*trace_to_jaxpr(lambda *args: [draw(*args)], avals))

    return _programs.get((avals, eqn.params["log_space"], trace_context()), write)


callee_rules[random_gamma_p] = _callee
inlined_primitives.add(random_gamma_p)
kernel_rules[random_gamma_p] = lambda lowering, eqn, *operands: lowering.program(
    _callee(eqn), operands
)
transpose_rules.reasons[random_gamma_p] = "It is not linear in its shape."


# How a gamma number changes with its shape: an implicit derivative.


def _chosen(active, new, old):
    return [lax.select(active, x, y) for x, y in zip(new, old)]


def by_series(a, x, active, eps):
    """Return slopes by the power series of F, where `active` is True."""

    def step(state):
        active, r, c, total, dc, slope = state
        r = r + 1
        dc = dc * (x / r) - (c * x) / (r * r)
        slope, c = slope + dc, c * (x / r)
        new = _chosen(active, (r, c, total + c, dc, slope), state[1:])
        return active & (abs(dc / slope) > eps), *new

    one, zero = lax.full_like(a, 1), lax.full_like(a, 0)
    start = active, a, one, one, zero, zero
    *_, total, _, slope = lax.while_loop(lambda state: state[0].any(), step, start)
    return -(slope + total * (lax.log(x) - lax.digamma(a + 1))) * x / a


def by_fraction(a, x, active, eps):
    """Return slopes by the continued fraction of 1 - F, where `active` is True."""

    def step(state):
        active, n, y, z, total, slope, p1, q1, p2, q2, dp1, dq1, dp2, dq2 = state
        n, y, z = n + 1, y + 1, z + 2
        p, q = p1 * z - p2 * (y * n), q1 * z - q2 * (y * n)
        dp = dp1 * z - p1 - dp2 * (y * n) + p2 * n
        dq = dq1 * z - q1 - dq2 * (y * n) + q2 * n
        total = lax.select(q != 0, p / q, total)
        moved = lax.select(q != 0, (dp - total * dq) / q, slope)
        change = lax.select(q != 0, abs(moved - slope), lax.full_like(q, 1))
        shrink = jnp.where(abs(p) > 1 / eps, eps, eps / eps)
        terms = [term * shrink for term in (p, q, p1, q1, dp, dq, dp1, dq1)]
        new = _chosen(active, (y, z, total, moved, *terms), state[2:])
        return active & (change > eps), n, *new

    end = lax.while_loop(
        lambda state: (state[1] < 2000) & state[0].any(),
        step,
        (active, eps - eps, *_first(a, x)),
    )
    return (end[5] + end[4] * (lax.log(x) - lax.digamma(a))) * x


def _first(a, x):
    one, zero = lax.full_like(x, 1), lax.full_like(x, 0)
    y = 1 - a
    z = x + y + 1
    p, q = x + 1, z * x
    return y, z, p / q, p / q * x / q, p, q, one, x, zero, -x, zero, zero


def random_gamma_grad(a: ArrayLike, x: ArrayLike) -> Array:
    """Return the derivative of gamma numbers `x` with respect to their shapes `a`.

    Reference: ``jax.lax.random_gamma_grad``.
    """
    shape, dtype = lax.broadcast_shapes(np.shape(a), np.shape(x)), typeof(a).dtype
    wide = np.dtype(np.float32) if dtype.itemsize == 2 else dtype
    a, x = (jnp.broadcast_to(jnp.asarray(y, wide), shape) for y in (a, x))
    return lax.convert_element_type(_slope(a, x), dtype)


@jit
def _slope(a, x):
    bad = jnp.isnan(a) | jnp.isnan(x) | (x < 0) | (a <= 0)
    info = jnp.finfo(a.dtype)
    tiny = a * lax.log(x) - x - lax.lgamma(a) < -np.log(info.max)
    active, large = ~(bad | tiny | (x == 0)), (x > 1) & (x > a)
    eps = a.dtype.type(info.eps)
    far = by_fraction(a, x, active & large, eps)
    slope = lax.select(large, far, by_series(a, x, active & ~large, eps))
    slope = lax.select(x == 0, lax.full_like(x, 0), slope)
    return lax.select(bad, lax.full_like(x, np.nan), slope)


def _gamma_slope(sample, a, log_space):
    if not log_space:
        return random_gamma_grad(a, sample)
    number, tiny = lax.exp(sample), lax.full_like(a, jnp.finfo(a.dtype).tiny)
    number = lax.select(jnp.equal(number, 0), tiny, number)  # exp(-200) is 0 in float32
    return random_gamma_grad(a, number) / number


def _jvp(primals, tangents, log_space):
    _, a = primals
    sample = random_gamma_p.bind(*primals, log_space=log_space)
    if tangents[1] is None:
        return [sample], [None]
    return [sample], [tangents[1] * _gamma_slope(sample, a, log_space)]


jvp_rules[random_gamma_p] = _jvp


@with_out_sharding
def gamma(
    key: ArrayLike,
    a: ArrayLike,
    shape: Any = None,
    dtype: Any = None,
    *,
    out_sharding: Any = None,
) -> Array:
    """Return floats of density proportional to x**(a - 1) exp(-x).

    Args:
      key: a key.
      a: positive floats; the sample has derivatives with respect to them.
      shape: of the result; by default that of `a`.
      dtype: of the result.

    Reference: ``jax.random.gamma``.
    """
    return _gamma(*promote_sample_args("gamma", key, shape, dtype, a), a)


@with_out_sharding
def loggamma(
    key: ArrayLike,
    a: ArrayLike,
    shape: Any = None,
    dtype: Any = None,
    *,
    out_sharding: Any = None,
) -> Array:
    """Return logarithms of gamma numbers, which do not vanish for small `a`.

    Reference: ``jax.random.loggamma``.
    """
    return _gamma(
        *promote_sample_args("gamma", key, shape, dtype, a), a, log_space=True
    )


@partial(jit, static_argnames=("shape", "dtype", "log_space"))
def _gamma(key, shape, dtype, a, log_space=False):
    return random_gamma_p.bind(
        key, broadcast_parameter(a, dtype, shape), log_space=log_space
    )
