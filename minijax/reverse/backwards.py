"""Reverse mode: a linear program runs backwards, from cotangents to cotangents.

Reference: ``jax.vjp``, ``jax.linear_transpose``; Radul et al., *You Only Linearize
Once: Tangents Transpose to Gradients* (POPL 2023).
"""

# Made from chapters/10_reverse.md by `make chapter`;
# edit the chapter, not this file.

from collections.abc import Callable
from typing import Any

from minijax.arrays.avals import ShapedArray, typeof
from minijax.arrays.dtypes import float0, is_inexact, tangent_dtype
from minijax.diagnostics.tracebacks import guarded
from minijax.diagnostics.user_lines import readers
from minijax.forward.rules import add_tangents
from minijax.jaxprs.jaxpr import Literal
from minijax.jaxprs.latest import fitted
from minijax.linear.linearization import linearize_flat
from minijax.operators.operands import as_array
from minijax.pytrees.api_util import FlatCall, flatten_like
from minijax.pytrees.call_checks import zeros_of_tangent
from minijax.pytrees.key_paths import keystr
from minijax.pytrees.registration import Partial
from minijax.pytrees.treedefs import tree_leaves_with_path
from minijax.reverse.transpose_rules import transpose_eqn
from minijax.reverse.transposition import Linear


class Totals(dict):
    """The cotangents that have arrived so far: from variables to sums."""

    def add(self, atom, ct):
        """Add an array, or None for zero, to what has arrived at `atom`."""
        if ct is not None and not isinstance(atom, Literal):
            ct = fitted.value(ct, atom)
            self[atom] = add_tangents(self.get(atom), ct)

    def take(self, variables):
        """Return what has arrived at `variables`, and forget it."""
        return [self.pop(variable, None) for variable in variables]


def linear_eqns(jaxpr, consts, operands):
    """Evaluate what can be evaluated of a jaxpr, and list what cannot.

    Args:
      jaxpr: a `Jaxpr`.
      consts: the values of its constants.
      operands: for each input its value, or a `Linear`.

    Returns:
      A list of ``(eqn, operands)`` for each equation with a `Linear` operand, in order.
    """
    env = dict(zip(jaxpr.constvars, consts)) | dict(zip(jaxpr.invars, operands))
    linear = []
    for eqn in jaxpr.eqns:
        xs = [x.value if isinstance(x, Literal) else env[x] for x in eqn.invars]
        if any(isinstance(x, Linear) for x in xs):
            linear.append((eqn, xs))
            results = [Linear(var.aval) for var in eqn.outvars]
        else:
            results = eqn.primitive.bind(*xs, **eqn.params)
        env.update(zip(eqn.outvars, results))
    return linear


def backward_pass(jaxpr, consts, operands, cotangents):
    """Transpose a jaxpr: send cotangents from its results to its linear inputs.

    The equations are transposed from the last to the first. When the turn of one comes,
    all equations that use its results are done, so their cotangents are complete.

    Args:
      jaxpr: a `Jaxpr`, linear in those inputs that are `Linear` in `operands`.
      consts: the values of its constants.
      operands: for each input its value, or a `Linear`.
      cotangents: for each result an array, or None for zero.

    Returns:
      For each input an array of its shape, or None: zero, or not linear.
    """
    totals = Totals()
    for atom, ct in zip(jaxpr.outvars, cotangents, strict=True):
        totals.add(atom, ct)
    for eqn, xs in reversed(linear_eqns(jaxpr, consts, operands)):
        cts = totals.take(eqn.outvars)
        if any(ct is not None for ct in cts):
            arrived = transpose_eqn(eqn, cts, xs)
            for atom, ct in zip(eqn.invars, arrived, strict=True):
                totals.add(atom, ct)
    arrived = totals.take(jaxpr.invars)
    return [ct if isinstance(x, Linear) else None for ct, x in zip(arrived, operands)]


def vjp_flat(f, primals, num_outs=None):
    """Run a function forwards, and get ready to run its derivative backwards.

    Args:
      f: a function from arrays to a list: its results, perhaps followed by other data.
      primals: list of arrays and scalars.
      num_outs: a function that returns, once `f` has run, how many of the items are
        results; without it, all are.

    Returns:
      The list that `f` returned, and a function from the list of the cotangents of the
      results (None for zero) to that of the cotangents of `primals`, all arrays.
    """
    avals = list(map(typeof, primals))
    moving = [i for i, aval in enumerate(avals) if is_inexact(aval.dtype)]
    outs, jaxpr, consts = linearize_flat(f, primals, num_outs)
    return outs, Partial(Pullback(jaxpr, moving, avals), consts)


class Pullback:
    """A linear program that is run backwards.

    Args:
      jaxpr: the program, a `Jaxpr`.
      moving: for each of its inputs, the position of the argument that it belongs to.
      avals: the abstract values of all arguments.
    """

    def __init__(self, jaxpr, moving, avals):
        self.jaxpr, self.moving, self.avals = jaxpr, moving, avals

    def __call__(self, consts, cotangents):
        """Return an array for each argument; ``float0`` zeros for integers, booleans.

        Args:
          consts: the values of the constants of the program.
          cotangents: for each of its results an array, or None for zero.
        """
        places = [Linear(var.aval) for var in self.jaxpr.invars]
        arrived = backward_pass(self.jaxpr, consts, places, cotangents)
        found = dict(zip(self.moving, arrived))
        return [
            dense_cotangent(aval, found.get(i)) for i, aval in enumerate(self.avals)
        ]


for reader in (linear_eqns, backward_pass):  # errors in a rule name the user's line
    readers.add(reader)


def dense_cotangent(aval, ct):
    """Return a cotangent as an array: zeros of the right kind where it is None."""
    if ct is not None:
        return as_array(ct)
    zeros = zeros_of_tangent(aval)
    return fitted.value(zeros, aval) if is_inexact(aval.dtype) else zeros


def is_float0(x):
    """Return whether `x` is an array of the empty dtype ``float0``."""
    return getattr(x, "dtype", None) == float0


class PullbackOnTrees:
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

    @guarded
    def __call__(self, pullback, *cotangents):
        """Check the cotangents, pull them back, put the arguments' together."""
        if len(cotangents) != 1:
            raise TypeError(
                f"{self.name} takes one argument, a tree of cotangents like the "
                f"function's result, but it was called with {len(cotangents)}."
            )
        given, expected = f"the argument of {self.name}", "the function's result"
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
            raise self.error(
                f"{self.name}: the cotangent of result{keystr(path)} has to be of type "
                f"{spell(expected)}, because the result is of type "
                f"{spell(self.out_avals[i])}, but it is of type {spell(given)}."
            )

    def _dtype(self, dtype):
        return dtype if self.error is TypeError else tangent_dtype(dtype)


def spell(aval):
    """Return a type as messages write it, such as ``float32[3]``."""
    name = "float0" if aval.dtype == float0 else aval.dtype.name
    return f"{name}[{','.join(map(str, aval.shape))}]"


def vjp(
    fun: Callable[..., Any], *primals: Any, has_aux: bool = False
) -> tuple[Any, ...]:
    """Return the value of a function and the function that pulls cotangents back.

    Args:
      fun: a function of arrays, scalars and trees of them.
      *primals: its arguments.
      has_aux: whether `fun` returns a pair ``(result, aux)``.

    Returns:
      The pair ``(result, vjp_fun)``; with `has_aux` the triple ``(result, vjp_fun,
      aux)``. `vjp_fun` takes one tree with the structure, shapes and dtypes of the
      result and returns a tuple with a tree for each of `primals`: the vector-Jacobian
      product. It may be called again and again, and is itself a tree of arrays.

    Raises:
      TypeError: if `fun` cannot be called or a leaf is no array or scalar.
      ValueError: from `vjp_fun`, if the cotangents do not fit the result.

    Reference: ``jax.vjp``.
    """
    call = FlatCall("vjp", fun, primals, has_aux=has_aux)
    flat, pullback = vjp_flat(call, call.leaves, lambda: call.num_outs)
    avals = list(map(typeof, flat[: call.num_outs]))
    on_trees = PullbackOnTrees("vjp", call, avals, ValueError)
    result = call.output(flat), Partial(on_trees, pullback)
    return (*result, call.aux(flat)) if has_aux else result
