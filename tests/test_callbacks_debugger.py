"""debug.breakpoint: a prompt with typed commands."""

import io

import numpy as np
import pytest

from minijax import debug, grad, jit, vmap
from minijax.errors import JaxRuntimeError

X = np.arange(3, dtype="float32")
OUTER = "a global"


def session(run, *typed, **options):
    """Return what a prompt wrote, when these commands were typed."""
    out = io.StringIO()
    commands = io.StringIO("\n".join([*typed, ""]))
    run({"stdin": commands, "stdout": out, **options})
    return out.getvalue().split("(jdb) ")[1:]


def program(wrap=lambda f: f, argument=2.0):
    def run(options):
        def f(x):
            doubled = {"twice": 2 * x, "word": "w"}
            debug.breakpoint(**options)  # it stops here
            return doubled["twice"]

        wrap(f)(argument)

    return run


def test_values_are_those_of_the_run():
    f = program(jit)
    assert session(f, "p x", "doubled['twice'] + x", "c")[:2] == [
        "Array(2., dtype=float32)\n",
        "Array(6., dtype=float32)\n",
    ]


@pytest.mark.parametrize("wrap", [lambda f: f, grad, lambda f: jit(grad(jit(f)))])
def test_under_transformations(wrap):
    [x, _] = session(program(wrap), "p float(x)", "c")
    assert x == "2.0\n"


def test_once_for_each_example():
    found = session(program(vmap, X), *["p float(x)", "c"] * 3)
    assert [x[:3] for x in found if x[:1].isdigit()] == ["0.0", "1.0", "2.0"]


def test_moving_between_frames():
    def outer(options):
        here = "outer"
        program()(options)
        return here

    texts = session(outer, "u", "u", "p here", "d", "d", "d", "c")
    assert "program()(options)" in texts[1] and texts[2] == "'outer'\n"
    assert texts[5].startswith("At bottommost frame.")
    texts = session(outer, "u", "c", num_frames=1)
    assert texts[0].startswith("At topmost frame.\n> ")


def test_where_and_list():
    where, listing, _ = session(program(), "where", "l", "c")
    assert where.startswith("Traceback:") and where.endswith("# it stops here\n")
    arrow = "->              debug.breakpoint(**options)  # it stops here\n"
    assert arrow in listing


def test_names_of_the_module_and_mistakes():
    texts = session(program(), "OUTER", "nothing", "1 //", "help", "", "c")
    assert texts[0] == "'a global'\n"
    assert texts[1] == "*** NameError: name 'nothing' is not defined\n"
    assert texts[2].startswith("*** SyntaxError")
    assert "up" in texts[3] and texts[4] == ""


@pytest.mark.parametrize("word", ["q", "exit", ""])
def test_quitting_ends_the_program(word):
    with pytest.raises(SystemExit):
        session(program(jit), *[word] * bool(word))


def test_frames_of_the_package_on_request():
    [where, _] = session(program(jit), "where", "c", filter_frames=False)
    [filtered, _] = session(program(jit), "where", "c")
    assert "jitting/api.py" in where and "jitting/api.py" not in filtered


def test_awkward_variables():
    def run(options):
        mixed, function = {1: "a", "b": 2}, lambda: None

        @jit
        def f(x):
            y = [mixed, function, x]
            debug.breakpoint(**options)
            return y[2]

        f(1.0)

    assert session(run, "y", "c")[0].startswith("[{1: 'a', 'b': 2}, <function")


def test_tokens():
    out = io.StringIO()

    @jit
    def f(x):
        x = debug.breakpoint(stdin=io.StringIO("p x\nc\n"), stdout=out, token=x)
        debug.breakpoint(stdin=io.StringIO("p 'unused'\nc\n"), stdout=out, token=x)
        return 2 * x

    assert float(f(3.0)) == 6.0
    assert "3." in out.getvalue() and "unused" not in out.getvalue()
    with pytest.raises(ValueError, match="mutually exclusive"):
        debug.breakpoint(token=1.0, ordered=True)


def test_errors_of_the_prompt_name_the_line():
    with pytest.raises(JaxRuntimeError, match="debug.callback: stop raised"):
        program(jit)({"stdin": 3})
