"""Calls for a derivative: which arguments vary, and what can be differentiated.

Each check raises a TypeError that names the leaf. The calls are instances of
`minijax.pytrees.api_util.FlatCall`.
"""

# Made from chapters/10_reverse_ground.md by `make chapter`;
# edit the chapter, not this file.

from collections.abc import Sequence

import numpy as np

from minijax._lazy import wraps
from minijax.arrays.array import ShapedArray, typeof
from minijax.arrays.dtypes import (
    dtype_name,
    float0,
    is_canonical_dtype,
    is_inexact,
    is_real_floating,
    tangent_dtype_of_primal,
)
from minijax.diagnostics.tracebacks import api_boundary
from minijax.lax.arithmetic import astype
from minijax.pytrees.api_util import FlatCall, flatten_like
from minijax.pytrees.argument_checks import resolve_argnums
from minijax.pytrees.registry import keystr
from minijax.pytrees.tree_operations import treedef_is_leaf
from minijax.pytrees.tree_util import tree_leaves_with_path


def one_like(x):
    """Return the scalar 1 in the dtype of `x`, and as weak as it."""
    aval = typeof(x)
    if not is_canonical_dtype(aval.dtype):
        return astype(1.0, aval.dtype, aval.weak_type)
    one = np.ones((), aval.dtype)
    return one.item() if aval.weak_type else one


def tree_per_argnum(call, argnums, leaves):
    """Return one tree like the argument, or a tuple of them if `argnums` is one."""
    trees = call.args_tree.unflatten(leaves)
    return trees if isinstance(argnums, Sequence) else trees[0]


def flatten_diff_args(name, fun, args, kwargs, argnums, has_aux, error=TypeError):
    """Return the `FlatCall` in which only the arguments at `argnums` vary.

    Args:
      error: the class of the error if there are not that many arguments.
    """
    positions = resolve_argnums(name, argnums, len(args), error=error)
    return FlatCall(
        name, fun, args, argnums=positions, constants=kwargs, has_aux=has_aux
    )


def named_after(what, fun, argnums):
    """Return a decorator that names a derived function after `fun`."""

    def decorate(derived):
        derived = wraps(fun)(derived)
        name = getattr(fun, "__name__", repr(fun))
        derived.__doc__ = (
            f"{what} of {name} with respect to the arguments at {argnums}; takes what "
            f"{name} takes."
        )
        return derived

    return decorate


def check_input_dtypes_grad(call, holomorphic, allow_int):
    """Raise unless the varying arguments are complex, or real, or may be integers."""
    for name, dtype in _inputs(call):
        if holomorphic:
            _require_complex(call, "inputs", name, dtype)
        elif not (allow_int or is_inexact(dtype)):
            raise TypeError(
                f"{call.name} requires real- or complex-valued inputs (input dtype "
                "that is a sub-dtype of np.inexact), but got "
                f"{dtype_name(dtype)} for {name}. Pass a float; or set allow_int=True, "
                "or use vjp, for a derivative of dtype float0."
            )


def check_input_dtypes_jacfwd(call, holomorphic):
    """Raise unless the varying arguments are all real, or all complex."""
    for name, dtype in _inputs(call):
        if holomorphic:
            _require_complex(call, "inputs", name, dtype)
        elif not is_real_floating(dtype):
            raise TypeError(
                f"{call.name} requires real-valued inputs (input dtype that is a "
                f"sub-dtype of np.floating), but got {dtype_name(dtype)} for {name}. "
                "For a holomorphic function pass holomorphic=True; for "
                "other complex inputs, or for integers, use jvp."
            )


def check_output_dtypes_revderiv(call, flat, holomorphic):
    """Raise unless the results `flat` of a call are all real, or all complex."""
    for name, dtype in _outputs(call, flat):
        if holomorphic:
            _require_complex(call, "outputs", name, dtype)
        elif not is_real_floating(dtype):
            raise TypeError(
                f"{call.name} requires real-valued outputs (output dtype that is a "
                f"sub-dtype of np.floating), but got {dtype_name(dtype)} for {name} of "
                f"{call.fun_name}. For a holomorphic function "
                "pass holomorphic=True; for other complex outputs, or for integers, "
                "use vjp."
            )


def check_output_dtypes_jacfwd(call, flat, holomorphic):
    """Raise unless the results `flat` of a call are complex, if they have to be."""
    for name, dtype in _outputs(call, flat):
        if holomorphic:
            _require_complex(call, "outputs", name, dtype)


def check_scalar_output(call, flat):
    """Raise unless the result `flat` of a call is one array without axes."""
    if call.num_outs != 1 or not treedef_is_leaf(call.out_tree):
        found = f"was {call.output(flat)!r}"
    elif typeof(flat[0]).shape:
        found = f"had shape: {typeof(flat[0]).shape}"
    else:
        return
    raise TypeError(
        f"Gradient only defined for scalar-output functions. Output {found}. It is "
        f"that of {call.fun_name}; for several outputs use jacrev, jacfwd or vjp."
    )


def _inputs(call):
    for i, aval in enumerate(call.avals):
        yield _Name(call.name_of, i), aval.dtype


def _outputs(call, flat):
    for i, out in enumerate(flat[: call.num_outs]):
        yield _Name(lambda i: f"result{call.out_name(i)}", i), typeof(out).dtype


class _Name:
    """A name that is worked out when it is printed: in errors only."""

    def __init__(self, name_of, i):
        self.name_of, self.i = name_of, i

    def __str__(self):
        return self.name_of(self.i)


def _require_complex(call, kind, name, dtype):
    if dtype.kind != "c":
        raise TypeError(
            f"{call.name} with holomorphic=True requires {kind} with complex dtype, "
            f"but got {dtype.name} for {name}."
        )


def is_float0(x):
    """Return whether `x` is an array of the empty dtype ``float0``."""
    return getattr(x, "dtype", None) == float0


class TreePullback:
    """A pullback that takes a tree of cotangents and returns a tuple of them.

    Args:
      kind: what it is called in messages: ``"vjp"`` or ``"transpose"``.
      call: the `FlatCall` of the function.
      out_avals: the abstract values of the function's results.
      error: the class of errors about cotangents.
    """

    def __init__(self, kind, call, out_avals, error):
        self.name = f"the {kind} function of {call.fun_name}"
        self.in_tree, self.out_tree = call.args_tree, call.out_tree
        self.out_avals, self.error = out_avals, error

    @api_boundary
    def __call__(self, pullback, *cotangents):
        """Check the cotangents, pull them back, put the arguments' together."""
        if len(cotangents) != 1:
            raise TypeError(
                f"{self.name} was called with {len(cotangents)} arguments, but takes "
                "one, a tree of cotangents like the function's result."
            )
        given, expected = f"the argument of {self.name}", "the function's result"
        if self.error is TypeError:  # of `linear_transpose`, which has its words
            given = f"cotangent tree does not match: {given}"
        leaves = flatten_like(self.out_tree, *cotangents, given, expected, self.error)
        for i, ct in enumerate(leaves):
            self._check(i, ct, leaves)
        pairs = zip(leaves, self.out_avals)
        flat = [None if self._dtype(y.dtype) == float0 else ct for ct, y in pairs]
        return self.in_tree.unflatten(pullback(flat))

    def _check(self, i, ct, leaves):
        given = ShapedArray(ct.shape, float0) if is_float0(ct) else typeof(ct)
        dtype = self._dtype(self.out_avals[i].dtype)
        fits = dtype in (given.dtype, float0)  # nothing comes of what is of float0
        if not fits or given.shape != self.out_avals[i].shape:
            path, _ = tree_leaves_with_path(self.out_tree.unflatten(leaves))[i]
            expected = self.out_avals[i].update(dtype=dtype)
            words = "cotangent type does not match: " * (self.error is TypeError)
            raise self.error(
                f"{words}{self.name}: unexpected JAX type for the cotangent of "
                f"result{keystr(path)}: it has to be of type "
                f"{aval_text(expected)}, because the result is of type "
                f"{aval_text(self.out_avals[i])}, but it is of type {aval_text(given)}."
            )

    def _dtype(self, dtype):
        return dtype if self.error is TypeError else tangent_dtype_of_primal(dtype)


def aval_text(aval):
    """Return a type as messages write it, such as ``float32[3]``."""
    name = "float0" if aval.dtype == float0 else aval.dtype.name
    return f"{name}[{','.join(map(str, aval.shape))}]"
