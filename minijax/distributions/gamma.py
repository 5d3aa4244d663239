"""Gamma numbers, by rejection; and how one changes with its shape.

Source: Marsaglia and Tsang, *A simple method for generating gamma variables* (TOMS
2000). Reference: ``jax.random.gamma``.
"""

# Made from chapters/32_random_rest.md by `make chapter`;
# edit the chapter, not this file.

import math
from functools import partial
from typing import Any

from minijax import lax
from minijax import numpy as jnp
from minijax.arrays.array import shape_rules
from minijax.arrays.checks import refuse_sharding
from minijax.batching.rules import at_front, vmap_rules
from minijax.batching.trace import vmap
from minijax.core import Array, Primitive, impl_rules
from minijax.distributions.gamma_slopes import random_gamma_grad
from minijax.distributions.inversion import exponential
from minijax.distributions.sampling import filled, start
from minijax.emitted.emission import python_rules
from minijax.emitted.evaluations import write_evaluation
from minijax.forgetting.remembering import Once, trace_context
from minijax.forward.rules import jvp_rules
from minijax.jaxprs.jaxpr import ClosedJaxpr
from minijax.jaxprs.staging import trace_to_jaxpr
from minijax.jitting.api import jit
from minijax.kernels.program_steps import kernel_rules
from minijax.own_rules.function_calls import callee_rules
from minijax.passes.inlining import INLINING
from minijax.randomness.making_keys import split_keys
from minijax.randomness.normal import normal
from minijax.randomness.uniform import uniform
from minijax.reverse.transposition import transpose_rules
from minijax.typing import ArrayLike


def one_gamma(key, a, log_space):
    """Return a gamma number of shape `a`, or its logarithm."""
    large, number = a >= 1, a.dtype.type
    d = lax.select(large, a, a + 1) - number(1 / 3)
    key, rest = split_keys(key, (2,))
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
        key, x_key, u_key = split_keys(state[0], (3,))
        x, v = _positive(x_key, c)
        return key, x * x, v * v * v, uniform(u_key, (), d.dtype)

    zero = lax.full_like(d, 0)
    return lax.while_loop(refused, again, (key, zero, zero + 1, zero + 2))[2]


def _positive(key, c):
    """Return a normal number x for which 1 + c x is positive, and that."""

    def again(state):
        key, rest = split_keys(state[0], (2,))
        x = normal(rest, (), c.dtype)
        return key, x, 1 + x * c

    zero = lax.full_like(c, 0)
    start = key, zero, zero - 1
    return lax.while_loop(lambda state: state[2] <= 0, again, start)[1:]


random_gamma_p = Primitive("random_gamma")


def gammas(key, a, log_space):
    """Return gamma numbers of shapes `a`, whose first axes are those of the keys."""
    count = math.prod(a.shape[key.ndim :])
    keys = split_keys(key, (count,)).reshape(-1)
    draw = vmap(partial(one_gamma, log_space=log_space))
    return draw(keys, a.reshape(-1)).reshape(a.shape)


def _shape(key, a, log_space):
    return [a]


_compiled = jit(gammas, static_argnames="log_space")
shape_rules[random_gamma_p] = _shape
impl_rules[random_gamma_p] = lambda *args, **params: [_compiled(*args, **params)]
python_rules[random_gamma_p] = write_evaluation


def _vmap(axis, args, dims, log_space):
    key, a = (at_front(x, dim, axis.size) for x, dim in zip(args, dims))
    return random_gamma_p.bind(key, a, log_space=log_space), [0]


vmap_rules[random_gamma_p] = _vmap


_programs = Once()


def _callee(eqn):
    avals = tuple([x.aval for x in eqn.invars])

    def write():
        draw = partial(gammas, **eqn.params)
        return ClosedJaxpr(*trace_to_jaxpr(lambda *args: [draw(*args)], avals))

    return _programs.get((avals, eqn.params["log_space"], trace_context()), write)


callee_rules[random_gamma_p] = _callee
INLINING[0].add(random_gamma_p)
kernel_rules[random_gamma_p] = lambda lowering, eqn, *operands: lowering.program(
    _callee(eqn), operands
)
transpose_rules.reasons[random_gamma_p] = "It is not linear in its shape."


def _gamma_slope(sample, a, log_space):
    if not log_space:
        return random_gamma_grad(a, sample)
    number, tiny = lax.exp(sample), lax.full_like(a, jnp.finfo(a.dtype).tiny)
    number = lax.select(jnp.equal(number, 0), tiny, number)  # exp(-200) is 0 in float32
    return random_gamma_grad(a, number) / number


def _jvp(primals, tangents, log_space):
    _, a = primals
    [sample] = random_gamma_p.bind(*primals, log_space=log_space)
    if tangents[1] is None:
        return [sample], [None]
    return [sample], [tangents[1] * _gamma_slope(sample, a, log_space)]


jvp_rules[random_gamma_p] = _jvp


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
    refuse_sharding("gamma", out_sharding)
    return _gamma(*start("gamma", key, shape, dtype, a), a)


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
    refuse_sharding("loggamma", out_sharding)
    return _gamma(*start("gamma", key, shape, dtype, a), a, log_space=True)


@partial(jit, static_argnames=("shape", "dtype", "log_space"))
def _gamma(key, shape, dtype, a, log_space=False):
    return random_gamma_p.bind(key, filled(a, dtype, shape), log_space=log_space)[0]
