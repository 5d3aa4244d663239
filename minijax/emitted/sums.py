# Made from chapters/13_python.md by `make chapter`;
# edit the chapter, not this file.
"""Primitives in Python: sums, and products of matrices."""

from minijax import lax
from minijax.arrays.numerics import wide
from minijax.emitted.elementwise import add_rules, expression
from minijax.emitted.emission import python_rules
from minijax.emitted.spelling import product_text


def reduction(name):
    """Return the rule of a sum or product, which may need more bits on the way."""

    def spell(writer, eqn, x):
        dtype, axes = eqn.invars[0].aval.dtype, eqn.params["axes"]
        said = "" if dtype.kind in "fc" else f", dtype={writer.dtype(wide(dtype))}"
        if wide(dtype) == dtype:
            return f"np.{name}.reduce({x}, axis={axes}{said})"
        text = f"np.{name}.reduce({x}, axis={axes}, dtype=np.float32)"
        return f"{text}.astype({writer.dtype(dtype)})"

    return expression(spell)


add_rules({"reduce_sum": reduction("add"), "reduce_prod": reduction("multiply")})


python_rules[lax.dot_general_p] = expression(product_text)
