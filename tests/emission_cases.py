"""Programs for backends: every primitive, at every dtype it takes, and compositions.

Each is a triple ``(name, function, operands)``. A backend has to give what the
interpreter gives, bit by bit, which `compare` checks.

    python -m tests.emission_cases

runs them all in both widths, and prints how many agree.
"""

import sys
import warnings
from itertools import chain

import numpy as np

import minijax
from minijax import lax
from minijax.jitting.compilation import Interpreter, backends
from tests import array_cases as cases
from tests import control_corpus, corpus, forward_cases, transpose_cases
from tests.commands import reported

LITERALS = [0, 1, 2, -1, 3, 7]


def elementwise(name, every=1):
    """Programs of elementwise functions of operands of one dtype.

    Args:
      name: of the dtype.
      every: 1 for all scalars and literals, more for a part of them.
    """
    x = cases.specimen(name)
    y, numbers = np.roll(x, 1), cases.numbers((2, 3), name)
    for function in cases.UNARY:
        call = getattr(lax, function)
        yield f"{function} {name}", call, [x]
        yield f"{function} {name} of a matrix", call, [numbers.T]
        for element in x[::every]:
            yield f"{function} {name} of {element}", call, [np.asarray(element)]
    for function in cases.BINARY:
        call = getattr(lax, function)
        yield f"{function} {name}", call, [x, y]
        yield f"{function} {name} with a scalar", call, [x, y[-1:].reshape(())]
        yield f"{function} {name} of a row", call, [numbers, numbers[:1]]
        yield f"{function} {name} of views", call, [numbers.T, numbers[::-1].T]
        for one, other in zip(x[::every], y[::every]):
            scalars = [np.asarray(one), np.asarray(other)]
            yield f"{function} {name} of {one} and {other}", call, scalars
        for number in LITERALS[::every]:
            literal = np.asarray(number).astype(x.dtype)
            yield (
                f"{function} {name} with literal {number}",
                lambda x, call=call, literal=literal: call(x, literal),
                [x],
            )
            yield (
                f"{function} {name} of literal {number}",
                lambda x, call=call, literal=literal: call(literal, x),
                [np.asarray(x[-1])],
            )


def mixed(name):
    """Programs of other families, on operands of one dtype."""
    x, s = cases.numbers((3, 4), name), np.asarray(cases.numbers((3,), name)[2])
    p = np.asarray(cases.numbers((3, 4), "bool"))
    for function in cases.REDUCTIONS:
        call = getattr(lax, function)
        for shape, rest in cases.reductions(function):
            operand = cases.numbers(shape, name)
            yield (
                f"{function} {name} {shape}",
                lambda x, c=call, r=rest: c(x, *r),
                [operand],
            )
    for other in cases.DTYPES:
        dtype = cases.dtype_of(other)
        for operand in (cases.specimen(name), x.T, s):
            yield (
                f"convert {name} to {other}",
                lambda x, dtype=dtype: lax.convert_element_type(x, dtype),
                [operand],
            )
    yield f"select {name}", lax.select, [p, x, x[::-1]]
    yield f"select {name} by one", lax.select, [np.asarray(True), x, x[::-1]]
    yield f"select {name} of scalars", lax.select, [np.asarray(False), s, s]
    yield f"clamp {name}", lax.clamp, [s, x, x[0, 0].reshape(())]
    yield f"broadcast {name}", lambda s: lax.broadcast_in_dim(s, (2, 3), ()), [s]
    yield f"matrices {name}", lax.dot, [x, x.T]
    yield f"vectors {name}", lax.dot, [x[0], x[1]]
    yield f"sum of scalars {name}", lambda s: lax.reduce_sum(s, ()), [s]
    yield f"greatest scalar {name}", lambda s: lax.reduce_max(s, ()), [s]
    yield f"copy {name}", lambda x: lax.copy_p.bind(x), [x]
    yield f"sum of cotangents {name}", lambda x: lax.add_any_p.bind(x, x), [x]


def texts():
    """The programs of `array_cases`, on arguments instead of constants."""
    there = cases.environment(minijax, lax, lambda x: x)
    arrays = {
        name: x for name, x in there.items() if isinstance(x, (np.ndarray, float))
    }
    for text in cases.PROGRAMS:
        if "package" in text or "lax.broadcast_shapes" in text:
            continue

        def f(*values, text=text):
            return eval(text, {**there, **dict(zip(arrays, values))})

        yield text, f, list(arrays.values())


def compositions():
    """Small programs, and what transformations make of them."""
    tables = {**forward_cases.CASES, **transpose_cases.CASES}
    for name, (call, operands) in tables.items():
        yield name, lambda *xs, call=call: call(lax, *xs), operands
    for name, (call, operands) in forward_cases.CASES.items():
        yield (
            f"derivative of {name}",
            lambda x, *xs, call=call: minijax.jvp(
                lambda *xs: call(lax, *xs), (x, *xs), (x + x * x, *xs)
            ),
            operands,
        )
    for name, (f, point) in corpus_programs().items():
        for way, transform in WAYS.items():
            yield f"{way} of {name}", transform(f), [point]


def corpus_programs():
    """The programs of `tests.corpus` without loops and branches."""
    families = [
        (corpus.of_scalars, corpus.SCALAR),
        (corpus.of_vectors, corpus.VECTOR),
        (corpus.of_matrices, corpus.MATRIX),
    ]
    return {
        name: (f, point)
        for family, point in families
        for name, f in family(minijax, minijax.numpy).items()
    }


def _slope(f):
    return lambda x: minijax.jvp(f, (x,), (x,))[1]


def _pulled(f):
    def pulled(x):
        y, back = minijax.vjp(f, x)
        return back(y)[0]

    return pulled


WAYS = {
    "value": lambda f: f,
    "jvp": _slope,
    "vjp": _pulled,
    "vmap": lambda f: lambda x: minijax.vmap(lambda a: f(a * x))(np.array([1, 1.1])),
    "vjp of jvp": lambda f: _pulled(_slope(f)),
    "jit": minijax.jit,
}


def control():
    """Programs with loops and branches, and what transformations make of them."""
    wrappers = control_corpus.wrappers(minijax)
    families = [
        (control_corpus.of_scalars, corpus.SCALAR),
        (control_corpus.of_vectors, corpus.VECTOR),
        (control_corpus.of_matrices, corpus.MATRIX),
    ]
    for family, point in families:
        for name, f in family(minijax, minijax.numpy).items():
            for inner, wrap in {"": lambda f: f, **wrappers}.items():
                for way, transform in WAYS.items():
                    yield f"{way} of {inner} {name}", transform(wrap(f)), [point]


def written_down(f, operands):
    """Return the program of a function, or None if it refuses these types."""
    try:
        return minijax.make_jaxpr(f)(*operands)
    except (TypeError, ValueError):
        return None


def differences(executable, reference, operands):
    """Return what is wrong with an executable's results: an empty list if nothing.

    NaNs are alike; otherwise results agree in every bit, in dtype and weak type.
    """
    found = []
    for ours, wanted in zip(executable(*operands), reference(*operands), strict=True):
        if repr(ours.aval) != repr(wanted.aval) or ours._buffer.dtype != wanted.dtype:
            found.append(f"{ours.aval!r} instead of {wanted.aval!r}")
        a, b = np.asarray(ours), np.asarray(wanted)
        nan = (a != a) & (b != b)
        if a.shape != b.shape or not (same_bits(a, b) | nan).all():
            found.append(f"{a} instead of {b}")
    return found


def same_bits(a, b):
    """Return where two arrays of one dtype have the same bits."""
    bits = [
        np.ascontiguousarray(x).reshape(x.shape)[..., None].view("u1") for x in (a, b)
    ]
    return (bits[0] == bits[1]).all(-1)


def compare(name, f, operands, backend="python"):
    """Return whether a program is one, and what is wrong with it on a backend.

    The results of the emitted function itself have to be arrays of the right types, or
    scalars where there are no axes.
    """
    closed = written_down(f, operands)
    if closed is None:
        return False, []
    executable = backends[backend](closed)
    with minijax.config.override("minijax_backend", "interpreter"):
        found = differences(executable, Interpreter(closed), operands)
    buffers = [
        np.asarray(x).astype(v.aval.dtype)[()] for x, v in zip(operands, closed.invars)
    ]
    for out, aval in zip(executable.function(*buffers), closed.out_avals):
        kind = np.ndarray if aval.shape else np.generic
        if not isinstance(out, kind) or (out.shape, out.dtype) != (
            aval.shape,
            aval.dtype,
        ):
            found.append(f"a {type(out).__name__} of {out.dtype} for {aval}")
    return True, [f"{name}: {difference}\n{executable.text}" for difference in found]


def main():
    """Compare all programs in both widths; 1 if something differs."""
    compared, wrong = 0, []
    for wide in (False, True):
        with minijax.enable_x64(wide), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            groups = [elementwise(name) for name in cases.DTYPES]
            groups += [*map(mixed, cases.DTYPES), texts(), compositions(), control()]
            for program in chain.from_iterable(groups):
                taken, found = compare(*program)
                compared, wrong = compared + taken, wrong + found
    return reported(f"{compared} programs", wrong)


if __name__ == "__main__":
    sys.exit(main())
