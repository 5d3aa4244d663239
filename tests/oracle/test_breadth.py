"""Polynomials, integrals with names and arrangements of lax, beside JAX."""

import importlib

import numpy as np
import pytest

jax = pytest.importorskip("jax")
import minijax  # noqa: E402
import minijax.numpy  # noqa: E402
import minijax.scipy.special  # noqa: E402

CASES = """
    jnp.poly(a)  jnp.poly(jnp.arange(3))  jnp.poly(jnp.eye(2)*2)
    jnp.poly(jnp.array([]))
    jnp.polydiv(jnp.arange(5.),jnp.array([2.,1.]))
    jnp.polydiv(jnp.arange(5),jnp.array([2,1]),trim_leading_zeros=True)
    jnp.polydiv(a[:1],a)  jnp.roots(a)  jnp.roots(jnp.array([0,0,1,-3,2]))
    jnp.roots(jnp.array([0,0,1,-3,2]),strip_zeros=False)  jnp.roots(a[:1])
    jax.jit(lambda_p:jnp.roots(p,strip_zeros=False))(a)  jnp.polyfit(x,x**2+1,2)
    jnp.polyfit(x,jnp.sin(x),2,full=True)  jnp.polyfit(x,jnp.sin(x),2,cov=True,w=x+1)
    jnp.polyfit(x,jnp.stack([x,x**3],1),1,cov=True)
    jnp.polyfit(x,jnp.ones((6,2)),1,cov='unscaled')  jax.grad(lambda_y:f(y))(x)
    jnp.trim_zeros(jnp.array([0,0,1,0,2,0]))  jnp.trim_zeros(jnp.array([0,1,0]),'f')
    jnp.trim_zeros(x*0)  jnp.trim_zeros(x*0,'b')  jnp.trim_zeros(jnp.pad(x[:1]+1,1))
    jnp.trim_zeros(jnp.pad(jnp.ones((2,2)),1),axis=0)  jnp.i0(a)  jax.grad(jnp.i0)(1.5)
    jnp.kaiser(5,3.)  jnp.kaiser(1,3.)  jnp.kaiser(0,3.)  lax.stack([a,a],1)
    lax.unstack(jnp.eye(2))  lax.split(a,(1,2))  lax.tile(a,(2,))
    lax.empty((2,),'int8')
    lax.reduce(jnp.eye(3),0.,lax.add,(0,))  lax.reduce(jnp.eye(3),2.,lax.max,(0,1))
    lax.reduce(jnp.ones((2,3))+1,1.,lambda_x,y:x*y+0,(1,))
    lax.ragged_dot(jnp.ones((4,3)),b,jnp.array([1,2]))  lax.composite(abs,'m.d')(a)
    jax.grad(lambda_x:lax.ragged_dot(x,b,jnp.array([1,2])).sum())(jnp.ones((4,3)))
    lax.platform_dependent(a,cpu=abs,default=None)  jax.named_call(abs,name='q')(a)
    half(jax,a,0)  half(jax,a,(0,1))  sp.wofz(a+0.5j)  sp.wofz(a)
""".split()
for name in "erfcx dawsn expi spence fresnel sici exp1".split():  # JAX is wrong at 1
    CASES += [f"sp.{name}(p)", f"jax.vmap(jax.jacfwd(sp.{name}))(p)"]
for name in "erfcx dawsn expi".split():  # JAX has no second derivative of exp1
    CASES += [f"jax.vmap(jax.jacfwd(jax.jacrev(sp.{name})))(p)"]
CASES += """
    sp.erfcx(-p)  sp.dawsn(-p)  sp.expi(-p)  sp.fresnel(-p)  sp.expn(3,p)  sp.expn(0,p)
    sp.expn(jnp.arange(6),p[:6])  jax.vmap(jax.grad(sp.expn,1),(None,0))(2.0,p)
    sp.owens_t(p,0.7)  sp.owens_t(p,-3.0)  sp.owens_t(-p,1.0)  sp.owens_t(0.0,p)
    jax.vmap(jax.grad(sp.owens_t,(0,1)))(p,p)  sp.hyp1f1(1.5,2.5,p)
    sp.hyp1f1(1.5,2.5,-p)  jax.vmap(jax.grad(sp.hyp1f1,2),(None,None,0))(1.5,2.5,-p)
""".split()


def half(j, a, argnums):
    """Return cotangents, by the two halves of a gradient."""
    fwd, bwd = j.fwd_and_bwd(lambda x, y: (x * y).sum(), argnums)
    return bwd(fwd(a, a)[1], 1.0)


def run(j, text):
    jnp, special = (importlib.import_module(f"{j.__name__}.{p}") for p in SPACES)
    names = {"jax": j, "jnp": jnp, "lax": j.lax, "sp": special, "half": half}
    names["a"], names["x"] = jnp.array([1.0, -3.0, 2.0]), jnp.arange(6.0)
    names["b"] = jnp.arange(12.0).reshape(2, 3, 2)
    names["p"] = jnp.array(np.float32([0.01, 0.4, 0.9, 1.1, 1.6, 3.5, 4.2, 6.0]))
    names["f"] = lambda y: jnp.polyfit(names["x"], y, 2).sum()
    return j.tree.leaves(eval(text.replace("lambda_", "lambda "), names))


SPACES = "numpy", "scipy.special"


@pytest.mark.parametrize("text", CASES)
def test_values_and_types_are_jax_s(text):
    ours, theirs = run(minijax, text), run(jax, text)
    assert len(ours) == len(theirs)
    for one, other in zip(ours, theirs):
        one, other = np.asarray(one), np.asarray(other)
        assert (one.shape, one.dtype) == (other.shape, other.dtype)
        np.testing.assert_allclose(one, other, rtol=3e-4, atol=3e-6)


def test_the_path_of_a_distribution_can_be_imported():
    for root in ("jax", "minijax"):
        norm = importlib.import_module(f"{root}.scipy.stats.norm")
        assert float(norm.logpdf(0.0)) == pytest.approx(-0.9189385)
