"""Checks: a primitive without results that raises, or that `checkify` discharges.

Reference: ``jax.experimental.checkify`` (``check``, ``debug_check``, ``check_error``).
"""

# Made from chapters/33_library_rest.md by `make chapter`;
# edit the chapter, not this file.

import itertools
from typing import Any

import numpy as np

from minijax import lax
from minijax import numpy as jnp
from minijax.arrays.array import shape_rules
from minijax.arrays.avals import typeof
from minijax.batching.rules import at_front, vmap_rules
from minijax.branches.selecting import PRINTING
from minijax.core import Array, Primitive, impl_rules
from minijax.diagnostics.user_lines import user_line
from minijax.emitted.emission import python_rules
from minijax.experimental.checkify.error_values import (
    BatchedError,
    Cause,
    FailedCheckError,
    Failure,
    JaxException,
)
from minijax.forgetting.programs import effect_rules
from minijax.forward.rules import constant_rule, jvp_rules
from minijax.jaxprs.printing import print_rules, write_plainly
from minijax.kernels.program_steps import kernel_rules
from minijax.pytrees.functions import tree_map
from minijax.pytrees.registration import register_pytree_node_class
from minijax.pytrees.treedefs import tree_flatten
from minijax.reverse.transposition import transpose_rules

ErrorCategory = type[JaxException]


check_codes = itertools.count(1)


class JaxRuntimeError(ValueError):
    """A check has failed, outside of a checkified function."""


@register_pytree_node_class
class Error:
    """An error value, as `checkify` returns it: a tree of arrays.

    Args:
      failures: from the name of a kind of failure to its `Failure`.
      causes: from the number of a check to its `Cause`.

    Reference: ``jax.experimental.checkify.Error``.
    """

    def __init__(self, failures: dict, causes: dict):
        self.failures, self.causes = failures, causes

    def get(self) -> str | None:
        """Return the message of the first check that has failed, None if none has."""
        exception = self.get_exception()
        return None if exception is None else str(exception)

    def get_exception(self) -> JaxException | None:
        """Return the first check that has failed as an exception, None if none has."""
        shapes = [np.shape(each.failed) for each in self.failures.values()]
        shape = max(shapes, key=len, default=())
        found = {at: self._at(at) for at in np.ndindex(*shape)}
        failed = {at: error for at, error in found.items() if error is not None}
        if shape and failed:
            return BatchedError(failed)
        return failed.get(())

    def _at(self, index):
        failed = [each for each in self.failures.values() if each.failed[index]]
        if not failed:
            return None
        first = min(failed, key=lambda each: int(each.code[index]))
        payload = [x[index] if index else x for x in first.payload]
        return self.causes[int(first.code[index])].exception(payload)

    def throw(self) -> None:
        """Raise the error, if there is one; in a checkified function, record it."""
        bind_check(self)

    def __str__(self):
        return f"Error({self.get()})"

    def tree_flatten(self):
        """Return the failures, and the causes as what is known beside them."""
        return (self.failures,), Causes(self.causes)

    @classmethod
    def tree_unflatten(cls, causes, children):
        """Return the error value of what `tree_flatten` returns."""
        return cls(children[0], {**causes})


class Causes(dict):
    """A dictionary that can be part of the structure of a tree."""

    def __hash__(self):  # type: ignore[override]
        return hash(frozenset(self))


init_error = Error({}, {})


check_p = Primitive("check")
CHECK_STAGED = (
    "Cannot abstractly evaluate a checkify.check which was not functionalized. This "
    "probably means you tried to stage (jit/scan/pmap/...) a `check` without "
    "functionalizing it through `checkify.checkify`."
)


def _raise_failed(*args, err_tree, debug):
    exception = None if debug else err_tree.unflatten(args).get_exception()
    if exception is not None:
        raise JaxRuntimeError(str(exception)) from exception
    return []


def _refuse_staged(eqn):
    if not eqn.params["debug"]:
        line = f"\n  {eqn.source.quoted}" if eqn.source else ""
        raise ValueError(CHECK_STAGED + line)
    return []


def _of_batch(axis, args, dims, err_tree, debug):
    fronts = [at_front(*pair, axis.size) for pair in zip(args, dims)]
    bind_check(first_of_batch(err_tree.unflatten(fronts)), debug)
    return [], []


def first_of_batch(error):
    """Return the error value of one example of a batch: of one that has failed."""

    def one(failure):
        at = jnp.argsort(failure.failed)[-1]
        return tree_map(lambda x: x[at], failure)

    failures = {name: one(each) for name, each in error.failures.items()}
    return Error(failures, error.causes)


def bind_check(error, debug=False):
    """Bind the primitive of an error value; of a batch, of one that has failed."""
    if any(typeof(each.failed).shape for each in error.failures.values()):
        error = first_of_batch(error)
    leaves, err_tree = tree_flatten(error)
    check_p.bind(*leaves, err_tree=err_tree, debug=debug)


impl_rules[check_p], shape_rules[check_p] = _raise_failed, lambda *avals, **params: []
jvp_rules[check_p], vmap_rules[check_p] = constant_rule(check_p), _of_batch
effect_rules[check_p] = lambda eqn: not eqn.params["debug"]
python_rules[check_p] = lambda writer, eqn, operands, results: _refuse_staged(eqn)
kernel_rules[check_p] = lambda lowering, eqn, *operands: _refuse_staged(eqn)
print_rules[check_p] = lambda eqn, writing: write_plainly(
    eqn, writing, {"debug": eqn.params["debug"]}
)
PRINTING.add(check_p)
_NO_RESULT = "It has no result, so no cotangent arrives."
transpose_rules.reasons[check_p] = _NO_RESULT


def failure_of(failed, kind, line, details, arrays):
    """Return the failure of a new check, as an error value.

    Args:
      failed: a boolean scalar.
      kind: a class of exceptions.
      line: the user's line, or None.
      details: what the exception is told besides arrays.
      arrays: a tree of arrays.
    """
    leaves, tree = tree_flatten(arrays)
    payload = [lax.convert_element_type(x, typeof(x).dtype) for x in leaves]
    types = ", ".join(typeof(x).update(weak_type=False).str_short() for x in payload)
    code = next(check_codes)
    failure = Failure(failed, jnp.asarray(np.int32(code)), tuple(payload))
    causes = {code: Cause(kind, line, details, tree)}
    return Error({f"{kind.__name__}({types})": failure}, causes)


def _checked_or_raised(name, pred, msg, args, kwargs, debug):
    scalar = isinstance(pred, Array) and (pred.shape, pred.dtype) == ((), bool)
    if not (isinstance(pred, bool) or scalar):
        raise TypeError(f"{name} takes a scalar pred as argument, got {pred}")
    for arg in tree_flatten((args, kwargs))[0]:
        if not isinstance(arg, (Array, np.ndarray)):
            raise TypeError(
                "Formatting arguments to checkify.check need to be PyTrees of arrays, "
                f"but got {arg!r} of type {type(arg)}."
            )
    failed = jnp.logical_not(pred)
    given = failed, FailedCheckError, user_line(), (msg,), (args, kwargs)
    bind_check(failure_of(*given), debug)


def check(
    pred: Any, msg: str, *fmt_args: Any, debug: bool = False, **fmt_kwargs: Any
) -> None:
    """Check that a predicate holds; raise, or let `checkify` return, an error if not.

    Args:
      pred: a boolean scalar.
      msg: the message, a format as for ``str.format``.
      *fmt_args, **fmt_kwargs: trees of arrays, for the format.
      debug: whether nothing is to be done where no `checkify` is around.

    Raises:
      JaxRuntimeError: if it does not hold, and no `checkify` is around.
      TypeError: if `pred` is no boolean scalar, or an argument of the format no array.
      ValueError: if it is compiled, and no `checkify` is around.

    Reference: ``jax.experimental.checkify.check``.
    """
    name = "debug_check" if debug else "check"
    _checked_or_raised(name, pred, msg, fmt_args, fmt_kwargs, debug)


def debug_check(pred: Any, msg: str, *fmt_args: Any, **fmt_kwargs: Any) -> None:
    """Check that a predicate holds, in a checkified function; elsewhere do nothing.

    Args:
      pred, msg, *fmt_args, **fmt_kwargs: as for `check`.

    Reference: ``jax.experimental.checkify.debug_check``.
    """
    _checked_or_raised("debug_check", pred, msg, fmt_args, fmt_kwargs, True)


def check_error(error: Error) -> None:
    """Raise an error value, if it has failed; in a checkified function, record it.

    Args:
      error: an `Error`.

    Raises:
      JaxRuntimeError: if it has failed, and no `checkify` is around.
      TypeError: if it is no `Error`.

    Reference: ``jax.experimental.checkify.check_error``.
    """
    if not isinstance(error, Error):
        raise TypeError(
            f"check_error takes an Error as argument, got type {type(error)} instead."
        )
    bind_check(error)
