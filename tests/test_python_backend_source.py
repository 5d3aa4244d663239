"""Names, lines and comments of emitted source."""

import keyword
import re
import unicodedata

import numpy as np
import pytest

import minijax.numpy as jnp
from minijax import jit, pure_callback
from minijax.jaxprs.pretty_printer import letters
from minijax.python_backend.source import Lines, Names, comment


def test_each_name_is_given_once():
    names = Names()
    given = [names.fresh("a") for _ in range(20)]
    assert given[:3] == ["a", "a_", "a_2"] and len({*given}) == 20


HINTS = ["<lambda>", "2.0", "", "_", "f g", "é", "-1", "None", "x²", "ﬁ", "·", "\ud800"]


@pytest.mark.parametrize("hint", HINTS, ids=ascii)
def test_names_are_identifiers(hint):
    name = Names().fresh(hint)
    assert name.isidentifier() and not keyword.iskeyword(name) and name != "_"
    assert unicodedata.normalize("NFKC", name) == name and re.fullmatch(r"\w+", name)


@pytest.mark.parametrize("number", [213, 221, 226, 353, 381])
def test_letters_that_mean_something_to_python(number):
    assert Names().fresh(letters(number)) == letters(number) + "_"


def test_blocks_are_indented_and_never_empty():
    lines = Lines()
    with lines.block("while True:"):
        with lines.block("if a:"):
            lines.line("break")
        with lines.block("else:"):
            pass
    lines.line("b = a")
    assert [line[4:] for line in lines.lines] == [
        "while True:",
        "    if a:",
        "        break",
        "    else:",
        "        pass",
        "b = a",
    ]


class Place:
    """A place in a program with a text."""

    text = "y = x + 1"

    def __str__(self):
        return "f.py:3:4 (f)"


def test_places_are_remarks_where_they_change():
    lines, place = Lines(), Place()
    lines.on_behalf_of(None)
    lines.line("a = 1")
    for source in (place, place, None, place, "g.py:1:0 (g)"):
        lines.on_behalf_of(source)
        lines.line("b = 2")
    texts = [line.strip() for line in lines.lines]
    assert texts.count("# y = x + 1") == 1 and texts.count("# g.py:1:0 (g)") == 1
    assert lines.sources[2] is place and 0 not in lines.sources


@pytest.mark.parametrize("text", ["a\nb", "a\r\x0c b", "a\0b", "a\udcff b", "a\u2028b"])
def test_comments_are_one_line_of_source(text):
    assert comment(text) == "# a b"
    compile(comment(text), "file", "exec")


def test_functions_and_files_of_any_name():
    def callback(x):
        return np.asarray(x) * 2

    callback.__qualname__ = "nul\0 and \udcff, of a folder that is no UTF-8"
    x = jnp.arange(3.0)
    f = jit(lambda x: pure_callback(callback, x, x) + 1, backend="python")
    assert f(x).tolist() == [1, 3, 5]
