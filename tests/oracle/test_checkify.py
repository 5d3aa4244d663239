"""Errors as values: the same programs, with the same errors, in JAX and in minijax."""

import numpy as np
import pytest

jax = pytest.importorskip("jax")
from jax.experimental import checkify as jax_checkify  # noqa: E402

import minijax  # noqa: E402
import minijax.experimental.checkify  # noqa: E402

from .raised import raised  # noqa: E402


class World:
    """One of the two packages, with functions that check something."""

    def __init__(self, j, c):
        self.j, self.c, self.jnp, self.lax = j, c, j.numpy, j.lax
        self.x = self.jnp.array([-1.0, 2.0, -3.0])
        self.forward = j.custom_jvp(self.jnp.sqrt)
        self.forward.defjvp(lambda p, t: (self.forward(*p), t[0] * 3.0))
        self.backward = j.custom_vjp(self.jnp.sqrt)
        both = lambda x: (self.backward(x), x), lambda residual, g: (g * 5,)
        self.backward.defvjp(*both)

    def log(self, x):
        self.c.check(x > 0, "{x} is not positive", x=x)
        return self.jnp.log(x)

    def guarded(self, x):
        return self.lax.cond(x > 0, lambda x: self.log(x - 1), lambda x: x, x)

    def summed(self, x):
        return self.lax.scan(lambda c, x: (c + self.jnp.log(x), c * x), 0.0, x)[0]

    def until(self, x):
        step = lambda i: self.log(x - i) * 0 + i + 1  # noqa: E731
        return self.lax.while_loop(lambda i: i < 5, step, 0.0)

    def tested(self, x):
        test = lambda i: self.jnp.log(x - i) < 5  # noqa: E731
        return self.lax.while_loop(test, lambda i: i + 1, 0.0)

    def switched(self, i):
        branches = [lambda y: y, self.log, self.jnp.sqrt]
        return self.lax.switch(i, branches, self.x[0])

    def again(self, x):
        error, out = self.j.jit(self.c.checkify(self.log))(x)
        self.c.check_error(error)
        return out

    def two(self, x):
        self.c.check(x > 0, "one")
        self.c.check(x > 1, "two {0} {y}", x, y=self.x)
        return x


def world(j, c):
    made = World(j, c)
    return made, {**vars(made), "w": made, "sets": c}


OURS = world(minijax, minijax.experimental.checkify)
THEIRS = world(jax, jax_checkify)

MESSAGES = """
    c.checkify(w.log)(x[0])  c.checkify(w.log)(x[1])  j.jit(c.checkify(w.log))(x[0])
    c.checkify(j.jit(w.log))(x[0])  c.checkify(j.grad(w.log))(x[0])
    j.vmap(c.checkify(w.log))(x)  c.checkify(j.vmap(w.log))(x)
    c.checkify(j.vmap(j.grad(w.log)))(x)  j.vmap(j.jit(c.checkify(w.log)))(x)
    c.checkify(w.guarded)(x[0])  c.checkify(w.guarded)(x[1]/4)
    c.checkify(w.guarded,c.all_checks)(x[1]/4)  c.checkify(j.vmap(w.guarded))(x)
    j.vmap(c.checkify(w.guarded))(x)  c.checkify(j.grad(w.guarded))(x[1]/4)
    c.checkify(w.summed)(x)  c.checkify(j.jit(w.summed),c.all_checks)(x)
    c.checkify(j.grad(w.summed),c.nan_checks)(x)  c.checkify(w.until)(3.0)
    c.checkify(w.tested,c.float_checks)(jnp.array(3.0))
    c.checkify(w.switched,c.all_checks)(jnp.array(2))
    c.checkify(w.switched)(jnp.array(1))  c.checkify(lambda_x:lax.map(w.log,x))(x)
    c.checkify(lambda_x,i:x[i],c.index_checks)(x,jnp.array(5))
    c.checkify(lambda_x,i:x[i],c.index_checks)(x,jnp.array(-5))
    c.checkify(lambda_x,i:x[i],c.index_checks)(x,jnp.array([1,-5,9]))
    c.checkify(lambda_x,i:x[i],c.index_checks)(x,jnp.array([1,-3,2]))
    c.checkify(lambda_x,i:x.at[i].set(1),c.index_checks)(x,jnp.array([1,-5,9]))
    c.checkify(lambda_x,i:x.at[i].add(1),c.index_checks)(x,jnp.array(7))
    c.checkify(lambda_x,i:lax.dynamic_slice(x,(i,),(2,)),c.index_checks)(x,jnp.array(2))
    c.checkify(lambda_x,i:lax.dynamic_update_slice(x,x[:2],(i,)),c.index_checks)(x,2)
    c.checkify(lambda_x,i:x/i,c.div_checks)(x,0.0)
    c.checkify(lambda_x,i:x/i,c.all_checks)(x*0,0)
    c.checkify(lambda_x,i:x/i,c.nan_checks)(x*0,0)
    c.checkify(lambda_x:j.nn.relu(jnp.log(x)),c.nan_checks)(x)
    c.checkify(w.forward,c.nan_checks)(x[0])  c.checkify(w.backward,c.nan_checks)(x[0])
    c.checkify(j.grad(w.forward),c.nan_checks)(x[0])
    c.checkify(j.grad(w.backward),c.nan_checks)(x[0])
    c.checkify(j.checkpoint(w.log))(x[0])  c.checkify(j.grad(j.checkpoint(w.log)))(x[0])
    c.checkify(w.again)(x[0])  c.checkify(w.log,c.nan_checks)(x[0])
    c.checkify(w.log,c.nan_checks|c.user_checks)(x[0])  c.checkify(w.two)(x[1]/4)
    c.checkify(w.two)(x[0])  c.checkify(j.jit(lambda_x:c.debug_check(x>0,"no")))(x[0])
    c.checkify(lambda_k:j.random.normal(k,(3,)),c.all_checks)(j.random.key(0))
    c.checkify(jnp.linalg.inv,c.all_checks)(jnp.zeros((2,2)))
    c.checkify(jnp.sort,c.all_checks)(x)  c.checkify(lambda_x:x)(1)
""".split()


@pytest.mark.parametrize("text", MESSAGES)
def test_the_message_is_jax_s(text):
    (ours, _), (theirs, _) = [
        eval(text.replace("lambda_", "lambda "), dict(names))
        for _, names in (OURS, THEIRS)
    ]
    assert ours.get() == theirs.get()
    assert str(ours) == str(theirs)
    if theirs.get() is None:
        assert ours.throw() is None
    else:
        assert raised(ours.throw) == raised(theirs.throw)


RESULTS = """
    j.grad(lambda_x:c.checkify(w.forward,c.nan_checks)(x)[1])(x[1])
    j.grad(lambda_x:c.checkify(w.backward,c.nan_checks)(x)[1])(x[1])
    c.checkify(j.grad(w.forward),c.nan_checks)(x[1])[1]
    c.checkify(j.grad(w.backward),c.nan_checks)(x[1])[1]
    j.grad(lambda_x:j.jit(c.checkify(w.log))(x)[1])(x[1])
    j.grad(lambda_x:c.checkify(w.summed,c.all_checks)(abs(x))[1])(x)
    c.checkify(j.grad(w.summed),c.all_checks)(abs(x))[1]
    j.hessian(lambda_x:c.checkify(j.checkpoint(w.log))(x)[1])(x[1])
    c.checkify(w.guarded,c.all_checks)(x[1]*2)[1]  c.checkify(w.until)(x[1]*5)[1]
    j.vmap(w.log)(x+5)  c.debug_check(x[0]>0,"no")
    j.jit(lambda_x:c.debug_check(x>0,"no"))(x[0])
""".split()


@pytest.mark.parametrize("text", RESULTS)
def test_the_result_is_jax_s(text):
    ours, theirs = [
        eval(text.replace("lambda_", "lambda "), dict(names))
        for _, names in (OURS, THEIRS)
    ]
    if theirs is not None:
        np.testing.assert_allclose(ours, theirs, rtol=1e-6)
    assert (ours is None) == (theirs is None)


REFUSED = """
    w.log(-1.0)  w.log(x[0])  j.vmap(w.log)(x)  j.grad(w.log)(x[0])  w.again(x[0])
    c.checkify(w.log)(-1.0)  c.check(x>0,"a")  c.check(x[0]>0,"a_{}",3)
    c.check_error(3)  c.debug_check(1,"a")
""".split()


@pytest.mark.parametrize("text", REFUSED)
def test_what_is_raised_is_jax_s(text):
    ours, theirs = [raised(lambda n=n: eval(text, dict(n))) for _, n in (OURS, THEIRS)]
    assert ours == theirs


STAGED = """
    j.jit(w.log)(x[0])  lax.map(w.log,x)  j.jit(j.grad(w.log))(x[0])
    c.checkify(j.vmap(w.until))(x)
""".split()


@pytest.mark.parametrize("text", STAGED)
def test_a_check_that_cannot_be_staged_is_refused_in_jax_s_words(text):
    ours, theirs = [raised(lambda n=n: eval(text, dict(n))) for _, n in (OURS, THEIRS)]
    assert ours[0] == theirs[0] == "ValueError"
    assert ours[1].startswith(theirs[1])
