"""The page with one function on every floor: each line knows where it came from."""

import re

import minijax as jax
from book.tools import one_function

LINES = range(one_function.FIRST, one_function.LAST + 1)


def numbers(lines):
    """The lines of Python that are on a floor, in order, each once in a row."""
    found = [number for _, number in lines if number]
    pairs = zip([0, *found], found, strict=False)
    return [number for before, number in pairs if number != before]


def test_each_floor_has_all_lines_in_order():
    args = one_function.arguments()
    python = jax.jit(one_function.function(), backend="python").lower(*args)
    floors = [
        one_function.python_lines(),
        one_function.jaxpr_lines(jax.make_jaxpr(one_function.function())(*args)),
        one_function.emitted_lines(python.compile().as_text()),
        one_function.kernel_lines(),
    ]
    assert [numbers(lines) for lines in floors] == [[*LINES]] * 4


def test_the_loops_have_all_lines():
    lines = one_function.schedule_lines()
    assert {*LINES} == {number for _, number in lines if number}
    assert all(number for text, number in lines if re.match(" *v", text))
    assert not any(number for text, number in lines if "for i" in text)


def test_the_gradient_goes_back():
    loss, args = one_function.function(), one_function.arguments()
    program = jax.make_jaxpr(jax.grad(loss))(*args)
    back = [5, 3, 2]  # the subtraction, transposed, hands on what it is given
    assert numbers(one_function.jaxpr_lines(program)) == [*LINES, *back]


def test_only_tanh_is_told_in_llvm():
    lines = one_function.llvm_lines()
    assert {number for _, number in lines} == {0, 3}
    assert any("fmuladd" in text and number == 3 for text, number in lines)


def test_page_escapes_and_fills():
    page = one_function.page()
    assert page.count("<pre") == page.count("</pre>") == 9
    assert "<8 x float>" not in page and "tabindex" in page
