"""Primitives in Python: sums, and products of matrices."""

# Made from chapters/13_python.md by `make chapter`;
# edit the chapter, not this file.

from minijax import lax
from minijax.arrays.numerics import wide
from minijax.emitted.elementwise import expression
from minijax.emitted.emission import python_rules
from minijax.emitted.spelling import product_text


def reduction(name):
    """Return the rule of a sum or product, which may need more bits on the way."""

    def spell(writer, eqn, x):
        dtype, axes = eqn.invars[0].aval.dtype, eqn.params["axes"]
        enough = wide(dtype)
        default = enough == dtype and dtype.kind in "fc"
        said = "" if default else f", dtype={writer.dtype(enough)}"
        text = f"np.{name}.reduce({x}, axis={axes}{said})"
        return text if enough == dtype else f"{text}.astype({writer.dtype(dtype)})"

    return expression(spell)


python_rules[lax.reduce_sum_p] = reduction("add")
python_rules[lax.reduce_prod_p] = reduction("multiply")


python_rules[lax.dot_general_p] = expression(product_text)
