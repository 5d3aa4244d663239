# Made from chapters/29_sorting.md by `make chapter`;
# edit the chapter, not this file.
"""The kernel rule of sort: words of the keys, made by kernels, and a step.

Reference: ``_canonicalize_float_for_sort`` in ``jax._src.lax.lax``.
"""

from minijax.arrays.settings import enable_x64
from minijax.jaxprs.shape_structs import ShapeDtypeStruct
from minijax.jaxprs.staging_api import make_jaxpr
from minijax.kernels.program_steps import kernel_rules
from minijax.sorting.primitive import sort_p
from minijax.sorting.steps import add_sort
from minijax.sorting.words import words_of_key


def lower_sort(lowering, eqn, *operands):
    """Add the kernels of the words, and the step that sorts by them."""
    count, words = eqn.params["num_keys"], []
    for view in operands[:count]:
        with enable_x64():  # words are as wide as numbers, whatever the switch says
            struct = ShapeDtypeStruct(view.shape, view.dtype)
            closed = make_jaxpr(words_of_key)(struct)
        words += lowering.program(closed, [view])
    return add_sort(lowering, eqn.params["dimension"], words, operands)


kernel_rules[sort_p] = lower_sort
