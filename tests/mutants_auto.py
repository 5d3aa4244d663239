"""Faults of autojit, brought back one at a time; its battery has to notice each."""

from contextlib import contextmanager
from unittest.mock import patch

import numpy as np

from minijax.arrays.array import ShapedArray, typeof
from minijax.autojitting import autojit as operands
from minijax.autojitting import autojit as operations
from minijax.autojitting import autojit as recording
from minijax.autojitting import autojit as tiers


@contextmanager
def constants_for_ever():
    """A scalar stays the constant that it was when its step was new."""
    with patch.object(recording, "find_changing_scalars", lambda *args: None):
        yield


@contextmanager
def no_copies():
    """An array of NumPy is not copied when it is recorded."""

    def shared(x):
        x = np.asarray(x)
        buffer = x.view()
        return recording.ArrayImpl(buffer, typeof(x))

    with patch.object(operands, "as_array_impl", shared):
        yield


@contextmanager
def types_forgotten():
    """The types of arrays from outside are no part of a key."""
    arrive = recording.Operands.advance

    class Any(ShapedArray):
        """A type that is equal to all others of its rank."""

        __slots__ = ()

        def _key(self):
            return len(self.shape)

    def alike(self, x):
        aval = arrive(self, x)
        return Any(aval.shape, aval.dtype, aval.weak_type)

    with patch.object(recording.Operands, "advance", alike):
        yield


@contextmanager
def params_forgotten():
    """Parameters with the same names are the same."""
    with patch.object(recording, "cache_key_of_params", lambda params: tuple(params)):
        yield


@contextmanager
def kept_in_other_order():
    """The results that are kept are given out in another order."""

    def reversed_order(region):
        closed = closed_of(region)
        outvars = closed.jaxpr.outvars[::-1]
        return closed.replace(jaxpr=closed.jaxpr.replace(outvars=outvars))

    closed_of = tiers.closed_of
    with patch.object(tiers, "closed_of", reversed_order):
        yield


@contextmanager
def starts_not_clamped():
    """A dynamic slice whose start is known becomes a slice that is not clamped."""

    def loose(eqn):
        x, *starts = eqn.invars or [None]
        known = all(isinstance(start, operations.Literal) for start in starts)
        if eqn.primitive is not operations.dynamic_slice_p or not known:
            return eqn
        begins = [0 for _ in starts]
        limits = [*map(int, eqn.params["slice_sizes"])]
        params = {"start_indices": tuple(begins), "limit_indices": tuple(limits)}
        params["strides"] = None
        return eqn.replace(
            invars=[x], primitive=operations.lax.slice_p, params=params
        )  # fmt: skip

    with patch.object(tiers, "static_slice_eqn", loose):
        yield


@contextmanager
def donation_while_waiting():
    """A donated array is not taken away from its owner."""
    give_up = recording.donate_operands

    with patch.object(recording, "donate_operands", lambda given, args, outs: outs):
        yield
    assert give_up is recording.donate_operands


@contextmanager
def places_outlive_arrays():
    """An array is known by its place in memory, and not kept."""

    def arrive(self, x):
        name = before(self, x)
        self.inputs[-1] = recording.ArrayImpl(x._buffer, x.aval, x.placement)
        return name

    before = recording.Operands.advance
    with patch.object(recording.Operands, "advance", arrive):
        yield


MUTANTS = [
    constants_for_ever,
    no_copies,
    params_forgotten,
    types_forgotten,
    kept_in_other_order,
    starts_not_clamped,
    donation_while_waiting,
    places_outlive_arrays,
]
