"""What a value that is not there yet can say of itself."""

import numpy as np
import pytest

from minijax import lax
from minijax.arrays.array import ShapedArray
from minijax.jaxprs.jaxpr import Var, new_eqn
from minijax.jaxprs.types import AbstractTracer, ancestor_argument_positions

VECTOR = ShapedArray((3,), np.float32)


def test_positions_of_arguments():
    a, b, c = (Var(VECTOR) for _ in range(3))
    product = new_eqn(lax.mul_p, [a, c], {})
    [d] = product.outvars
    unrelated = new_eqn(lax.sin_p, [b], {})
    eqns = [product, unrelated]
    assert ancestor_argument_positions(d, [a, b, c], eqns) == [0, 2]
    assert ancestor_argument_positions(unrelated.outvars[0], [a, b, c], eqns) == [1]
    assert ancestor_argument_positions(b, [a, b, c], eqns) == [1]


def test_a_subclass_says_where_it_is_from():
    tracer = AbstractTracer(None)
    assert tracer.concrete() is None
    with pytest.raises(NotImplementedError, match="AbstractTracer has no provenance"):
        tracer.provenance()


def test_an_equation_has_the_types_of_its_shape_rule():
    total = new_eqn(lax.reduce_sum_p, [Var(VECTOR)], {"axes": (0,)})
    assert [var.aval for var in total.outvars] == [VECTOR.update(shape=())]
    with pytest.raises(TypeError):
        new_eqn(lax.add_p, [Var(VECTOR), Var(VECTOR.update(shape=(4,)))], {})
