"""Classic mistakes: functions that each make one, with the words that a message owes.

`MISTAKES` maps a title to a `Mistake`. Each is run here and under JAX; both messages
are recorded in `tests/data/mistakes.json`, from which `book/errors.md` is made.
"""

import inspect
import re
import traceback
from pathlib import Path
from typing import NamedTuple

import numpy as np


class Mistake(NamedTuple):
    """A mistake: `run(j)` makes it in the namespace `j`, minijax or JAX.

    Attributes:
      guilty: a piece of the line at fault.
      says: what our report has to contain: the argument, the remedy.
      cause, cure: one sentence each, for the page.
    """

    run: object
    guilty: str
    says: tuple
    cause: str
    cure: str


MISTAKES = {}


def mistake(guilty, *says, cause, cure):
    """Enter a function into the table; its docstring is the title."""

    def enter(run):
        MISTAKES[run.__doc__.rstrip(".")] = Mistake(run, guilty, says, cause, cure)
        return run

    return enter


def report(j, run):
    """Return the traceback of a mistake as text, without the caller's own frame."""
    try:
        run(j)
    except Exception as error:
        error.__traceback__ = error.__traceback__.tb_next
        return type(error), "".join(traceback.format_exception(error))
    raise AssertionError(f"no error: {run.__doc__}")


def source(run):
    """Return the body of a mistake, for the page."""
    lines = inspect.getsource(run).splitlines()
    start = next(i for i, line in enumerate(lines) if '"""' in line) + 1
    return inspect.cleandoc("\n" + "\n".join(lines[start:]))


def ones(*shape):
    """Return ones of NumPy, which both packages take."""
    return np.ones(shape, np.float32)


STATIC = "jit writes a program for arrays; any other argument must be static."
MARK = "Mark the argument with `static_argnums` or `static_argnames`."
NUMBER = "While a program is written, a tracer has a shape and a dtype but no numbers."
SHAPE = "The shapes of the operands do not fit."


@mistake("act(1.0, 'sin')", "kind", "static_argnums=1", cause=STATIC, cure=MARK)
def text_to_jit(j):
    """A string is given to jit."""
    act = j.jit(lambda x, kind: j.numpy.sin(x) if kind == "sin" else x)
    act(1.0, 'sin')


@mistake("act(1.0, object())", "thing", "static_argnums=1", cause=STATIC, cure=MARK)
def object_to_jit(j):
    """An object is given to jit."""
    act = j.jit(lambda x, thing: x)
    act(1.0, object())


@mistake("j.numpy.zeros(n)", "argument n", "static_argnums=0", cause=NUMBER, cure=MARK)
def shape_from_argument(j):
    """A shape comes from an argument."""
    j.jit(lambda n: j.numpy.zeros(n))(3)


@mistake("range(n)", "n", "static_argnums=0", cause=NUMBER,
         cure="Make `n` static, or count in the program with `lax.fori_loop`.")
def range_of_tracer(j):
    """range of an argument."""
    j.jit(lambda n: [2 * i for i in range(n)])(3)


@mistake("if y > 0:", "x", "lax.cond", "jnp.where", cause=NUMBER,
         cure="`jnp.where` chooses between values, `lax.cond` between computations.")
def if_on_tracer(j):
    """if on a traced value."""

    @j.jit
    def relu(x):
        y = x * 2.0
        if y > 0:
            return y
        return 0.0

    relu(1.0)


@mistake("while x < 10:", "x", "jnp.where", cause=NUMBER,
         cure="`lax.while_loop` repeats in the program.")
def while_on_tracer(j):
    """while on a traced value."""

    @j.jit
    def double(x):
        while x < 10:
            x = x * 2.0
        return x

    double(1.0)


@mistake("x > 0 and x < 1", "x", "jnp.where", cause=NUMBER,
         cure="`&` is the logical and of arrays.")
def and_on_tracers(j):
    """and between traced values."""
    j.jit(lambda x: x > 0 and x < 1)(0.5)


@mistake("float(x)", "x", "astype", cause=NUMBER, cure="`x.astype(float)`.")
def float_of_tracer(j):
    """float of a traced value."""
    j.jit(lambda x: float(x) * 2)(1.0)


@mistake("int(x)", "x", "astype", cause=NUMBER, cure="`x.astype(int)`.")
def int_of_tracer(j):
    """int of a traced value."""
    j.jit(lambda x: int(x))(1.0)


@mistake("np.sin(x)", "x", "minijax.numpy", cause="NumPy wants numbers at once.",
         cure="Use the function of the same name in `jax.numpy`.")
def numpy_on_tracer(j):
    """A function of NumPy on a traced value."""
    j.jit(lambda x: np.sin(x))(1.0)


@mistake("[10, 20][i]", "i", "static_argnums=0", cause=NUMBER,
         cure="Make the list an array, or the index static.")
def list_index(j):
    """A traced value as the index of a list."""
    j.jit(lambda i: [10, 20][i])(1)


@mistake("kept[0] + 1", "jit of", "y = j.numpy.sin(x)",
         cause="A tracer was stored outside of the function, and used later.",
         cure="Return the value.")
def leaked_from_jit(j):
    """A tracer leaks out of jit."""
    kept = []

    @j.jit
    def f(x):
        y = j.numpy.sin(x)
        kept.append(y)
        return y

    f(1.0)
    kept[0] + 1


@mistake("kept[0] * 2.0", "grad", cause="A tracer was stored, and used later.",
         cure="Return the value, with `has_aux=True`.")
def leaked_from_grad(j):
    """A tracer leaks out of grad."""
    kept = []

    def f(x):
        kept.append(x * 3.0)
        return x

    j.grad(f)(1.0)
    kept[0] * 2.0


@mistake("kept[0] - 1.0", "vmap", cause="A tracer was stored, and used later.",
         cure="Return the value.")
def leaked_from_vmap(j):
    """A tracer leaks out of vmap."""
    kept = []
    j.vmap(lambda x: kept.append(x) or x)(ones(3))
    kept[0] - 1.0


@mistake('h @ w["out"]', "h: float32[8,4]", "w['out']: float32[5,2]", "tanh",
         cause=SHAPE, cure="The sizes of the axes that are summed over must agree.")
def mismatch_in_loss(j):
    """A shape mismatch in a jitted loss."""

    def predict(w, x):
        h = j.numpy.tanh(x @ w["in"])
        return h @ w["out"]

    def loss(w, x, y):
        return ((predict(w, x) - y) ** 2).sum()

    w = {"in": ones(3, 4), "out": ones(5, 2)}
    j.jit(j.value_and_grad(loss))(w, ones(8, 3), ones(8, 2))


@mistake("a + b", "a: float32[3]", "b: float32[4]", cause=SHAPE,
         cure="Axes broadcast from the right; a size of 1 stretches.")
def add_of_shapes(j):
    """A sum of arrays that do not broadcast."""
    a, b = j.numpy.ones(3), j.numpy.ones(4)
    a + b


@mistake("row * column", "row: float32[4]", cause=SHAPE,
         cure="Inside vmap an array has one axis less.")
def shapes_in_vmap(j):
    """A product of rows that do not fit, inside vmap."""
    column = ones(3)
    j.vmap(lambda row: row * column)(j.numpy.ones((2, 4)))


@mistake("j.lax.add(a, b)", "float32[3]", "int32[3]",
         cause="The functions of `lax` do not promote dtypes.",
         cure="Use `jax.numpy`, or convert one of the operands.")
def dtypes_in_lax(j):
    """Different dtypes in lax."""
    a, b = ones(3), np.arange(3, dtype="int32")
    j.jit(lambda a, b: j.lax.add(a, b))(a, b)


@mistake("j.numpy.concatenate([a, b])", "a: float32[2,3]", cause=SHAPE,
         cure="All axes but the joined one must agree.")
def concatenate_shapes(j):
    """A concatenation of arrays that do not fit."""
    a, b = j.numpy.ones((2, 3)), j.numpy.ones((2, 4))
    j.numpy.concatenate([a, b])


@mistake("x.reshape(5, 5)", "x: float32[3,4]",
         cause="The sizes before and after differ.", cure="-1 stands for what fits.")
def reshape_sizes(j):
    """A reshape to another number of elements."""
    x = j.numpy.ones((3, 4))
    x.reshape(5, 5)


@mistake("x.sum(axis=2)", "x: float32[3,4]", cause="There is no such axis.",
         cure="Axes are counted from 0, or from the end with negative numbers.")
def missing_axis(j):
    """A sum over an axis that is not there."""
    x = j.numpy.ones((3, 4))
    x.sum(axis=2)


@mistake("x[0] = 1.0", ".at", cause="Arrays are immutable.", cure="`x.at[0].set(1.0)`.")
def assignment(j):
    """Assignment to an element."""
    x = j.numpy.ones(3)
    x[0] = 1.0


@mistake("j.numpy.sin([1.0, 2.0])", "list", cause="A list is no array.",
         cure="`jnp.array` makes one.")
def list_as_array(j):
    """A list is given to a function of arrays."""
    j.numpy.sin([1.0, 2.0])


@mistake("j.lax.scan(body", "body", "pair",
         cause="A step of a scan returns the carry and a row of the results.",
         cure="`return carry, None`.")
def scan_without_pair(j):
    """A scan body that does not return a pair."""

    def body(c, x):
        return c + x

    j.lax.scan(body, 0.0, ones(3))


@mistake("j.lax.scan(body", "carry", cause="The carry changes its type on the way.",
         cure="Start with a carry of the type that a step returns.")
def scan_carry_type(j):
    """A scan whose carry changes its dtype."""

    def body(c, x):
        return c + x, None

    j.lax.scan(body, np.zeros((), np.int32), ones(3))


@mistake("j.lax.scan(body", "2", "3", cause="The arrays have no common length.",
         cure="All leaves of `xs` have the same first axis.")
def scan_lengths(j):
    """A scan over arrays of different lengths."""

    def body(c, x):
        return c, x[0]

    j.lax.scan(body, 0.0, (ones(2), ones(3)))


@mistake("j.lax.cond(", cause="Both branches must return the same types.",
         cure="Convert the result of one of them.")
def cond_types(j):
    """A cond whose branches differ in dtype."""
    j.lax.cond(True, lambda x: x, lambda x: x > 0, 1.0)


@mistake("j.lax.cond(", cause="The predicate of a cond is a scalar.",
         cure="`jnp.where` takes an array of tests.")
def cond_of_vector(j):
    """A cond on a vector."""
    j.lax.cond(ones(3) > 0, lambda x: x, lambda x: x, 1.0)


@mistake("j.lax.while_loop(", cause="The carry changes its shape on the way.",
         cure="Start with a carry of the shape that a step returns.")
def while_carry(j):
    """A while_loop whose carry changes its shape."""
    v = ones(3)
    j.lax.while_loop(lambda c: c.sum() < 9, lambda c: c + v, 0.0)


@mistake("j.lax.while_loop(", cause="The test returns no bool.",
         cure="Compare: `c > 0`.")
def while_test(j):
    """A while_loop whose test is no bool."""
    j.lax.while_loop(lambda c: c, lambda c: c - 1.0, 3.0)


@mistake("f(1.0, array)", "n", "static", cause="A static argument needs a hash.",
         cure="An array varies: give it as an ordinary argument.")
def static_array(j):
    """An array as a static argument."""
    f = j.jit(lambda x, n: x * n, static_argnums=1)
    array = j.numpy.ones(3)
    f(1.0, array)


@mistake("f(1.0, [1, 2])", "n", "tuple", cause="A static argument needs a hash.",
         cure="Give a tuple.")
def static_list(j):
    """A list as a static argument."""
    f = j.jit(lambda x, n: x * len(n), static_argnums=1)
    f(1.0, [1, 2])


@mistake("has_aux=True)(1.0)", "pair", cause="With `has_aux` a pair is returned.",
         cure="Return `(result, aux)`, or drop `has_aux`.")
def aux_without_pair(j):
    """has_aux without a pair."""
    j.value_and_grad(lambda x: x, has_aux=True)(1.0)


@mistake("j.grad(f)(v)", "scalar", "(3,)", cause="grad is for scalar functions.",
         cure="Sum the results, or use `jacrev`.")
def grad_of_vector(j):
    """The gradient of a vector."""
    v, f = ones(3), j.numpy.sin
    j.grad(f)(v)


@mistake("j.grad(f)(3)", "int32", "allow_int", cause="Integers have no derivative.",
         cure="Give a float: `3.0`.")
def grad_of_integer(j):
    """The gradient with respect to an integer."""
    f = lambda x: x * 2.0  # noqa: E731
    j.grad(f)(3)


@mistake("argnums=1)(1.0)", "argnums", cause="The call has fewer arguments.",
         cure="argnums counts positional arguments from 0.")
def grad_argnums(j):
    """argnums beyond the arguments."""
    j.grad(lambda x: x, argnums=1)(1.0)


@mistake("j.grad(f)(1.0)", "scalar", cause="The function returns nothing.",
         cure="`return` the result.")
def grad_of_nothing(j):
    """A loss without return."""

    def f(x):
        x * 2.0

    j.grad(f)(1.0)


@mistake("j.vmap(f)(a, b)", "2", "3", cause="The mapped axes have different sizes.",
         cure="`in_axes=(0, None)` maps over the first argument alone.")
def vmap_sizes(j):
    """A vmap over arrays of different sizes."""
    a, b = ones(2), ones(3)
    f = lambda a, b: a + b  # noqa: E731
    j.vmap(f)(a, b)


@mistake("in_axes=(0, 0))(a)", "in_axes", cause="One axis per argument.",
         cure="in_axes is an integer, or as long as the arguments.")
def vmap_axes(j):
    """in_axes of the wrong length."""
    a = ones(2)
    j.vmap(lambda a: a, in_axes=(0, 0))(a)


@mistake("j.vmap(f)(1.0)", cause="A scalar has no axis to map over.",
         cure="`in_axes=None` for what is not mapped.")
def vmap_scalar(j):
    """A vmap over a scalar."""
    f = lambda x: x  # noqa: E731
    j.vmap(f)(1.0)


@mistake("pullback(wrong)", "float32", cause="The cotangent has another shape.",
         cure="It has the shape of the result.")
def pullback_shape(j):
    """A cotangent of the wrong shape."""
    _, pullback = j.vjp(j.numpy.sin, ones(3))
    wrong = ones(4)
    pullback(wrong)


@mistake("j.jvp(f, (v,), (t,))", "(3,)", "(4,)", cause="The tangent has another shape.",
         cure="It has the shape of the primal.")
def tangent_shape(j):
    """A tangent of the wrong shape."""
    v, t, f = ones(3), ones(4), j.numpy.sin
    j.jvp(f, (v,), (t,))


@mistake("j.lax.psum(x, 'i')", "i", cause="No vmap around has an axis of this name.",
         cure="`vmap(..., axis_name='i')`.")
def unbound_axis(j):
    """A collective over an axis that is not there."""
    j.jit(lambda x: j.lax.psum(x, 'i'))(1.0)


@mistake("tree_map(add, a, b)", "x", cause="The trees have different keys.",
         cure="Trees that are mapped together have one structure.")
def tree_keys(j):
    """tree_map over different trees."""
    a, b = {"x": 1}, {"y": 1}
    add = lambda a, b: a + b  # noqa: E731
    j.tree_util.tree_map(add, a, b)


@mistake("f(1.0)", "str", cause="A jitted function returns arrays.",
         cure="Return numbers, and print the text outside.")
def text_from_jit(j):
    """A jitted function returns a string."""
    f = j.jit(lambda x: "done")
    f(1.0)


@mistake("j.numpy.tanhh(3.0)", "tanh", cause="A slip of the pen.",
         cure="The name that is most like it is noted.")
def missing_name(j):
    """A name that there is not."""
    j.numpy.tanhh(3.0)


@mistake("{x: 1}", "hash", cause="An array is compared element by element.",
         cure="Use a number: `x.item()`.")
def array_as_key(j):
    """An array as the key of a dictionary."""
    x = j.numpy.ones(())
    table = {x: 1}
    del table


@mistake("if x:", "ambiguous", cause="An array has many truths.",
         cure="`x.any()` or `x.all()`.")
def truth_of_array(j):
    """if on an array of several elements."""
    x = j.numpy.ones(3)
    if x:
        pass


def message(j, run):
    """Return the class of a mistake's error, and its message with the notes."""
    try:
        run(j)
    except Exception as error:
        notes = [n for n in getattr(error, "__notes__", ()) if "FILTERING" not in n]
        said = "\n".join([str(error), *notes]).split("\nSee http")[0]
        said = re.sub(r" at 0x\w+", "", said).replace(f"{Path(__file__).parent}/", "")
        return type(error).__name__, said.strip()
    raise AssertionError(f"no error: {run.__doc__}")
