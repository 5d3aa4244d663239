"""Programs that do more than return results."""

import minijax
from minijax.arrays.array import def_shape_and_impl
from minijax.core import Primitive
from minijax.rematerialization.jaxpr_transforms import (
    dce_closed_jaxpr,
    effect_rules,
    has_effects,
)

shout_p = Primitive("shout")
def_shape_and_impl(shout_p, lambda x: [x], lambda xp, x: x)


def test_effects_are_found_inside():
    def f(x):
        minijax.jit(lambda y: shout_p.bind(y))(x)
        return x

    closed = minijax.make_jaxpr(f)(1.0)
    assert not has_effects(closed)
    effect_rules[shout_p] = lambda eqn: True
    try:
        assert has_effects(closed)
        assert len(dce_closed_jaxpr(closed, (True,))[0].eqns) == 1
    finally:
        del effect_rules[shout_p]
    assert not has_effects(closed)
