"""Closures as arguments, linear calls, implicit differentiation of solvers.

References: ``custom_gradient``, ``closure_convert`` in
``jax._src.custom_derivatives``, ``jax.custom_derivatives.linear_call``,
``jax.lax.custom_root``, ``jax.lax.custom_linear_solve``, the lowering rules in
``jax._src.custom_derivatives``.
"""

# Made from chapters/11_own_rules_rest.md by `make chapter`;
# edit the chapter, not this file.

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

from minijax import lax
from minijax.arrays.array import shape_rules, typeof
from minijax.arrays.dtypes import is_inexact
from minijax.batching.vmap import (
    BatchTracer,
    batch_dim_to_front,
    batch_flat_fun,
    vmap_rules,
)
from minijax.core import Primitive, Tracer, impl_rules
from minijax.custom_derivatives.custom_jvp_vjp import (
    callee_rules,
    custom_jvp,
    custom_jvp_call_p,
    custom_vjp,
    custom_vjp_call_p,
    match_axis,
    trace_to_closed_jaxpr,
)
from minijax.custom_derivatives.custom_vmap import custom_vmap_p
from minijax.custom_derivatives.flat_functions import (
    batch_function,
    flatten_call,
    fun_name_of,
    raise_not_array,
    unpack_pair,
)
from minijax.diagnostics.tracebacks import api_boundary
from minijax.forward_mode.jvp import (
    JVPTracer,
    add_or_none,
    instantiate_tangents,
    jvp_flat_fun,
    jvp_rules,
    zeros_like_tangent_aval,
)
from minijax.jaxprs.jaxpr import (
    ClosedJaxpr,
    Var,
    eval_jaxpr,
    jaxpr_as_fun,
    trace_to_jaxpr,
)
from minijax.jaxprs.pretty_printer import pp_eqn_default, pp_eqn_rules
from minijax.linearization.linearize import linearize
from minijax.pytrees.api_util import jvp
from minijax.pytrees.argument_checks import zeros_of_tangent
from minijax.pytrees.tree_operations import Partial, treedef_is_leaf
from minijax.pytrees.tree_util import tree_flatten
from minijax.rematerialization.remat import remat_p
from minijax.reverse_mode.backward_pass import (
    UndefinedPrimal,
    instantiate_cotangent,
    transpose_rules,
)
from minijax.reverse_mode.transpose_rules import linear_transpose

# Functions with arrays in their closures, taken apart into programs and arrays.


class TracedRule:
    """A backward rule that was written down, as a function of its closure.

    Args:
      jaxpr: the program.
      out_tree: the structure of what the rule returns.
    """

    def __init__(self, jaxpr, out_tree):
        self.jaxpr, self.out_tree = jaxpr, out_tree

    def __call__(self, consts, ct):
        """Return the tuple of cotangents."""
        cts = eval_jaxpr(self.jaxpr, consts, *tree_flatten(ct)[0])
        found = self.out_tree.unflatten(cts)
        return (found,) if treedef_is_leaf(self.out_tree) else found


def write_rule(rule, out):
    """Return a backward rule as a `Partial` of the arrays that it closes over.

    Args:
      rule: a function of the cotangent of `out`.
      out: a tree of arrays.
    """
    leaves, function = flatten_call("custom_gradient", rule, (out,), ())
    avals = [typeof(leaf).to_tangent_aval() for leaf in leaves]
    jaxpr, consts = trace_to_jaxpr(function, avals)
    return Partial(TracedRule(jaxpr, function.out_tree), consts)


def custom_gradient(fun: Callable) -> custom_vjp:
    """Return a function whose gradient is what `fun` returns besides its result.

    Args:
      fun: a function that returns a pair: its result, and a function from the cotangent
        of the result to the tuple of those of the arguments (one cotangent, if there is
        one argument). That function may close over arrays; it is written down, so it
        has no Python control flow that depends on values.

    Reference: ``jax.custom_gradient``.
    """

    who = f"The function {fun_name_of(fun)} of custom_gradient"

    def both(*args, **kwargs):
        wanted = "its result and a function of the cotangent"
        out, rule = unpack_pair(fun(*args, **kwargs), who, wanted)
        if not callable(rule):
            raise TypeError(f"{who} must return a pair, {wanted}, not {rule!r}.")
        raise_not_array(who, out)
        return out, rule

    def wrapped_fun(*args, **kwargs):
        return both(*args, **kwargs)[0]

    def fwd(*args, **kwargs):
        out, rule = both(*args, **kwargs)
        return out, write_rule(rule, out)

    def bwd(rule, ct):
        return rule(ct)

    wrapped_fun.users = bwd.__wrapped__ = fun  # this is what messages speak of
    function = custom_vjp(wrapped_fun)
    function.defvjp(fwd, bwd)
    return function


def closure_convert(fun: Callable, *example_args: Any) -> tuple[Callable, list]:
    """Return a function without a closure, and the values that were in it.

    Args:
      fun: a function of trees of arrays.
      *example_args: arguments of the right structure and types.

    Returns:
      A function of the same arguments, followed by the values; and the list of those
      values in the closure with respect to which a derivative may be taken.

    Raises:
      TypeError: when the function is called with trees of another structure.

    Reference: ``jax.closure_convert``.
    """
    leaves, function = flatten_call("closure_convert", fun, example_args, ())
    jaxpr, consts = trace_to_jaxpr(function, list(map(typeof, leaves)))
    hoisted = [_may_move(const) for const in consts]

    @api_boundary
    def converted(*args):
        count = len(args) - sum(hoisted)
        given = iter(args[count:])
        values = [next(given) if h else c for h, c in zip(hoisted, consts)]
        leaves, tree = tree_flatten(args[:count])
        if tree != function.in_tree:
            raise TypeError(
                "The inputs to the closure produced by closure_convert must have the "
                "same Pytree structure as the example arguments passed when "
                f"closure_convert was called. Expected {function.in_tree}, but got "
                f"{tree}"
            )
        return function.out_tree.unflatten(eval_jaxpr(jaxpr, values, *leaves))

    return converted, [const for h, const in zip(hoisted, consts) if h]


def _may_move(x):
    """Return whether a derivative may be taken with respect to a value.

    A batch may move where its elements can: the function of a `custom_vjp` rule that
    had it in its closure would meet it when vmap has ended.
    """
    if isinstance(x, BatchTracer) and _may_move(x.value):
        return True
    return isinstance(x, JVPTracer) or (
        isinstance(x, Tracer) and is_inexact(typeof(x).dtype)
    )


# Custom transposes: linear functions with a transpose of their own.

linear_call_p = Primitive("linear_call")
linear_call_p.multiple_results = True


def bind_linear(there, back, residuals, operands):
    """Call a linear function.

    Args:
      there, back: functions of two flat lists that return one: the function, and its
        transpose.
      residuals, operands: lists of arrays; `there` is linear in the second.
    """
    count = len(residuals)
    flat = [*residuals, *operands]
    callee, consts = trace_to_closed_jaxpr(
        lambda *xs: there(xs[:count], xs[count:]), flat
    )
    return linear_call_p.bind(
        *consts,
        *flat,
        callee=callee,
        num_callee_consts=len(consts),
        num_res=count,
        transpose_thunk=back,
    )


def _linear_transpose(cts, *operands, callee, num_res, transpose_thunk, **params):
    first = params["num_callee_consts"]
    end = first + num_res

    def there(residuals, xs):
        return jaxpr_as_fun(callee)(*operands[:first], *residuals, *xs)

    pairs = zip(callee.out_avals, cts)
    cts = [zeros_of_tangent(aval) if ct is None else ct for aval, ct in pairs]
    found = bind_linear(transpose_thunk, there, operands[first:end], cts)
    return [None] * end + found


impl_rules[linear_call_p] = lambda *args, callee, **_: jaxpr_as_fun(callee)(*args)
shape_rules[linear_call_p] = lambda *avals, callee, **_: callee.out_avals
callee_rules[linear_call_p] = lambda eqn: eqn.params["callee"]
transpose_rules[linear_call_p] = _linear_transpose


def _linear_jvp(primals, tangents, **params):
    end = params["num_callee_consts"] + params["num_res"]
    outs, slopes = linear_call_p.bind(*primals, **params), [None] * len(primals)
    if any(tangent is not None for tangent in tangents[end:]):
        moving = instantiate_tangents(primals[end:], tangents[end:])
        slopes = linear_call_p.bind(*primals[:end], *moving, **params)
    if any(tangent is not None for tangent in tangents[:end]):
        still = [None] * len(primals[end:])
        program = jaxpr_as_fun(params["callee"])
        _, others = jvp_flat_fun(program, primals, [*tangents[:end], *still])
        slopes = list(map(add_or_none, slopes, others))
    return outs, slopes


def _linear_vmap(axis, args, dims, callee, transpose_thunk, num_callee_consts, num_res):
    end = num_callee_consts + num_res
    program, _ = trace_to_closed_jaxpr(
        batch_function(jaxpr_as_fun(callee), dims, axis), args
    )

    def back(residuals, cts):
        def one(*xs):
            return transpose_thunk(xs[:num_res], xs[num_res:])

        places = [*dims[num_callee_consts:end], *[0] * len(cts)]
        found, places = batch_flat_fun(one, [*residuals, *cts], places, axis)
        fronts = [
            batch_dim_to_front(x, dim, axis.size) for x, dim in zip(found, places)
        ]
        return list(map(match_axis, fronts, dims[end:]))

    outs = linear_call_p.bind(
        *args,
        callee=program,
        num_callee_consts=num_callee_consts,
        num_res=num_res,
        transpose_thunk=back,
    )
    return outs, [0] * len(outs)


jvp_rules[linear_call_p], vmap_rules[linear_call_p] = _linear_jvp, _linear_vmap


@api_boundary
def linear_call(
    fun: Callable, fun_transpose: Callable, residual_args: Any, linear_args: Any
) -> Any:
    """Call a linear function that has a transpose of its own.

    Args:
      fun: called as ``fun(residual_args, linear_args)``, linear in the second.
      fun_transpose: called as ``fun_transpose(residual_args, ct)``, with the cotangent
        of the result; returns that of `linear_args`.
      residual_args, linear_args: trees of arrays.

    Raises:
      TypeError: in reverse mode, if `fun_transpose` returns another structure.

    Reference: ``jax.custom_derivatives.linear_call``.
    """
    residuals, res_tree = tree_flatten(residual_args)
    operands, in_tree = tree_flatten(linear_args)
    args = residual_args, linear_args
    _, function = flatten_call("linear_call", fun, args, ())

    def there(residuals, xs):
        return function(*residuals, *xs)

    def back(residuals, cts):
        ct = function.out_tree.unflatten(cts)
        found, tree = tree_flatten(fun_transpose(res_tree.unflatten(residuals), ct))
        if tree != in_tree:
            raise TypeError(
                "transpose output pytree structure must match that of linear inputs, "
                f"got output structure {tree} and input structure {in_tree}."
            )
        return found

    outs = bind_linear(there, back, residuals, operands)
    return function.out_tree.unflatten(outs)


# Implicit differentiation: derivatives of a solution, from the equation it solves.


class TracedFunction(NamedTuple):
    """A function of trees, written down.

    Args:
      program: the `ClosedJaxpr`, from what it closes over and its arguments.
      consts: the values of what it closes over.
      out_tree: the structure of its result.
    """

    program: Any
    consts: list
    out_tree: Any


def trace_solver(name, fun, args, like, has_aux=False, wanted="initial_guess"):
    """Write a function down whose result has to be like `like`.

    Args:
      name: of the function, for messages.
      fun: a function of trees.
      args: its arguments.
      like: a tree of arrays.
      has_aux: whether it returns a pair, the second of which may be anything.
      wanted: what messages call `like`.

    Raises:
      TypeError: if the structure of its result is another one.
      ValueError: if it should return a pair and does not.
    """
    leaves, function = flatten_call(name, fun, args, ())
    program, consts = trace_to_closed_jaxpr(function, leaves)
    tree, expected = function.out_tree, tree_flatten(like)[1]
    skeleton = tree.unflatten([None] * tree.num_leaves)
    if has_aux and not (isinstance(skeleton, tuple) and len(skeleton) == 2):
        raise ValueError(
            f"{name}() produced a pytree with structure {tree}, but a pytree tuple "
            "with auxiliary output was expected because has_aux was set to True."
        )
    if (found := tree.children()[0] if has_aux else tree) != expected:
        raise TypeError(
            f"{name}() output pytree structure must match {wanted}, got {found} and "
            f"{expected}."
        )
    return TracedFunction(program, consts, tree)


def custom_root(
    f: Callable,
    initial_guess: Any,
    solve: Callable,
    tangent_solve: Callable,
    has_aux: bool = False,
) -> Any:
    """Return a root of a function, with the derivative of an implicit function.

    Args:
      f: a function from a tree of arrays to one of the same structure. Derivatives are
        taken with respect to what it closes over.
      initial_guess: where to begin.
      solve: called with `f` and the guess; returns the root.
      tangent_solve: called with a linear function ``g`` and a tree ``y``; returns ``x``
        with ``g(x) = y``.
      has_aux: whether `solve` returns a pair of the root and other data.

    Returns:
      What `solve` returns.

    Raises:
      TypeError: if a function returns another structure.
      ValueError: if `solve` should return a pair and does not.

    Reference: ``jax.lax.custom_root``.
    """

    def solve_linearized(x, y):
        return tangent_solve(linearize(f, x)[1], y)

    guess = tree_flatten(initial_guess)[0]
    one, two = (initial_guess,), (initial_guess, initial_guess)
    equation = trace_solver("f", f, one, initial_guess)
    solver = trace_solver(
        "solve", functools.partial(solve, f), one, initial_guess, has_aux
    )
    tangent = trace_solver(
        "tangent_solve", solve_linearized, two, initial_guess, wanted="x"
    )

    @custom_jvp
    def _custom_root(of_f, of_solve, of_tangent, guess):
        return jaxpr_as_fun(solver.program)(*of_solve, *guess)

    @_custom_root.defjvp
    def _root_jvp(primals, tangents):
        out = _custom_root(*primals)
        root, aux = out[: len(guess)], out[len(guess) :]

        def at_root(*of_f):
            return jaxpr_as_fun(equation.program)(*of_f, *root)

        _, rhs = jvp(at_root, tuple(primals[0]), tuple(tangents[0]))
        slope = jaxpr_as_fun(tangent.program)(*primals[2], *root, *rhs)
        return out, [*map(lax.neg, slope), *map(zeros_like_tangent_aval, aux)]

    consts = equation.consts, solver.consts, tangent.consts
    return solver.out_tree.unflatten(_custom_root(*consts, guess))


linear_solve_p = Primitive("custom_linear_solve")
linear_solve_p.multiple_results = True


class _LinearSolveTuple(NamedTuple):
    """Something for each of the four programs; its name is JAX's, and is printed."""

    matvec: Any
    vecmat: Any
    solve: Any
    transpose_solve: Any

    def transpose(self):
        """Return it with the two pairs exchanged."""
        return type(self)(self.vecmat, self.matvec, self.transpose_solve, self.solve)


def split_solver_consts(values, lengths):
    """Return the constants of each program, and the other values: the right side."""
    found, values = [], list(values)
    for length in lengths:
        found.append(values[:length])
        values = values[length:]
    return _LinearSolveTuple(*found), values


def _solve_impl(*args, const_lengths, jaxprs):
    consts, b = split_solver_consts(args, const_lengths)
    return jaxpr_as_fun(jaxprs.solve)(*consts.solve, *b)


def _solve_shape(*avals, const_lengths, jaxprs):
    return jaxprs.solve.out_avals


def _solve_callee(eqn):
    """Return the solver's program, as one of all operands."""
    consts, b = split_solver_consts(eqn.invars, eqn.params["const_lengths"])
    solve = eqn.params["jaxprs"].solve
    given = solve.invars[: len(consts.solve)], solve.invars[len(consts.solve) :]
    others = consts._replace(solve=[])
    first, second, _, last = ([Var(x.aval) for x in part] for part in others)
    invars = [*first, *second, *given[0], *last, *given[1]]
    return ClosedJaxpr(solve.jaxpr.replace(invars=invars), solve.consts)


impl_rules[linear_solve_p], shape_rules[linear_solve_p] = _solve_impl, _solve_shape
callee_rules[linear_solve_p] = _solve_callee


def _solve_jvp(primals, tangents, const_lengths, jaxprs):
    params = {"const_lengths": const_lengths, "jaxprs": jaxprs}
    outs = linear_solve_p.bind(*primals, **params)
    consts, b = split_solver_consts(primals, const_lengths)
    moving, rhs = split_solver_consts(tangents, const_lengths)
    x, aux = outs[: len(b)], outs[len(b) :]
    if any(tangent is not None for tangent in moving.matvec):
        still, matvec = [None] * len(x), jaxpr_as_fun(jaxprs.matvec)
        _, moved = jvp_flat_fun(matvec, [*consts.matvec, *x], [*moving.matvec, *still])
        rhs = [add_or_none(r, None if m is None else -m) for r, m in zip(rhs, moved)]
    if all(tangent is None for tangent in rhs):
        return outs, [None] * len(outs)
    flat = [const for part in consts for const in part]
    slopes = linear_solve_p.bind(*flat, *instantiate_tangents(b, rhs), **params)
    return outs, slopes[: len(b)] + [None] * len(aux)


def _solve_transpose(cts, *operands, const_lengths, jaxprs):
    if jaxprs.transpose_solve is None:
        raise TypeError(
            "transpose_solve required for backwards mode automatic differentiation of "
            "custom_linear_solve"
        )
    consts, b = split_solver_consts(operands, const_lengths)
    flat = [const for part in consts.transpose() for const in part]
    if any(isinstance(const, UndefinedPrimal) for const in flat):
        raise NotImplementedError(
            "custom_linear_solve is linear in its right-hand side, and not in what its "
            "functions close over."
        )
    cts = [instantiate_cotangent(x.aval, ct) for x, ct in zip(b, cts)]
    lengths = const_lengths.transpose()
    params = {"const_lengths": lengths, "jaxprs": jaxprs.transpose()}
    found = linear_solve_p.bind(*flat, *cts, **params)
    return [None] * len(flat) + found[: len(b)]


jvp_rules[linear_solve_p] = _solve_jvp
transpose_rules[linear_solve_p] = _solve_transpose


def _solve_vmap(axis, args, dims, const_lengths, jaxprs):
    consts, b = split_solver_consts(args, const_lengths)
    places, b_dims = split_solver_consts(dims, const_lengths)
    b = [batch_dim_to_front(x, dim, axis.size) for x, dim in zip(b, b_dims)]
    programs = []
    for program, values, found in zip(jaxprs, consts, places):
        if program is not None:
            fun = batch_function(jaxpr_as_fun(program), [*found, *[0] * len(b)], axis)
            avals = list(map(typeof, [*values, *b]))
            program = ClosedJaxpr(*trace_to_jaxpr(fun, avals))
        programs.append(program)
    flat = [const for part in consts for const in part]
    params = {"const_lengths": const_lengths, "jaxprs": _LinearSolveTuple(*programs)}
    outs = linear_solve_p.bind(*flat, *b, **params)
    return outs, [0] * len(outs)


def _solve_write(eqn, writing):
    params = dict(sorted(eqn.params.items()))
    return pp_eqn_default(eqn, writing, params | {"jaxprs": str(params["jaxprs"])})


vmap_rules[linear_solve_p], pp_eqn_rules[linear_solve_p] = _solve_vmap, _solve_write


def custom_linear_solve(
    matvec: Callable,
    b: Any,
    solve: Callable,
    transpose_solve: Callable | None = None,
    symmetric: bool = False,
    has_aux: bool = False,
) -> Any:
    """Return the solution of a linear equation, with derivatives that are solutions.

    Args:
      matvec: a linear function from trees like `b` to such trees; derivatives are taken
        with respect to what it closes over.
      b: a tree of arrays, the right-hand side.
      solve: called with `matvec` and `b`; returns ``x`` with ``matvec(x) = b``.
      transpose_solve: the same for the transposed function; reverse mode needs it.
      symmetric: whether the function is its own transpose, so that `solve` serves both.
      has_aux: whether the solvers return a pair of the solution and other data.

    Returns:
      What `solve` returns.

    Raises:
      TypeError: if a function returns another structure; in reverse mode, if there is
        no `transpose_solve`.
      ValueError: if it returns other shapes.

    Reference: ``jax.lax.custom_linear_solve``.
    """
    if symmetric and transpose_solve is None:
        transpose_solve = solve

    def vecmat(y):
        return linear_transpose(matvec, b)(y)[0]

    def write(name, fun, has_aux=False):
        fun = functools.partial(_checked_shapes, name, fun, b, has_aux)
        return trace_solver(name, fun, (b,), b, has_aux, wanted="b")

    back = matvec if symmetric else vecmat
    found = [write("matvec", matvec), None]
    found += [write("solve", functools.partial(solve, matvec), has_aux), None]
    if transpose_solve is not None:
        found[1] = found[0] if symmetric else write("vecmat", vecmat)
        transposed = functools.partial(transpose_solve, back)
        found[3] = write("transpose_solve", transposed, has_aux)
    consts = [part.consts if part else [] for part in found]
    outs = linear_solve_p.bind(
        *(const for part in consts for const in part),
        *tree_flatten(b)[0],
        const_lengths=_LinearSolveTuple(*map(len, consts)),
        jaxprs=_LinearSolveTuple(*[part and part.program for part in found]),
    )
    return found[2].out_tree.unflatten(outs)


def _checked_shapes(name, fun, b, has_aux, x):
    """Return ``fun(x)``, which has the shapes of `b`.

    Raises:
      ValueError: if it has others.
    """
    out = fun(x)
    shapes = [
        [typeof(leaf).shape for leaf in tree_flatten(tree)[0]]
        for tree in (out[0] if has_aux and isinstance(out, tuple) else out, b)
    ]
    if shapes[0] != shapes[1]:
        raise ValueError(
            f"{name}() output shapes must match b, got {shapes[0]} and {shapes[1]}"
        )
    return out


# The calls with rules of their own: to run one is to run the program that it calls.

CUSTOM_CALL_PRIMITIVES = (
    remat_p,
    custom_jvp_call_p,
    custom_vjp_call_p,
    custom_vmap_p,
    linear_call_p,
    linear_solve_p,
)
