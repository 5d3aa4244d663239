"""Containers whose constructors convert what they are given, as users write them."""

import numpy as np
import pytest

import minijax
from minijax import lax
from minijax import numpy as jnp
from minijax.tree_util import register_pytree_node


class Converting:
    def __init__(self, a):
        self.a = jnp.asarray(a)


register_pytree_node(
    Converting, lambda t: ((t.a,), None), lambda _, xs: Converting(*xs)
)
TREE = Converting(jnp.arange(3.0))
WAYS = {
    "jit": lambda t: minijax.jit(lambda t: t)(t),
    "vmap": lambda t: minijax.vmap(lambda t: t)(t),
    "vmap, axes": lambda t: minijax.vmap(lambda t: (t, 1.0), (0,), (0, None))(t)[0],
    "scan": lambda t: lax.scan(lambda c, _: (c, None), t, None, length=2)[0],
    "scan over rows": lambda t: lax.scan(lambda c, row: (c, row), 0, t)[1],
    "map": lambda t: lax.map(lambda row: row, t),
    "cond": lambda t: lax.cond(t.a[0] < 1, lambda t: t, lambda t: t, t),
    "switch": lambda t: lax.switch(1, [lambda t: t, lambda t: t], t),
    "while": lambda t: lax.while_loop(lambda t: t.a[0] > 1, lambda t: t, t),
    "fori": lambda t: lax.fori_loop(0, 2, lambda i, t: t, t),
    "jvp": lambda t: minijax.jvp(lambda t: t, (t,), (t,))[1],
    "vjp": lambda t: minijax.vjp(lambda t: t, t)[1](t)[0],
    "grad": lambda t: minijax.grad(lambda t: (t.a**2).sum() / 2)(t),
}


@pytest.mark.parametrize("name", WAYS)
def test_containers_may_convert(name):
    for way in (WAYS[name], minijax.jit(WAYS[name])):
        result = way(TREE)
        assert type(result) is Converting
        np.testing.assert_array_equal(result.a, TREE.a)
