"""Reverse mode: transpose rules, the backward pass, vjp and grad.

A rule is called as ``rule(cotangents, *operands, **params)``, with one cotangent (or
None, a zero) for each result, and returns one for each operand. An operand that the
program is linear in arrives as `UndefinedPrimal`: its place is known, its value is not.
All other operands arrive as values, and get None.

References: ``jax.interpreters.ad.primitive_transposes``, ``jax.lax``, and the rules
that ``jax.linear_transpose`` applies, ``jax.vjp``, ``jax.linear_transpose``; Radul et
al., *You Only Linearize Once: Tangents Transpose to Gradients* (POPL 2023),
``jax.grad``, ``jax.value_and_grad``.
"""

# Made from chapters/10_reverse.md by `make chapter`;
# edit the chapter, not this file.
# Amended in chapters/11_own_rules_ground.md: linear_eqns, UndefinedPrimal.add
#   (caab78ef).
# Amended in chapters/28_indexing_rest.md: vjp (62e9034a).

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from minijax import lax
from minijax.arrays.array import typeof
from minijax.arrays.dtypes import is_inexact
from minijax.arrays.numerics import lhs_free_axes
from minijax.core import RuleTable
from minijax.diagnostics.tracebacks import api_boundary, source_line_readers
from minijax.forward_mode.jvp import add_or_none
from minijax.jaxprs.jaxpr import Literal
from minijax.jaxprs.types import weak_type_converter
from minijax.lax.arithmetic import astype
from minijax.linearization.linearize import linearize_flat
from minijax.numpy.operands import as_array
from minijax.pytrees.api_util import FlatCall
from minijax.pytrees.argument_checks import check_callable, is_ref, zeros_of_tangent
from minijax.pytrees.registry import register_pytree_node
from minijax.pytrees.tree_operations import Partial, tree_flatten, tree_leaves
from minijax.reverse_mode.argument_checks import (
    TreePullback,
    check_input_dtypes_grad,
    check_output_dtypes_revderiv,
    check_scalar_output,
    flatten_diff_args,
    named_after,
    one_like,
    tree_per_argnum,
)
from minijax.typing import P, R

# Transposition of single primitives: the rule table, and makers of rules.


# Rules ``rule(cotangents, *operands, **params)`` return cotangents of the operands.
transpose_rules = RuleTable("transpose")


class UndefinedPrimal:
    """The place of an operand that a program is linear in: cotangents add up there.

    Args:
      aval: the `ShapedArray` of the operand, which has no value.

    Attributes:
      ct: the sum of what has arrived, an array; None is zero.

    Reference: ``jax.interpreters.ad.UndefinedPrimal``.
    """

    __slots__ = ("aval", "ct")

    def __init__(self, aval):
        self.aval, self.ct = aval, None

    def add(self, ct):
        """Add an array, or None for zero, to what has arrived."""
        if ct is not None:
            self.ct = add_or_none(self.ct, weak_type_converter.value(ct, self))

    def __repr__(self):
        return f"Place({self.aval})"


def deftranspose(primitive, *parts, bilinear=False):
    """Give a primitive with one result its transpose rule, operand by operand.

    Args:
      primitive: the primitive.
      *parts: for each operand a function from the cotangent of the result, the operands
        and the parameters to the cotangent of that operand; None if the primitive is
        not linear in it.
      bilinear: whether it is linear in each operand by itself, as a product is, instead
        of in all of them together, as a sum is.
    """

    def rule(cotangents, *operands, **params):
        [ct] = cotangents
        linear = [isinstance(operand, UndefinedPrimal) for operand in operands]
        raise_nonlinear(primitive, parts, linear, bilinear)
        return [
            part(ct, *operands, **params) if is_linear else None
            for part, is_linear in zip(parts, linear)
        ]

    transpose_rules[primitive] = rule


def raise_nonlinear(primitive, parts, linear, bilinear):
    """Raise if a program claims to be linear in operands that `primitive` is not."""
    places = [i for i, is_linear in enumerate(linear) if is_linear]
    if any(parts[i] is None for i in places) or (bilinear and len(places) > 1):
        raise NotImplementedError(
            f"The transpose rule of '{primitive}' is not implemented for the linear "
            f"operands {places}: '{primitive}' is not linear in them. Only linear "
            "functions can be transposed; minijax.vjp differentiates the others first."
        )


def deftranspose_elementwise(primitive, *parts, bilinear=False):
    """Give an elementwise primitive its rule; arguments are those of `deftranspose`.

    The parts need not think of shapes: where an operand was stretched, its cotangent is
    summed.
    """

    def fitted(i, part):
        return lambda ct, *xs, **params: unbroadcast(part(ct, *xs, **params), xs[i])

    fitting = [part and fitted(i, part) for i, part in enumerate(parts)]
    deftranspose(primitive, *fitting, bilinear=bilinear)


# Transpose rules: how each linear primitive hands a cotangent back to its operands.

deftranspose(lax.neg_p, lambda ct, x: lax.neg(ct))
deftranspose_elementwise(lax.add_p, lambda ct, x, y: ct, lambda ct, x, y: ct)
deftranspose_elementwise(lax.add_any_p, lambda ct, x, y: ct, lambda ct, x, y: ct)
deftranspose_elementwise(lax.sub_p, lambda ct, x, y: ct, lambda ct, x, y: lax.neg(ct))
deftranspose_elementwise(lax.div_p, lambda ct, x, y: lax.div(ct, y), None)
deftranspose_elementwise(
    lax.mul_p,
    lambda ct, x, y: lax.mul(ct, y),
    lambda ct, x, y: lax.mul(x, ct),
    bilinear=True,
)


def unbroadcast(ct, operand):
    """Sum a cotangent over the axes along which its operand was stretched.

    Args:
      ct: array of the shape of an elementwise result.
      operand: its operand's place: a scalar, or an array with as many axes as `ct`, of
        size 1 where it was stretched.

    Returns:
      An array of the shape of `operand`.
    """
    small, large = operand.aval.shape, typeof(ct).shape
    axes = [i for i, size in enumerate(large) if not small or small[i] != size]
    return lax.reshape(lax.reduce_sum(ct, axes), small) if axes else ct


def unsum(ct, x, axes):
    """Transpose a sum: every element that went in gets the whole cotangent."""
    kept = [i for i in range(x.aval.ndim) if i not in axes]
    return lax.broadcast_in_dim(ct, x.aval.shape, kept)


def unstretch(ct, x, shape, broadcast_dimensions):
    """Transpose a broadcast: sum over the axes that were made or stretched."""
    ones = [i for i, size in enumerate(x.aval.shape) if size == 1]  # come back
    kept = [d for i, d in enumerate(broadcast_dimensions) if i not in ones]
    made = [d for d in range(len(shape)) if d not in kept]  # are summed
    return lax.expand_dims(lax.reduce_sum(ct, made) if made else ct, ones)


deftranspose(lax.reduce_sum_p, unsum)
deftranspose(lax.broadcast_in_dim_p, unstretch)


deftranspose(lax.reshape_p, lambda ct, x, new_sizes: lax.reshape(ct, x.aval.shape))
deftranspose(lax.squeeze_p, lambda ct, x, dimensions: lax.expand_dims(ct, dimensions))
deftranspose(
    lax.transpose_p,
    lambda ct, x, permutation: lax.transpose(ct, inverse_permutation(permutation)),
)
deftranspose(lax.rev_p, lambda ct, x, dimensions: lax.rev(ct, dimensions))


def inverse_permutation(permutation):
    """Return the permutation that undoes `permutation`."""
    return sorted(range(len(permutation)), key=permutation.__getitem__)


def unconvert(ct, x, new_dtype, weak_type):
    """Transpose a conversion: convert back, by way of the real part if need be."""
    old = x.aval
    if new_dtype.kind == "c" and old.dtype.kind != "c":
        ct = lax.real(ct)
    return astype(ct, old.dtype, old.weak_type)


deftranspose(lax.convert_element_type_p, unconvert)


def zero_like(x, may_be_weak=True):
    """Return a scalar zero of the dtype of `x`, weak if `x` is and it may be."""
    aval = typeof(x)
    return astype(0.0, aval.dtype, may_be_weak and aval.weak_type)


def select_n_transpose(cotangents, which, *cases):
    """Transpose a choice: each case gets the cotangent where it was chosen."""
    [ct] = cotangents
    shape, nothing = typeof(ct).shape, zero_like(ct)
    if shape:
        nothing = lax.full(shape, nothing)

    def where_chosen(i, case):
        if not isinstance(case, UndefinedPrimal):
            return None
        return lax.select_n(
            which, *(ct if i == j else nothing for j in range(len(cases)))
        )

    return [None, *(where_chosen(i, case) for i, case in enumerate(cases))]


transpose_rules[lax.select_n_p] = select_n_transpose


def dot_transpose(ct, linear, known, contract, batch, ct_contract, **dtypes):
    """Transpose a matrix product in one factor: multiply the cotangent by the other.

    Args:
      ct: array with the axes (batch, free of lhs, free of rhs).
      linear, known: the two factors, the first of them `UndefinedPrimal`.
      contract, batch: for each of the two, in this order, the axes of either kind.
      ct_contract: the axes of `ct` that came from the free axes of `known`.
      dtypes: what else the product was given, which this one is given as well.

    Returns:
      The cotangent of `linear`. Summing `ct` and `known` over the free axes of the
      latter leaves (batch, free, contracted) axes, which are put in order.
    """
    ct_batch = range(len(batch[0]))
    free = lhs_free_axes(linear.aval.ndim, contract[0], batch[0])
    known_free = lhs_free_axes(typeof(known).ndim, contract[1], batch[1])
    numbers = (ct_contract, known_free), (ct_batch, batch[1])
    known = with_dtype(known, typeof(ct).dtype)
    product = lax.dot_general(ct, known, numbers, **dtypes)
    # Its last axes are the contracted ones of `known`, in the order they have there.
    contracted = [contract[0][i] for i in inverse_permutation(contract[1])]
    order = inverse_permutation([*batch[0], *free, *contracted])
    return with_dtype(lax.transpose(product, order), linear.aval.dtype)


def with_dtype(x, dtype):
    """Return `x` in another dtype, or as it is if it has that dtype."""
    if typeof(x).dtype == dtype:
        return x
    return lax.convert_element_type_p.bind(x, new_dtype=dtype, weak_type=False)


def dot_lhs(ct, lhs, rhs, dimension_numbers, **dtypes):
    """Transpose a matrix product in its left factor."""
    contract, batch = dimension_numbers
    of_rhs = range(lhs.aval.ndim - len(contract[0]), typeof(ct).ndim)
    return dot_transpose(ct, lhs, rhs, contract, batch, of_rhs, **dtypes)


def dot_rhs(ct, lhs, rhs, dimension_numbers, **dtypes):
    """Transpose a matrix product in its right factor."""
    contract, batch = (pair[::-1] for pair in dimension_numbers)
    of_lhs = range(len(batch[0]), typeof(lhs).ndim - len(contract[1]))
    return dot_transpose(ct, rhs, lhs, contract, batch, of_lhs, **dtypes)


deftranspose(lax.dot_general_p, dot_lhs, dot_rhs, bilinear=True)


# Reverse mode: a linear program runs backwards, from cotangents to cotangents.


def linear_eqns(jaxpr, consts, operands):
    """Evaluate what can be evaluated of a jaxpr, and list what cannot.

    Args:
      jaxpr: a `Jaxpr`.
      consts: the values of its constants.
      operands: for each input its value, or a `UndefinedPrimal`.

    Returns:
      A list of ``(eqn, operands, places)``, one for each linear equation, in order; and
      the values or places of the results of the jaxpr.
    """
    env = dict(zip(jaxpr.constvars, consts)) | dict(zip(jaxpr.invars, operands))

    def read(atom):
        return atom.value if isinstance(atom, Literal) else env[atom]

    linear = []
    for eqn in jaxpr.eqns:
        xs = list(map(read, eqn.invars))
        if any(map(is_linear_place, xs)):
            outs = [UndefinedPrimal(var.aval) for var in eqn.outvars]
            linear.append((eqn, xs, outs))
        else:
            outs = eqn.primitive.bind_all(*xs, **eqn.params)
        env.update(zip(eqn.outvars, outs))
    return linear, list(map(read, jaxpr.outvars))


def transpose_eqn(eqn, cotangents, operands):
    """Transpose one equation of a linear program.

    Args:
      eqn: a `JaxprEqn`.
      cotangents: for each of its results an array, or None for zero.
      operands: for each of its operands the value, or a `UndefinedPrimal`.

    Returns:
      For each operand an array, or None: zero, or not linear.
    """
    return transpose_rules[eqn.primitive](cotangents, *operands, **eqn.params)


def add_cotangents(operands, cotangents):
    """Add cotangents to those operands that are places."""
    for x, ct in zip(operands, cotangents, strict=True):
        if is_linear_place(x):
            x.add(ct)


def is_linear_place(x):
    """Return whether `x` is a `UndefinedPrimal`."""
    return isinstance(x, UndefinedPrimal)


def backward_pass(jaxpr, consts, operands, cotangents):
    """Transpose a jaxpr: send cotangents from its results to its linear inputs.

    The equations are transposed from the last to the first. When the turn of one comes,
    all equations that use its results are done, so their cotangents are complete.

    Args:
      jaxpr: a `Jaxpr`, linear in those inputs that are `UndefinedPrimal` in `operands`.
      consts: the values of its constants.
      operands: for each input its value, or a `UndefinedPrimal`.
      cotangents: for each result an array, or None for zero.

    Returns:
      For each input an array of its shape, or None: zero, or not linear.
    """
    inputs = [UndefinedPrimal(x.aval) if is_linear_place(x) else x for x in operands]
    linear, results = linear_eqns(jaxpr, consts, inputs)
    add_cotangents(results, cotangents)
    while linear:
        eqn, xs, places = linear.pop()
        if any(place.ct is not None for place in places):
            cts = [place.ct for place in places]
            add_cotangents(xs, transpose_eqn(eqn, cts, xs))
    return [x.ct if is_linear_place(x) else None for x in inputs]


def vjp_flat_fun(f, primals, num_outs=None):
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
    return outs, Partial(FlatPullback(jaxpr, moving, avals), consts)


class FlatPullback:
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
        places = [UndefinedPrimal(var.aval) for var in self.jaxpr.invars]
        arrived = backward_pass(self.jaxpr, consts, places, cotangents)
        found = dict(zip(self.moving, arrived))
        return [
            instantiate_cotangent(aval, found.get(i))
            for i, aval in enumerate(self.avals)
        ]


for reader in (linear_eqns, backward_pass):  # errors in a rule name the user's line
    source_line_readers.add(reader)


def instantiate_cotangent(aval, ct):
    """Return a cotangent as an array: zeros of the right kind where it is None."""
    if ct is not None:
        return as_array(ct)
    zeros = zeros_of_tangent(aval)
    return weak_type_converter.value(zeros, aval) if is_inexact(aval.dtype) else zeros


@dataclass(frozen=True)
class NotNeeded:
    """Stands for an argument whose value the derivative does not need."""


@dataclass(frozen=True)
class GradValue:
    """Asks for a cotangent as an array."""


@dataclass(frozen=True)
class GradRef:
    """Stands for a cotangent that was added to a reference."""


@dataclass(frozen=True)
class DontWant:
    """Asks for no cotangent."""


@dataclass(frozen=True)
class DidntWant:
    """Stands for a cotangent that was not asked for."""


for _word in NotNeeded, GradRef, DidntWant:
    register_pytree_node(_word, lambda x: ((), None), lambda _, __, kind=_word: kind())


def _deliver(wanted, ct):
    """Return a cotangent, or what stands for it after it went elsewhere."""
    if is_ref(wanted):
        wanted.write(wanted.read() + ct)
        return GradRef()
    return DidntWant() if isinstance(wanted, DontWant) else ct


class VJP:
    """A function that pulls cotangents back, with the values that it needs for that.

    Args:
      fun: a function of `args_res`, `opaque_residuals`, and cotangents.
      in_tree, out_tree: the trees of the arguments and of the result.
      args_res: for each argument what is needed of it: tuples of its leaves, with
        `NotNeeded` for the others. It is a list, and its items may be replaced.
      opaque_residuals: list of the other arrays that are needed.
      jaxpr: the linear program, a `Jaxpr`.

    Reference: what ``jax.vjp`` returns.
    """

    def __init__(self, fun, in_tree, out_tree, args_res, opaque_residuals, jaxpr):
        self.fun, self.in_tree, self.out_tree = fun, in_tree, out_tree
        self.args_res, self.opaque_residuals = args_res, opaque_residuals
        self.jaxpr = jaxpr

    @api_boundary
    def __call__(self, *cotangents):
        """Return a tuple with a tree of cotangents for each argument."""
        return self.fun(self.args_res, self.opaque_residuals, *cotangents)

    def with_refs(self, *refs):
        """Return a function of the cotangents that adds its results to references.

        Args:
          *refs: trees like the arguments. A leaf is a reference; or it is
            ``ad.GradValue()``, for an array, or ``ad.DontWant()``.

        Raises:
          ValueError: if the trees are others.
        """
        leaves, tree = tree_flatten(refs)
        if tree != self.in_tree:
            raise ValueError(
                f"with_refs takes trees like the arguments, {self.in_tree}, not {tree}."
            )

        def pull(*cotangents):
            found = tree_leaves(self(*cotangents))
            return self.in_tree.unflatten(map(_deliver, leaves, found))

        return pull


register_pytree_node(
    VJP,
    lambda x: (
        (x.args_res, x.opaque_residuals),
        (x.fun, x.in_tree, x.out_tree, x.jaxpr),
    ),
    lambda aux, kept: VJP(aux[0], aux[1], aux[2], kept[0], kept[1], aux[3]),
)


def _pull(on_trees, flat, sources, args_res, opaque_residuals, *cotangents):
    """Pull cotangents back with the residuals from where they are kept."""
    args = tree_leaves(args_res, is_leaf=lambda x: isinstance(x, NotNeeded))
    consts = [(args if own else opaque_residuals)[i] for own, i in sources]
    return on_trees(partial(flat, consts), *cotangents)


def _kept_apart(leaves, consts):
    """Return for each residual its place, what is kept of arguments, and the rest."""
    places = {id(x): i for i, x in enumerate(leaves)}
    sources, others = [], []
    for const in consts:
        own = id(const) in places
        sources.append((own, places[id(const)] if own else len(others)))
        others += [] if own else [const]
    used = set(map(id, consts))
    kept = [x if id(x) in used else NotNeeded() for x in leaves]
    return sources, kept, others


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
      aux)``. `vjp_fun`, a `VJP`, takes one tree with the structure, shapes and dtypes
      of the result and returns a tuple with a tree for each of `primals`: the
      vector-Jacobian product. It may be called again and again, and is itself a tree
      of arrays; ``vjp_fun.with_refs`` adds cotangents to references.

    Raises:
      TypeError: if `fun` cannot be called or a leaf is no array or scalar.
      ValueError: from `vjp_fun`, if the cotangents do not fit the result.

    Reference: ``jax.vjp``.
    """
    call = FlatCall("vjp", fun, primals, has_aux=has_aux)
    flat, pullback = vjp_flat_fun(call, call.leaves, lambda: call.num_outs)
    avals = list(map(typeof, flat[: call.num_outs]))
    on_trees = TreePullback("vjp", call, avals, ValueError)
    sources, kept, others = _kept_apart(call.leaves, pullback.args[0])
    args_res = call.args_tree.walk(lambda xs, _: xs, lambda x: x, kept)
    pull = partial(_pull, on_trees, pullback.func, sources)
    trees = call.args_tree, call.out_tree
    vjp_fun = VJP(pull, *trees, list(args_res), others, pullback.func.jaxpr)
    result = call.output(flat), vjp_fun
    return (*result, call.aux(flat)) if has_aux else result


# Gradients: the reverse derivative of a function with a single result.


def value_and_grad(
    fun: Callable[P, R],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
) -> Callable[P, tuple[R, Any]]:
    """Return a function that computes the value of `fun` and its gradient.

    Args:
      fun: a function of arrays, scalars and trees of them, whose result is a scalar.
      argnums: the position of the argument to differentiate with respect to, or a
        tuple of positions.
      has_aux: whether `fun` returns a pair ``(value, aux)``.
      holomorphic: whether `fun` is a complex-differentiable function of complex
        arguments.
      allow_int: whether the arguments may hold integers and booleans, for which the
        gradient has zeros of dtype ``float0``.

    Returns:
      A function of the arguments of `fun`. It returns a pair: the value (with `has_aux`
      the pair ``(value, aux)``) and the gradient, which has the structure, shapes and
      dtypes of the argument, or is a tuple of such trees if `argnums` is one.

    Raises:
      TypeError: from that function, if the value is no real scalar, or if a leaf of the
        arguments is no real or complex array.

    Reference: ``jax.value_and_grad``.
    """
    check_callable(fun)

    @named_after("Value and gradient", fun, argnums)
    def value_and_grad_f(*args, **kwargs):
        call = flatten_diff_args("grad", fun, args, kwargs, argnums, has_aux)
        check_input_dtypes_grad(call, holomorphic, allow_int)
        flat, pullback = vjp_flat_fun(call, call.leaves, lambda: call.num_outs)
        check_scalar_output(call, flat)
        check_output_dtypes_revderiv(call, flat, holomorphic)
        gradient = tree_per_argnum(call, argnums, pullback([one_like(flat[0])]))
        value = call.output(flat)
        return ((value, call.aux(flat)) if has_aux else value), gradient

    return value_and_grad_f


def grad(
    fun: Callable[P, Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
) -> Callable[P, Any]:
    """Return a function that computes the gradient of `fun`.

    Args:
      fun, argnums, has_aux, holomorphic, allow_int: as for `value_and_grad`.

    Returns:
      A function of the arguments of `fun` that returns the gradient; with `has_aux` the
      pair ``(gradient, aux)``.

    Raises:
      TypeError: as for `value_and_grad`.

    Reference: ``jax.grad``.
    """
    both = value_and_grad(fun, argnums, has_aux, holomorphic, allow_int)

    @named_after("Gradient", fun, argnums)
    def grad_f(*args, **kwargs):
        value, gradient = both(*args, **kwargs)
        return (gradient, value[1]) if has_aux else gradient

    return grad_f
