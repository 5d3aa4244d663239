# Made from chapters/11_jit.md by `make chapter`;
# edit the chapter, not this file.
"""Arrays given up: their memory may serve for something else.

Reference: ``donate_argnums`` of ``jax.jit``, ``jax.Array.delete``.
"""

import warnings
from contextlib import contextmanager

from minijax.array import ArrayImpl
from minijax.core import Tracer, methods
from minijax.errors import ConcretizationTypeError, JaxRuntimeError
from minijax.programs import dce_program


class DeletedArray(ArrayImpl):
    """An array without its numbers; its shape and dtype are still known."""

    __slots__ = ()

    def _refuse(self, *args):
        raise RuntimeError(
            f"Array has been deleted with shape={self.aval}. It was given to a program "
            "by donate_argnums or donate_argnames, or delete() was called."
        )

    _buffer = device = property(_refuse)
    block_until_ready = _refuse


def delete(x):
    """Give up the numbers of an array, and their memory."""
    if not is_deleted(x):
        x._buffer = None
        x.__class__ = DeletedArray


def is_deleted(x):
    """Return whether the numbers of an array have been given up."""
    if isinstance(x, Tracer):
        raise ConcretizationTypeError(f"{x!r} has no memory to give up.")
    return isinstance(x, DeletedArray)


methods["delete"] = delete
methods["is_deleted"] = is_deleted


def memory_given(closed, donated, keep_unused=False):
    """Return for each input of a program whether a result takes its memory.

    That is a result of the same shape and dtype; each takes that of one input.

    Args:
      closed: a `ClosedJaxpr`.
      donated: for each input whether it is donated.
      keep_unused: whether inputs that are not needed count as well.
    """
    _, needed = dce_program(closed, (True,) * len(closed.outvars))
    wanted, given = [(aval.shape, aval.dtype) for aval in closed.out_avals], []
    for flag, need, aval in zip(donated, needed, closed.in_avals, strict=True):
        kind = aval.shape, aval.dtype
        given.append(flag and (need or keep_unused) and kind in wanted)
        if given[-1]:
            wanted.remove(kind)
    return tuple(given)


def warn_of_useless(closed, donated, given):
    """Warn of inputs that are donated, and whose memory no result takes."""
    triples = zip(closed.in_avals, donated, given)
    useless = [str(aval) for aval, donate, taken in triples if donate and not taken]
    if useless:
        warnings.warn(
            f"Some donated buffers were not usable: {', '.join(useless)}. No result "
            "has their shape and dtype.",
            stacklevel=4,
        )


def check_given_once(given, operands):
    """Raise if an array is given up, and an operand of the same call besides."""
    ids = [id(x) for x in operands if isinstance(x, ArrayImpl)]
    for flag, x in zip(given, operands):
        if flag and ids.count(id(x)) > 1:
            raise JaxRuntimeError(
                f"An array of type {x.aval} is donated and is another argument of the "
                "same call: f(donate(a), a). Give a copy, or do not donate it."
            )


def give_up(given, operands, outs):
    """Delete the operands that are given up, and return the results.

    A result may be one of these operands; it gets a handle of its own.
    """
    arrays = [x for flag, x in zip(given, operands) if flag]
    arrays = [x for x in arrays if isinstance(x, ArrayImpl)]
    ids = {id(x) for x in arrays}
    outs = [
        ArrayImpl(out._buffer, out.aval, out.device) if id(out) in ids else out
        for out in outs
    ]
    for x in arrays:
        delete(x)
    return outs


@contextmanager
def losing(given, operands):
    """Give up operands if the program fails inside; some of it has run, perhaps."""
    try:
        yield
    except BaseException:
        give_up(given, operands, [])
        raise
