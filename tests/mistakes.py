"""Classic mistakes: functions that each make one, with the words that a message owes.

`MISTAKES` maps a title to a `Mistake`. Each is run here and under JAX; both messages
are recorded in `tests/data/mistakes.json`, from which `book/errors.md` is made.
"""

import inspect
import re
import traceback
import warnings
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


def quietly(j, run):
    """Make a mistake without the warnings that come before its error."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        run(j)


def report(j, run):
    """Return the traceback of a mistake as text, without the caller's own frame."""
    try:
        quietly(j, run)
    except Exception as error:
        error.__traceback__ = error.__traceback__.tb_next.tb_next
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

@mistake("model(1.0)", "self", "static_argnums=0", cause="`self` is an argument too.",
         cure="Make the object a pytree, or static, or jit a function of its arrays.")
def jitted_method(j):
    """A method under jit, with self."""

    class Model:
        @j.jit
        def __call__(self, x):
            return x * 2.0

    model = Model()
    model(1.0)


@mistake("f(1.0, 2.0)", "scale", cause="The call is not that of the function.",
         cure="A traced function is called as it is written.")
def missing_argument(j):
    """An argument is missing under jit."""
    f = j.jit(lambda x, y, scale: x * y * scale)
    f(1.0, 2.0)


@mistake("static_argnums=2)", "static_argnums", cause="There is no such parameter.",
         cure="static_argnums counts parameters from 0.")
def static_beyond(j):
    """static_argnums beyond the parameters."""
    j.jit(lambda x: x, static_argnums=2)


@mistake("j.jit(3.0)", "callable", cause="jit takes a function.",
         cure="Give the function, not its result.")
def jit_of_number(j):
    """jit of a number."""
    j.jit(3.0)


@mistake("x[x > 0]", "concrete", "jnp.where",
         cause="The length of the result is not known.",
         cure="`jnp.where(x > 0, x, 0.0)` keeps the shape.")
def mask_in_jit(j):
    """A boolean mask under jit."""
    j.jit(lambda x: x[x > 0])(ones(3))


@mistake("x.item()", "x", cause=NUMBER,
         cure="Return `x`, and ask for its number outside.")
def item_of_tracer(j):
    """item of a traced value."""
    j.jit(lambda x: x.item())(1.0)


@mistake("assert x > 0", "x", "jnp.where", cause=NUMBER,
         cure="Check before the call, or with `debug.callback`.")
def assert_on_tracer(j):
    """assert on a traced value."""

    @j.jit
    def root(x):
        assert x > 0
        return x**0.5

    root(2.0)


@mistake("if row > 0:", "row", "jnp.where", cause="vmap has all rows at once.",
         cure="`jnp.where` chooses for each row.")
def if_in_vmap(j):
    """if inside vmap."""

    def relu(row):
        if row > 0:
            return row
        return 0.0

    j.vmap(relu)(ones(3))


@mistake("j.numpy.arange(n)", "n", "static_argnums=0", cause=NUMBER, cure=MARK)
def arange_of_tracer(j):
    """arange of an argument."""
    j.jit(lambda n: j.numpy.arange(n))(3)


@mistake("print(x)", "deleted", "donate", cause="The memory of x was given away.",
         cure="Use the result of the call, or do not donate.")
def donated_buffer(j):
    """A donated array is used again."""
    step = j.jit(lambda x: x + 1.0, donate_argnums=0)
    x = j.numpy.ones(3)
    step(x)
    print(x)


@mistake("step(x)", "deleted", "donate", cause="The memory of x was given away.",
         cure="Use the result of the call, or do not donate.")
def donated_twice(j):
    """A donated array is donated again."""
    step = j.jit(lambda x: x + 1.0, donate_argnums=0)
    x = j.numpy.ones(3)
    y = step(x)
    step(x)
    return y


@mistake("f(1.0)", "defvjp", cause="A rule of one's own has to be given.",
         cure="`f.defvjp(forward, backward)`.")
def custom_vjp_without_rule(j):
    """A custom_vjp without its rules."""
    f = j.custom_vjp(lambda x: x * 2.0)
    f(1.0)


@mistake("j.grad(f)(1.0)", "forward", "pair",
         cause="The forward rule returns the result and the residuals.",
         cure="`return y, residuals`.")
def forward_without_pair(j):
    """A forward rule without residuals."""
    f = j.custom_vjp(lambda x: x * 2.0)

    def forward(x):
        return x * 2.0

    f.defvjp(forward, lambda kept, g: (g,))
    j.grad(f)(1.0)


@mistake("j.grad(f)(1.0, 2.0)", "backward", "tuple",
         cause="The backward rule returns one cotangent for each argument.",
         cure="A tuple as long as the arguments; None where there is none.")
def backward_length(j):
    """A backward rule with too few results."""
    f = j.custom_vjp(lambda x, y: x * y)

    def backward(kept, g):
        return (g,)

    f.defvjp(lambda x, y: (x * y, None), backward)
    j.grad(f)(1.0, 2.0)


@mistake("j.grad(f)(v)", "backward", "float32[3]",
         cause="A cotangent has the type of its argument.",
         cure="Sum over what the argument was broadcast to.")
def backward_shape(j):
    """A backward rule whose cotangent has another shape."""
    f = j.custom_vjp(lambda x: (x * x).sum())

    def backward(kept, g):
        return (g,)

    f.defvjp(lambda x: ((x * x).sum(), x), backward)
    v = ones(3)
    j.grad(f)(v)


@mistake("j.jvp(f, (1.0,), (1.0,))", "custom_vjp",
         cause="A rule for the backward direction says nothing of the forward one.",
         cure="`custom_jvp` serves both.")
def forward_of_custom_vjp(j):
    """jvp of a custom_vjp."""
    f = j.custom_vjp(lambda x: x * 2.0)
    f.defvjp(lambda x: (x * 2.0, None), lambda kept, g: (2.0 * g,))
    j.jvp(f, (1.0,), (1.0,))


@mistake("j.jvp(f, (1.0,), (1.0,))", "pushed", "pair",
         cause="The rule returns the result and its tangent.",
         cure="`return y, y_dot`.")
def custom_jvp_without_pair(j):
    """A custom_jvp rule without a pair."""
    f = j.custom_jvp(lambda x: x * 2.0)

    @f.defjvp
    def pushed(primals, tangents):
        return tangents[0] * 2.0

    j.jvp(f, (1.0,), (1.0,))


@mistake("j.jvp(f, (v,), (v,))", "pushed", cause="The tangent has another shape.",
         cure="It has the shape of the result.")
def custom_jvp_shape(j):
    """A custom_jvp rule whose tangent has another shape."""
    f = j.custom_jvp(lambda x: x * 2.0)

    @f.defjvp
    def pushed(primals, tangents):
        return f(primals[0]), tangents[0].sum()

    v = ones(3)
    j.jvp(f, (v,), (v,))


@mistake("j.vmap(f)(v, v)", "rule", "pair", "which parts are mapped",
         cause="The rule says which parts of its result are mapped.",
         cure="`return v * w, True`.")
def custom_vmap_without_pair(j):
    """A custom_vmap rule without a pair."""
    f = j.custom_batching.custom_vmap(lambda v, w: v * w)

    @f.def_vmap
    def rule(size, mapped, v, w):
        return v * w

    v = ones(3)
    j.vmap(f)(v, v)


@mistake("f('a', 1.0)", "custom_vmap", "argument v",
         cause="A function with a rule takes arrays.",
         cure="Give what is no array in a closure.")
def text_to_custom_vmap(j):
    """A string is given to a function with a rule."""
    f = j.custom_batching.custom_vmap(lambda v, w: w)
    f.def_vmap(lambda size, mapped, v, w: (w, mapped[1]))
    f('a', 1.0)


@mistake("j.grad(square)(2.0)", "square", "pair", "cotangent",
         cause="custom_gradient wants the result and the backward rule.",
         cure="`return x * x, lambda g: 2.0 * x * g`.")
def custom_gradient_without_pair(j):
    """A custom_gradient function without a pair."""

    @j.custom_gradient
    def square(x):
        return x * x

    j.grad(square)(2.0)


@mistake("j.closure_convert(f, 'a')", "argument x", "closure_convert",
         cause="The example arguments are arrays, or trees of them.",
         cure="Give an array of the right shape and dtype.")
def closure_of_text(j):
    """closure_convert with a string as an example."""

    def f(x):
        return x

    j.closure_convert(f, 'a')


@mistake("j.vmap(f, in_axes=1)(v)", "axis", cause="There is no such axis.",
         cure="in_axes is less than the number of axes of the argument.")
def vmap_axis_beyond(j):
    """A vmap over an axis that is not there."""
    v, f = ones(3), j.numpy.sin
    j.vmap(f, in_axes=1)(v)


@mistake("out_axes=None)(v)", "out_axes", cause="The result differs from row to row.",
         cure="`out_axes=0`, or a reduction over `axis_name`.")
def vmap_out_none(j):
    """out_axes=None for a mapped result."""
    v = ones(3)
    j.vmap(lambda x: x * 2.0, out_axes=None)(v)


@mistake("in_axes=None)(v)", "in_axes", cause="Nothing says how many rows there are.",
         cure="Map at least one argument, or give `axis_size`.")
def vmap_of_nothing(j):
    """A vmap in which nothing is mapped."""
    v = ones(3)
    j.vmap(lambda x: x, in_axes=None)(v)


@mistake("j.random.key(0.5)", "int", cause="A seed is an integer.", cure="`key(0)`.")
def float_seed(j):
    """A seed that is no integer."""
    j.random.key(0.5)


@mistake("j.random.normal((3,))", "key", cause="The first argument is a key.",
         cure="`normal(key, (3,))`.")
def forgotten_key(j):
    """A sampler without a key."""
    j.random.normal((3,))


@mistake("j.random.normal(seed)", "key", cause="An integer is a seed, and no key.",
         cure="`normal(key(3))`.")
def seed_as_key(j):
    """A seed in the place of a key."""
    seed = 3
    j.random.normal(seed)


@mistake("j.random.uniform(keys)", "keys", "vmap", cause="A sampler takes one key.",
         cure="`vmap(uniform)(keys)`.")
def several_keys(j):
    """Several keys in the place of one."""
    keys = j.random.split(j.random.key(0), 3)
    j.random.uniform(keys)


@mistake("j.random.randint(key, (-1, 3), 0, 6)", "(-1, 3)", "non-negative",
         cause="No array has fewer than no elements.",
         cure="A size is 0 or more; -1 has a meaning in `reshape` only.")
def negative_sample(j):
    """A sample of negative shape."""
    key = j.random.key(0)
    j.random.randint(key, (-1, 3), 0, 6)


@mistake("key + 1", "key", cause="A key is no number.", cure="`fold_in(key, 1)`.")
def sum_of_key(j):
    """Arithmetic with a key."""
    key = j.random.key(0)
    key + 1


@mistake("j.random.normal(key, (2, 1.5))", "1.5", cause="A length is an integer.",
         cure="`int(n)`, or `//`.")
def shape_of_floats(j):
    """A sample of a shape that is none."""
    key = j.random.key(0)
    j.random.normal(key, (2, 1.5))


@mistake("dtype=int)", "int32", "float", cause="A normal variable is a float.",
         cure="`randint` draws integers.")
def normal_of_integers(j):
    """A normal sample of integers."""
    key = j.random.key(0)
    j.random.normal(key, (2,), dtype=int)


@mistake("j.lax.scan(body", "carry", cause="The carry changes its structure.",
         cure="A step returns a carry that is built like the first one.")
def scan_carry_tree(j):
    """A scan whose carry changes its structure."""

    def body(c, x):
        return (c, x), None

    j.lax.scan(body, 0.0, ones(3))


@mistake("j.lax.scan(body", cause="A scalar has no rows.",
         cure="`xs` is an array, or a tree of arrays; what is constant is closed over.")
def scan_of_scalar(j):
    """A scan over a scalar."""

    def body(c, x):
        return c + x, None

    j.lax.scan(body, 0.0, 3.0)


@mistake("j.lax.cond(", cause="Both branches must return trees of one structure.",
         cure="Return a pair in both.")
def cond_trees(j):
    """A cond whose branches differ in structure."""
    j.lax.cond(True, lambda x: x, lambda x: (x, x), 1.0)


@mistake("j.lax.fori_loop(0, 3", cause="The carry changes its shape on the way.",
         cure="Start with a carry of the shape that a step returns.")
def fori_carry(j):
    """A fori_loop whose carry changes its shape."""
    v = ones(3)
    j.lax.fori_loop(0, 3, lambda i, c: c + v, 0.0)


@mistake("j.grad(halve)(9.0)", "while_loop", "scan",
         cause="A loop of unknown length keeps no list of its steps.",
         cure="`scan`, or `fori_loop` with known bounds.")
def grad_of_while(j):
    """The gradient of a while_loop."""

    def halve(x):
        return j.lax.while_loop(lambda c: c > 1.0, lambda c: c / 2.0, x)

    j.grad(halve)(9.0)


@mistake("a & b", "float32", cause="Floats have no bits to combine.",
         cure="Compare first: `(a > 0) & (b > 0)`.")
def bits_of_floats(j):
    """& between floats."""
    a, b = j.numpy.ones(3), j.numpy.ones(3)
    a & b


@mistake("x[1.5]", "x", cause="An index is an integer.", cure="`x[int(i)]`.")
def float_index(j):
    """An index that is a float."""
    x = j.numpy.ones(3)
    x[1.5]


@mistake("x.astype('float33')", "float33", cause="There is no such dtype.",
         cure="`jnp.float32`, or its name.")
def unknown_dtype(j):
    """A dtype that there is not."""
    x = j.numpy.ones(3)
    x.astype('float33')


@mistake("j.numpy.array(['a', 'b'])", cause="Arrays hold numbers.",
         cure="Keep text in a list.")
def array_of_text(j):
    """An array of text."""
    j.numpy.array(['a', 'b'])


@mistake("int(x)", "x", cause="An array of three numbers is no number.",
         cure="Index it, or reduce it.")
def int_of_array(j):
    """int of an array of several elements."""
    x = j.numpy.ones(3)
    int(x)


@mistake('f"{x:.3f}"', "format string", "debug.print",
         cause="A traced value has no digits while the program is written.",
         cure="`debug.print`, or return the value and print it outside.")
def formatted(j):
    """A traced value is formatted."""
    def loss(x):
        print(f"{x:.3f}")
        return x * x

    j.grad(loss)(2.0)


@mistake("x[:n]", "argument n", "dynamic_slice", "static_argnums=1",
         cause="The ends of a slice decide the shape of the result.",
         cure="`lax.dynamic_slice`, a mask, or a static argument.")
def traced_slice(j):
    """A slice that ends at an argument."""
    j.jit(lambda x, n: x[:n])(j.numpy.ones(3), 2)


@mistake("j.numpy.tri(n)", "argument n", "static_argnums=0",
         cause="The shape of a matrix is part of the program.",
         cure="Make the argument static.")
def traced_tri(j):
    """The size of a matrix is an argument."""
    j.jit(lambda n: j.numpy.tri(n))(3)


@mistake("value, aux =", "iteration over a 0-d array", "float32[]",
         cause="A scalar has no parts; perhaps `has_aux` was meant.",
         cure="Let the function return a pair.")
def unpacked(j):
    """A scalar result is unpacked."""
    loss = j.jit(lambda x: (x * x).sum())
    value, aux = loss(j.numpy.ones(3))


@mistake("policies.dot_saveable", "policy", "'dots_saveable'",
         cause="Policies are attributes of `checkpoint_policies`.",
         cure="The name that the message proposes.")
def unknown_policy(j):
    """A policy that there is not."""
    policies = j.checkpoint_policies
    j.checkpoint(j.numpy.sin, policy=policies.dot_saveable)


@mistake("j.grad(f)(z)", "complex", "holomorphic",
         cause="For complex functions there are two kinds of gradients.",
         cure="`holomorphic=True`, or a real loss.")
def grad_of_complex(j):
    """The gradient with respect to a complex number."""
    z, f = 1.0 + 2.0j, j.numpy.sin
    j.grad(f)(z)


# What JAX's own tests ask of these messages, as far as it is true here.
JAX_WORDS = {
    "has_aux without a pair": "two-element tuple",
    "The gradient with respect to a complex number":
        "grad requires real-valued outputs (output dtype that is a sub-dtype of "
        "np.floating), but got complex64",
    "A shape comes from an argument":
        "Shapes must be 1D sequences of concrete values of integer type, got",
    "The size of a matrix is an argument":
        "If using `jit`, try using `static_argnums` or applying `jit` to smaller "
        "subfunctions.",
    "A slice that ends at an argument": "Slice entries must be static integers",
    "A traced value is formatted": "unsupported format string passed to",
    "range of an argument": "The __index__() method was called on traced array",
    "if on a traced value": "Attempted boolean conversion of traced array",
    "A function of NumPy on a traced value":
        "The numpy.ndarray conversion method __array__() was called on traced "
        "array",
    "float of a traced value":
        "Abstract tracer value encountered where concrete value is expected",
    "A tracer leaks out of jit": "had a side effect",
    "A tracer leaks out of vmap": "Encountered an unexpected tracer",
    "A shape mismatch in a jitted loss":
        "dot_general requires contracting dimensions to have the same shape, got",
    "A sum of arrays that do not broadcast":
        "add got incompatible shapes for broadcasting: (3,), (4,)",
    "Different dtypes in lax": "lax.add requires arguments to have the same dtypes",
    "A concatenation of arrays that do not fit":
        "Cannot concatenate arrays with shapes that differ in dimensions other "
        "than the one being concatenated",
    "A reshape to another number of elements":
        "cannot reshape array of shape (3, 4) (size 12) into shape (5, 5) (size "
        "25)",
    "A sum over an axis that is not there":
        "axis 2 is out of bounds for array of dimension 2",
    "Assignment to an element":
        "are immutable and do not support in-place item assignment",
    "A list is given to a function of arrays":
        "sin requires ndarray or scalar arguments, got <class 'list'> at position "
        "0.",
    "A scan body that does not return a pair": "scan body output must be a pair, got",
    "A scan whose carry changes its dtype":
        "scan body function carry input and carry output must have equal types",
    "A scan over arrays of different lengths":
        "scan got values with different leading axis sizes: 2, 3",
    "A cond whose branches differ in dtype":
        "cond branches must have equal output types but they differ",
    "A cond on a vector": "Pred must be a scalar, got",
    "A while_loop whose carry changes its shape":
        "while_loop body function carry input and carry output must have equal "
        "types",
    "A while_loop whose test is no bool":
        "cond_fun must return a boolean scalar, but got output type(s)",
    "An array as a static argument": "Non-hashable static arguments",
    "The gradient of a vector":
        "Gradient only defined for scalar-output functions. Output had shape: "
        "(3,).",
    "The gradient with respect to an integer":
        "grad requires real- or complex-valued inputs (input dtype that is a "
        "sub-dtype of np.inexact), but got int32",
    "argnums beyond the arguments":
        "differentiating with respect to argnums=1 requires at least 2 positional "
        "arguments to be passed by the caller, but got only 1 positional "
        "arguments.",
    "A loss without return":
        "Gradient only defined for scalar-output functions. Output was",
    "A vmap over arrays of different sizes":
        "vmap got inconsistent sizes for array axes to be mapped",
    "in_axes of the wrong length":
        "vmap in_axes must be an int, None, or a tuple of entries corresponding "
        "to the positional arguments passed to the function",
    "A vmap over a scalar":
        "vmap was requested to map its argument along axis 0, which implies that "
        "its rank should be at least 1, but is only 0 (its shape is ())",
    "A tangent of the wrong shape":
        "jvp called with different primal and tangent shapes",
    "A collective over an axis that is not there": "unbound axis name: i",
    "A boolean mask under jit": "Array boolean indices must be concrete",
    "A vmap over an axis that is not there":
        "vmap was requested to map its argument along axis 1, which implies that "
        "its rank should be at least 2, but is only 1 (its shape is (3,))",
    "A vmap in which nothing is mapped":
        "vmap must have at least one non-None value in in_axes",
    "A scan whose carry changes its structure":
        "scan body function carry input and carry output must have the same "
        "pytree structure",
    "A scan over a scalar": "scan got value with no leading axis to scan over",
    "A cond whose branches differ in structure":
        "cond branch outputs must have the same pytree structure, but they differ",
    "The gradient of a while_loop":
        "Reverse-mode differentiation does not work for lax.while_loop or "
        "lax.fori_loop",
    "A fori_loop whose carry changes its shape":
        "body function carry input and carry output must have equal types",
}


def message(j, run):
    """Return the class of a mistake's error, and its message with the notes."""
    try:
        quietly(j, run)
    except Exception as error:
        notes = [n for n in getattr(error, "__notes__", ()) if "FILTERING" not in n]
        said = "\n".join([str(error), *notes]).split("\nSee http")[0]
        said = re.sub(r" at 0x\w+| with object id \d+", "", said)
        said = said.replace(f"{Path(__file__).parent}/", "")
        return type(error).__name__, said.strip()
    raise AssertionError(f"no error: {run.__doc__}")
