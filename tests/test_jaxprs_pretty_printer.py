"""The text of jaxprs. That it is JAX's text is tested in oracle/test_jaxpr_text.py."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import minijax.numpy as jnp
from minijax import lax
from minijax.arrays.array import ShapedArray
from minijax.core import Primitive
from minijax.jaxprs.jaxpr import ClosedJaxpr, Jaxpr, JaxprEqn, Literal, Var, make_jaxpr
from minijax.jaxprs.pretty_printer import (
    Group,
    LineBreak,
    Nest,
    Note,
    flat_text,
    format_document,
    letters,
)

x = np.ones(3, np.float32)
m = np.ones((2, 3), np.float32)
SCALAR = ShapedArray((), np.float32)
CALL, OTHER = Primitive("call"), Primitive("other")

documents = st.recursive(
    st.one_of(
        st.text("abc[]", max_size=9), st.sampled_from([LineBreak(), LineBreak("; ")])
    ),
    lambda inner: st.one_of(
        st.builds(Group, inner),
        st.builds(Nest, st.integers(0, 4), inner),
        st.lists(inner, max_size=5).map(tuple),
    ),
    max_leaves=20,
)


@given(documents)
def test_a_group_that_fits_is_one_line(document):
    text = flat_text(document)
    assert format_document(Group(document), width=max(1, len(text))) == text


@given(documents, st.integers(1, 40))
def test_layout_changes_spaces_only(document, width):
    squeeze = str.maketrans("", "", " ;\n")
    text = format_document(document, width)
    assert text.translate(squeeze) == flat_text(document).translate(squeeze)


def test_layout_by_hand():
    words = (LineBreak(), "one", LineBreak(), "two")
    document = Group(("{", Nest(2, words), LineBreak(), "}"))
    assert format_document(document) == "{ one two }"
    assert format_document(document, width=10) == "{\n  one\n  two\n}"


def test_an_inner_group_may_stay_on_its_line():
    document = (
        Group(("a" * 9, LineBreak(), "b")),
        LineBreak(),
        Group(("c", LineBreak(), "d")),
    )
    assert format_document(document, width=8) == "a" * 9 + "\nb\nc d"


def test_notes_stand_behind_the_longest_line():
    document = ("short", Note("first"), LineBreak(), "a longer one", Note("second"))
    assert format_document(document) == "short        # first\na longer one # second"


@pytest.mark.parametrize(
    ("number", "name"),
    [(0, "a"), (25, "z"), (26, "ba"), (51, "bz"), (675, "zz"), (676, "baa")],
)
def test_letters(number, name):
    assert letters(number) == name


@given(st.integers(0, 10**6))
def test_letters_are_different(number):
    digits = [ord(letter) - ord("a") for letter in letters(number)]
    assert sum(digit * 26**i for i, digit in enumerate(reversed(digits))) == number


PROGRAMS = [
    (lambda x: x, "{ lambda ; a:f32[3]. let  in (a,) }"),
    (lambda x: (x, x), "{ lambda ; a:f32[3]. let  in (a, a) }"),
    (lambda x: (), "{ lambda ; a:f32[3]. let  in () }"),
    (lambda x: 2.0, "{ lambda ; a:f32[3]. let  in (2.0:f32[],) }"),
    (lambda x: lax.sin(x), "{ lambda ; a:f32[3]. let b:f32[3] = sin a in (b,) }"),
    (
        lambda x: lax.sin(lax.cos(x)),
        "{ lambda ; a:f32[3]. let b:f32[3] = cos a; c:f32[3] = sin b in (c,) }",
    ),
    (
        lambda x: lax.mul(x, lax.sin(lax.cos(x))),
        "{ lambda ; a:f32[3]. let\n"
        "    b:f32[3] = cos a\n"
        "    c:f32[3] = sin b\n"
        "    d:f32[3] = mul a c\n"
        "  in (d,) }",
    ),
    (
        lambda x: (lax.sin(x), x)[1],
        "{ lambda ; a:f32[3]. let _:f32[3] = sin a in (a,) }",
    ),
    (
        lambda x: (
            lax.add(lax.mul(x, 2.0), x)[:0] if False else lax.mul(x, np.float32(7))
        ),
        "{ lambda ; a:f32[3]. let b:f32[3] = mul a 7.0:f32[] in (b,) }",
    ),
    (
        lambda x: lax.broadcast_in_dim(x, (2, 3), (1,)),
        "{ lambda ; a:f32[3]. let\n"
        "    b:f32[2,3] = broadcast_in_dim[broadcast_dimensions=(1,)] a\n"
        "  in (b,) }",
    ),
    (
        lambda x: lax.broadcast_in_dim(1.0, (2, 3), ()),
        "{ lambda ; a:f32[3]. let b:f32[2,3] = broadcast_in_dim 1.0:f32[] in (b,) }",
    ),
    (
        lambda x: jnp.dot(x, x),
        "{ lambda ; a:f32[3]. let\n"
        "    b:f32[] = dot_general[\n"
        "      dimension_numbers=(([0], [0]), ([], []))\n"
        "      preferred_element_type=float32\n"
        "    ] a a\n"
        "  in (b,) }",
    ),
    (
        lambda x: lax.add(x, m[0]),
        "{ lambda a:f32[3]; b:f32[3]. let c:f32[3] = add b a in (c,) }",
    ),
    (
        lambda x: lax.iota(np.int32, 3),
        "{ lambda ; a:f32[3]. let\n"
        "    b:i32[3] = iota[dimension=0 dtype=int32 shape=(3,)] \n"
        "  in (b,) }",
    ),
]


@pytest.mark.parametrize(("fun", "text"), PROGRAMS)
def test_text(fun, text):
    assert str(make_jaxpr(fun)(x)) == text


def test_without_types():
    text = make_jaxpr(lax.sin)(x).pretty_print(print_shapes=False)
    assert text == "{ lambda ; a. let b = sin a in (b,) }"


def test_width():
    text = make_jaxpr(lax.sin)(x).pretty_print(width=20)
    assert text == "{ lambda ; a:f32[3]. let\n    b:f32[3] = sin a\n  in (b,) }"


def test_the_text_is_the_same_each_time():
    jaxpr = make_jaxpr(lambda x: lax.sin(x) * lax.cos(x))(x)
    assert str(jaxpr) == str(jaxpr)


def test_sources_are_notes():
    jaxpr = make_jaxpr(lambda x: lax.sin(lax.cos(x)))(x).jaxpr
    jaxpr.eqns[0].source, jaxpr.eqns[1].source = "model.py:3", None
    assert str(jaxpr).count("#") == 0
    text = jaxpr.pretty_print(source_info=True, width=20)
    assert text.splitlines()[1:3] == [
        "    b:f32[3] = cos a     # model.py:3",
        "    c:f32[3] = sin b",
    ]


def identity(length=1):
    """A jaxpr with `length` equations `other`."""
    variables = [Var(SCALAR) for _ in range(length + 1)]
    eqns = [JaxprEqn([a], [b], OTHER, {}) for a, b in zip(variables, variables[1:])]
    return Jaxpr([], variables[:1], variables[-1:], eqns)


def calling(*params):
    """A jaxpr that binds `call` once for each dictionary of parameters."""
    a, *results = (Var(SCALAR) for _ in range(len(params) + 1))
    eqns = [JaxprEqn([a], [b], CALL, p) for b, p in zip(results, params)]
    return Jaxpr([], [a], results, eqns)


def test_an_inner_jaxpr_is_a_parameter():
    text = str(calling({"name": "f", "jaxpr": ClosedJaxpr(identity(), [])}))
    assert text == (
        "{ lambda ; a:f32[]. let\n"
        "    b:f32[] = call[\n"
        "      jaxpr={ lambda ; c:f32[]. let d:f32[] = other c in (d,) }\n"
        "      name=f\n"
        "    ] a\n"
        "  in (b,) }"
    )


def test_a_tuple_of_jaxprs():
    text = str(calling({"branches": (identity(), identity())}))
    assert text.splitlines()[2:6] == [
        "      branches=(",
        "        { lambda ; c:f32[]. let d:f32[] = other c in (d,) }",
        "        { lambda ; e:f32[]. let f:f32[] = other e in (f,) }",
        "      )",
    ]


def test_a_jaxpr_that_occurs_twice_is_printed_once():
    sub = identity()
    text = str(calling({"name": "f", "jaxpr": sub}, {"name": "f", "jaxpr": sub}))
    assert text == (
        "let f = { lambda ; a:f32[]. let b:f32[] = other a in (b,) } in\n"
        "{ lambda ; c:f32[]. let\n"
        "    d:f32[] = call[jaxpr=f name=f] c\n"
        "    e:f32[] = call[jaxpr=f name=f] c\n"
        "  in (d, e) }"
    )


def test_a_long_jaxpr_is_printed_in_front():
    assert str(calling({"name": "<lambda>", "jaxpr": identity(11)})).startswith(
        "let lambda = { lambda ; a:f32[]. let\n"
    )
    assert not str(calling({"jaxpr": identity(10)})).startswith("let")


def test_shared_names_differ_and_are_no_variables():
    first, second = identity(), identity()
    named = {"name": "a"}
    twice = [named | {"jaxpr": first}, named | {"jaxpr": second}] * 2
    text = str(calling(*twice))
    assert text.startswith("let a = { lambda ; b:f32[]. let c:f32[] = other b in (c,)")
    assert "let a1 = " in text


def test_shared_jaxprs_nest_without_exploding():
    jaxpr = identity()
    for _ in range(40):
        jaxpr = calling({"jaxpr": jaxpr}, {"jaxpr": jaxpr})
    assert str(jaxpr).count("let jaxpr") == 40


def test_other_parameters():
    jaxpr = calling(
        {"set": frozenset({2, 1}), "f": test_width, "dtype": np.dtype("i4")}
    )
    assert "dtype=int32" in str(jaxpr)
    assert "f=<function test_width at 0xXXXX" in str(jaxpr)
    assert "set=frozenset({1, 2})" in str(jaxpr)


@pytest.mark.parametrize(
    ("val", "text"),
    [
        (2.0, "2.0:f32[]"),
        (3, "3:i32[]"),
        (True, "True:bool[]"),
        (1 + 2j, "(1+2j):c64[]"),
        (float("-inf"), "-inf:f32[]"),
        (np.float32(0.1), "0.10000000149011612:f32[]"),
        (np.array(5, np.int8), "5:i8[]"),
    ],
)
def test_literals(val, text):
    assert Literal(val).spell({}) == text
