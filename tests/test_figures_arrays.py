"""The picture of arrays as an abstract value and a buffer."""

import numpy as np

import minijax.numpy as jnp
from minijax_book import figures


def test_types_and_bytes_are_said():
    figure = figures.arrays({"a": jnp.ones(4, "float16"), "one": jnp.asarray(1)})
    assert "a is float16[4] and 8 bytes" in figure.alt
    assert [node.label for node in figure.nodes] == ["float16[4]", "~int32[]"]


def test_a_weak_type_stands_out():
    weak = figures.arrays({"a": jnp.asarray(1.0)})._repr_svg_()
    strong = figures.arrays({"a": jnp.asarray(np.float32(1))})._repr_svg_()
    assert "tangent" in weak and "tangent" not in strong


def test_the_width_is_that_of_the_bytes():
    narrow, wide = (
        figures.arrays({"a": jnp.zeros(6, dtype)}).width for dtype in ("int8", "int16")
    )
    assert narrow < wide < figures.arrays({"a": jnp.zeros(6, "int32")}).width


def test_no_arrays():
    assert "no arrays" in figures.arrays({}).alt
