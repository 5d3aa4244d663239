"""What `book/differences.md` says of both packages, each line by a call: it differs."""

import re
import warnings

import numpy as np
import pytest

jax = pytest.importorskip("jax")
import minijax  # noqa: E402
from tests.oracle.test_surface import module  # noqa: E402

# Calls of a package `j` and its modules `jnp`, `lax` and `special`.
CALLS = """
jnp.arange(3.)[None, True].shape
jnp.array(np.ma.array([1., 2.], mask=[0, 1]))
jnp.asarray(np.array([1e30, np.nan]), "int32")
lax.mul(jnp.float16(2.), 2.).dtype
j.jit(jnp.exp)(-100.)
jnp.trim_zeros(jnp.array([0, 1j, 1]))
lax.approx_max_k(jnp.array([1., np.nan, 2.]), 1)
lax.approx_max_k(jnp.arange(3.), 1, aggregate_to_topk=False)
jnp.repeat(jnp.arange(3), jnp.array([1, -1, 2]))
jnp.intersect1d(jnp.arange(3), jnp.arange(3), size=4, fill_value=1.5).dtype
jnp.quantile(jnp.array([-0., -0.]), .5)
jnp.fmod(np.array(True), np.array(False))
jnp.var(jnp.arange(3.), mean=jnp.complex64(1 + 1j))
lax.pad(jnp.zeros(2), 0, [(1, 1, 0)])
j.grad(lambda x: lax.broadcast_in_dim(x, (3, 2), (1, 0)).sum())(jnp.zeros((2, 3)))
jnp.linalg.multi_dot([jnp.eye(2)])
jnp.arange(3.).at[3:1].get(mode="wrapx")
lax.associative_scan(jnp.add, jnp.ones((2, 3)), axis=-1, reverse=True)
jnp.logaddexp2(1j, 2j)
jnp.maximum.reduce(jnp.arange(3), dtype="float32")
jnp.kron(np.array([True]), np.array([True]))
j.typeof(jnp.zeros(3)).str_short()
memoryview(jnp.zeros(3)).nbytes
type(lax.stop_gradient(1.)).__name__
(lambda x: jnp.ravel(x) is x)(jnp.zeros(3))
j.grad(lambda x: x, argnums=(0, 0))(1.)
j.grad(lambda x: jnp.ldexp(x, 3))(0.)
j.grad(special.i0)(0.)
j.grad(j.grad(jnp.i0))(0.)
j.grad(j.grad(special.i1))(0.)
j.grad(j.grad(special.spence))(1.)
j.grad(jnp.arccosh)(-2.)
j.grad(special.factorial)(-2.)
j.grad(jnp.hypot)(1e30, 1e30)
special.polygamma(1, -12.5)
special.expn(2, 0.)
special.expi(0.)
special.hyp2f1(-2., 1., 1., 3.)
special.gammainc(0., .5)
special.owens_t(1j, 1.)
j.nn.sigmoid(jnp.float16(-11.1))
jnp.round(jnp.float32(5.), -40)
abs(jnp.complex64(complex(np.inf, np.nan)))
lax.reshape(jnp.arange(3.), (2,))
jnp.eye(-1)
jnp.array([1, "b"])
lax.cumlogsumexp(jnp.arange(3))
jnp.polyval(2., 1)
jnp.split(1., 2)
jnp.ravel_multi_index((1,), (2, 3))
j.tree_util.tree_unflatten(3, [1])
j.nn.glu(jnp.zeros(3))
j.nn.standardize(1.)
j.random.key(0, impl="philox4x32").dtype
j.make_jaxpr(jnp.fft.fft)(jnp.zeros(3))
j.make_jaxpr(jnp.dot)(jnp.ones(2, "int32"), jnp.ones(2))
hasattr(module("export").Exported, "serialize")
module("export").export(jnp.sin)
""".strip().split("\n")


def answer(package, call):
    """What a call gives: a text of the value, or the class of the error."""
    name = package.__name__
    names = {"j": package, "np": np, "module": lambda path: module(name, path)}
    names |= {"jnp": module(name, "numpy"), "lax": module(name, "lax")}
    names["special"] = module(name, "scipy.special")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return re.sub("(mini)?jax", "", repr(eval(call, names)))
        except Exception as error:
            return type(error).__name__


@pytest.mark.parametrize("call", CALLS)
def test_it_differs(call):
    assert answer(minijax, call) != answer(jax, call), "the page has an old line"
