"""The kernel rule of sort: words of the keys, made by kernels, and a step.

Reference: ``_canonicalize_float_for_sort`` in ``jax._src.lax.lax``.
"""

# Made from chapters/29_sorting.md by `make chapter`;
# edit the chapter, not this file.

from minijax.kernels.program_steps import kernel_rules
from minijax.sorting.primitive import sort_p
from minijax.sorting.steps import add_sort
from minijax.sorting.words import words_of_key


def lower_sort(lowering, eqn, *operands):
    """Add the kernels of the words, and the step that sorts by them."""
    count, words = eqn.params["num_keys"], []
    for view in operands[:count]:
        words += lowering.function(words_of_key, [view])
    return add_sort(lowering, eqn.params["dimension"], words, operands)


kernel_rules[sort_p] = lower_sort
