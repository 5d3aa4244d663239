"""References: arrays that can be written to, under all transformations.

A reference holds an immutable array; to write is to hold another one. A program that
is written down gets what references hold as inputs, and returns what they hold in the
end (state discharge), so that nothing in it changes.

References: ``jax.new_ref``, ``jax.ref``; ``jax._src.state.discharge``.
"""

# Made from chapters/28_indexing_rest.md by `make chapter`;
# edit the chapter, not this file.

from functools import partial
from types import SimpleNamespace
from typing import Any

from minijax import lax
from minijax.arrays.array import ArrayImpl, aval_rules, typeof
from minijax.batching.vmap import BatchTrace
from minijax.core import Array, EvalTrace, Tracer, current_trace
from minijax.custom_derivatives.custom_jvp_vjp import stop_gradient
from minijax.errors import UnexpectedTracerError
from minijax.jaxprs.jaxpr import JaxprTracer, eval_shape
from minijax.lax.arithmetic import astype
from minijax.numpy.array_creation import asarray
from minijax.numpy.operands import as_array
from minijax.pytrees.argument_checks import MutableReference, is_ref, lent_refs
from minijax.reverse_mode.backward_pass import DidntWant, DontWant, GradRef, GradValue
from minijax.typing import ArrayLike

# Brackets: what can be read and written as a whole can be indexed.


class Indexed:
    """What has `read` and `write`, with brackets around parts of it."""

    __slots__ = ()
    __iter__ = None  # it would have to promise an order of reads and writes

    def __getitem__(self, index):
        return get(self, index)

    def __setitem__(self, index, value):
        set(self, index, value)

    def __array__(self, *args, **kwargs):
        raise TypeError(f"{self!r} is no array; ref[...] reads one from it.")

    @property
    def at(self):
        """References to parts of it: ``ref.at[i][j]`` is ``ref[i][j]``."""
        return RefIndexer(self)

    def addupdate(self, value, index=...):
        """Add to elements; see `minijax.ref.addupdate`."""
        addupdate(self, index, value)


class RefIndexer:
    """Behind ``ref.at``: it takes the index in brackets."""

    __slots__ = ("ref",)

    def __init__(self, ref):
        self.ref = ref

    def __getitem__(self, index):
        return RefView(self.ref, index)


class RefView(Indexed):
    """A part of what a reference holds, read and written through it.

    Args:
      ref: a `Ref` or a `RefView`.
      index: an index of it.
    """

    __slots__ = ("index", "ref")

    def __init__(self, ref, index):
        self.ref, self.index = ref, index

    def __repr__(self):
        return f"RefView({self.ref!r}, {self.index!r})"

    def read(self):
        """Return the part, an array."""
        return get(self.ref, self.index)

    def write(self, value):
        """Replace the part."""
        set(self.ref, self.index, value)


def is_whole(index):
    """Return whether an index names all of an array as it is: ``...``, ``()``, ``:``"""
    items = index if isinstance(index, tuple) else (index,)
    return all(item is ... for item in items) or (
        isinstance(index, slice) and index == slice(None)
    )


def _check_bounds(shape, index):
    """Raise if an integer in front, known now, names no element."""
    items = index if isinstance(index, tuple) else (index,)
    for size, item in zip(shape, items):
        if type(item) is not int:
            return
        if not -size <= item < size:
            raise ValueError(f"Out of bound indexer: idx={item}, dim={size}.")


def _part(x, index):
    _check_bounds(typeof(x).shape, index)
    return x if is_whole(index) else x[index]


def _fitting(name, held, index, value):
    """Return a value as an array, if it may come to stand at an index."""
    value = as_array(value)
    if isinstance(current_trace(), EvalTrace):
        wanted = _part(held, index)
    else:
        wanted = eval_shape(lambda x: _part(x, index), held)  # it leaves no equation
    if value.dtype != wanted.dtype:
        raise ValueError(
            f"Invalid dtype for `{name}`. Ref dtype: {wanted.dtype}. Value dtype: "
            f"{value.dtype}. A reference keeps its dtype: convert the value with "
            "astype."
        )
    if value.shape != wanted.shape:
        raise ValueError(
            f"Invalid shape for `{name}`. Ref shape: {typeof(held).shape}. Expected "
            f"shape: {wanted.shape}. Value shape: {value.shape}. Values are not "
            "broadcast to a reference: jnp.full or jnp.broadcast_to make the shape."
        )
    return value


def _indexable(name, ref):
    if not isinstance(ref, Indexed):
        raise TypeError(f"{name} takes a reference of new_ref, not {ref!r}.")
    return ref.read()


def get(ref: Any, idx: Any = None) -> Array:
    """Return what a reference holds at an index: ``ref[idx]``.

    Args:
      ref: a `Ref`.
      idx: an index as NumPy has it; None stands for all.

    Raises:
      TypeError: if `ref` is no reference.
      ValueError: for an integer out of bounds, and for a reference that is not to be
        had here.

    Reference: ``jax.ref.get``.
    """
    return _part(_indexable("ref.get", ref), ... if idx is None else idx)


def set(ref: Any, idx: Any, value: ArrayLike) -> None:
    """Let a reference hold a value at an index: ``ref[idx] = value``.

    Args:
      ref: a `Ref`.
      idx: an index as NumPy has it; None stands for all.
      value: an array of the dtype and the shape of what is there.

    Raises:
      TypeError: if `ref` is no reference.
      ValueError: if dtype or shape are others, and if the value may not get there.

    Reference: ``jax.ref.set``.
    """
    held, idx = _indexable("ref.set", ref), ... if idx is None else idx
    value = _fitting("swap", held, idx, value)
    ref.write(value if is_whole(idx) else held.at[idx].set(value))


def swap(ref: Any, idx: Any, value: ArrayLike) -> Array:
    """Let a reference hold a value at an index, and return what was there.

    The arguments and the errors are those of `set`.

    Reference: ``jax.ref.swap``.
    """
    before = get(ref, idx)
    set(ref, idx, value)
    return before


def addupdate(ref: Any, idx: Any, x: ArrayLike) -> None:
    """Add to what a reference holds at an index: ``ref[idx] += x``.

    An element that is named twice is added to twice.

    The arguments and the errors are those of `set`.

    Reference: ``jax.ref.addupdate``.
    """
    held, idx = _indexable("ref.addupdate", ref), ... if idx is None else idx
    x = _fitting("addupdate", held, idx, x)
    ref.write(lax.add(held, x) if is_whole(idx) else held.at[idx].add(x))


# References, and where their arrays are to be found while programs are written down.


def _same_place(trace, other):
    both = isinstance(trace, EvalTrace) and isinstance(other, EvalTrace)
    return trace is other or both


def _holder(ref):
    """Return the trace in which a reference has its array now, and those inside it.

    It is the one that made it, or the innermost program that is being written down.
    """
    trace, inside = current_trace(), []
    while not _same_place(trace, ref._trace):
        if trace is None:
            raise UnexpectedTracerError(
                f"The reference {ref!r} is out of reach here: it was made inside of a "
                "transformed function that has ended, or whose rules are being run. "
                "Make references outside, and pass them as arguments."
            )
        if trace.stages:
            constants = getattr(trace, "constants", None)
            if getattr(constants, "states", None) is None:
                raise NotImplementedError(_NOT_THREADED.format(ref))
            return trace, inside
        inside.append(trace)
        trace = trace.parent
    return trace, inside


_NOT_THREADED = (
    "The reference {!r} is used in a program that cannot carry its array in and out: "
    "the function of a shard_map, a pmap or a custom rule, or a rule of a derivative "
    "inside of a scan or a branch. Pass what it holds as an argument, ref[...], and "
    "return what it is to hold."
)


def _check_escape(ref, value, inside):
    """Raise if a value may not get out to the trace that a reference belongs to."""
    if any(isinstance(trace, BatchTrace) for trace in inside):
        raise ValueError(
            "performing a set/swap operation under vmap on an unbatched array "
            f"reference of type {ref.str_short()}: all examples would write to one "
            "place. Move the array reference to be an argument to the vmapped function?"
        )
    if isinstance(value, Tracer) and value._trace in inside:
        raise ValueError(
            "performing a set/swap operation with a differentiated value on a "
            f"non-differentiated array reference of type {ref.str_short()}. Move the "
            "array reference to be an argument of the differentiated function? Or "
            "write stop_gradient of the value."
        )


class Ref(Indexed, MutableReference):
    """A reference: it holds an array, and may come to hold another of its type.

    `new_ref` makes one. ``ref[index]`` reads, ``ref[index] = value`` writes.

    Args:
      value: the array that it holds first.
      lent: whether it stands for a reference of a caller.
      kind: as in `new_ref`.

    Reference: ``jax.Ref``.
    """

    __slots__ = ("__weakref__", "_aval", "_kind", "_lent", "_trace", "_value")

    def __init__(self, value, lent=False, kind=None):
        self._trace, self._lent, self._kind = current_trace(), lent, kind
        self._value = astype(value, typeof(value).dtype)  # it is never weak
        self._aval = typeof(self._value)

    shape = property(lambda self: self._aval.shape)
    dtype = property(lambda self: self._aval.dtype)
    ndim = property(lambda self: len(self._aval.shape))
    size = property(lambda self: self._aval.size)
    sharding = property(lambda self: self.read().sharding)
    lasts = property(lambda self: isinstance(self._trace, EvalTrace))

    @classmethod
    def stand_in(cls, value):
        """Return a reference for a function that works on a caller's."""
        return cls(value, lent=True)

    def read(self):
        """Return the array that it holds here."""
        self._check_present()
        trace, _ = _holder(self)
        return self._value if _same_place(trace, self._trace) else self._state(trace)

    def write(self, value):
        """Let it hold another array from here on."""
        if value is self.read():
            return
        trace, inside = _holder(self)
        value = value if self._kind is None else stop_gradient(value)
        _check_escape(self, value, inside)
        value = astype(value, self.dtype)
        if _same_place(trace, self._trace):
            self._value = value
        else:
            trace.constants.states[self] = value  # which has read it: it has an input

    def _state(self, trace):
        """Return what it holds in a program, which gets it as an input."""
        states = trace.constants.states
        if self not in states:
            states[self] = JaxprTracer(trace, trace.constants.variable(self))
        return states[self]

    def _check_present(self):
        if self._value is None:
            raise ValueError(f"The reference {self.str_short()} was freed or frozen.")
        for loan in lent_refs.get():
            if any(ref is self for ref in loan.refs):
                loan.refuse_closure(self)

    def str_short(self):
        """Return its type in short."""
        return f"Ref{{{self._aval.str_short()}}}"

    def __len__(self):
        if not self.shape:
            raise TypeError("len() of unsized object")
        return self.shape[0]

    def __repr__(self):
        if self._value is None or isinstance(self._value, Tracer):
            return self.str_short()
        return repr(self._value).replace("Array", "Ref", 1)

    def __reduce__(self):
        return partial(new_ref, kind=self._kind), (self.read(),)


def _refuse_as_array(ref):
    raise TypeError(
        f"A {ref.str_short()} is a reference to an array, and no array: ref[...] reads "
        "one from it."
    )


aval_rules[Ref] = _refuse_as_array


def new_ref(init_val: Any, *, memory_space: Any = None, kind: Any = None) -> Ref:
    """Return a reference that holds an array.

    Args:
      init_val: an array or a number.
      memory_space: accepted for compatibility; there is one.
      kind: None, or ``"no_grad_no_remat"``: what is written to it has no derivative.

    Raises:
      TypeError: if `init_val` is no array or number.
      ValueError: for another `kind`.

    Reference: ``jax.new_ref``.
    """
    if kind not in (None, "no_grad_no_remat"):
        raise ValueError(f"new_ref: kind is None or 'no_grad_no_remat', not {kind!r}.")
    if is_ref(init_val):
        raise TypeError("new_ref: no references to references; pass ref[...].")
    own = isinstance(init_val, ArrayImpl)  # whose owner may give it up
    return Ref(asarray(init_val, copy=True) if own else as_array(init_val), kind=kind)


def empty_ref(ty: Any, memory_space: Any = None) -> Ref:
    """Return a reference for which it does not matter what it holds first: zeros.

    Args:
      ty: a `ShapeDtypeStruct`, or anything with a shape and a dtype.
      memory_space: accepted for compatibility.

    Raises:
      TypeError: if `ty` is nothing like that.

    Reference: ``jax.empty_ref``.
    """
    if not (hasattr(ty, "shape") and hasattr(ty, "dtype")):
        raise TypeError(f"empty_ref takes a type with a shape and a dtype, not {ty!r}.")
    return Ref(lax.full(ty.shape, 0, ty.dtype))


def freeze(ref: Ref) -> Array:
    """Return what a reference holds in the end; it is of no use any more.

    Args:
      ref: a `Ref` that was made in the same function, not an argument of it.

    Raises:
      TypeError: if it is no reference.
      ValueError: if it was made elsewhere, or has been frozen already.

    Reference: ``jax.freeze``.
    """
    value = _indexable("freeze", ref)
    if not isinstance(ref, Ref):
        raise TypeError(f"freeze takes a whole reference, not a part of one: {ref!r}.")
    if ref._lent or not _same_place(current_trace(), ref._trace):
        raise ValueError(
            f"The reference {ref!r} can be frozen or freed only by the function that "
            "made it. ref[...] reads it."
        )
    ref._value = None
    return value


def free_ref(ref: Ref) -> None:
    """Give up a reference; the errors are those of `freeze`.

    Reference: ``jax.free_ref``.
    """
    freeze(ref)


# The words for what is to become of a cotangent, and for what became of it.
ad = SimpleNamespace(
    GradValue=GradValue, GradRef=GradRef, DontWant=DontWant, DidntWant=DidntWant
)
