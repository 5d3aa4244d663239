"""The kernel rule of sort: how many words and steps a sort becomes."""

import numpy as np
import pytest

from minijax import ShapeDtypeStruct, lax, make_jaxpr
from minijax.jitting.compilation import compile_cached
from minijax.sorting.radix_sort import Sort

WORDS = {
    "one key": ("float32", 1, 1),
    "two keys": ("int8", 2, 2),
    "complex": ("complex64", 1, 2),
}


def steps_of(shape, dtype, num_keys, axis=0):
    struct = ShapeDtypeStruct(shape, dtype)
    sort = lambda x, y: lax.sort((x, y), axis, num_keys=num_keys)  # noqa: E731
    program = compile_cached(make_jaxpr(sort)(struct, struct), "cpu").lowered
    return [step for step in program.steps if isinstance(step, Sort)]


@pytest.mark.parametrize("name", WORDS)
def test_words_of_the_keys(name):
    dtype, num_keys, count = WORDS[name]
    [step] = steps_of((100,), dtype, num_keys)
    assert len(step.words) == count and len(step.operands) == 2
    assert all(np.dtype(view.dtype).kind == "u" for view in step.words)


def test_rows_along_any_axis():
    [step] = steps_of((100, 3), "float32", 1, axis=0)
    assert step.sizes == (3, 100)


@pytest.mark.parametrize("shape", [(1,), (0, 4)])
def test_what_needs_no_sort_has_no_step(shape):
    assert not steps_of(shape, "float32", 1)
