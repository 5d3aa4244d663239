"""Implicit differentiation: derivatives of a solution, from the equation it solves.

Reference: ``jax.lax.custom_root``, ``jax.lax.custom_linear_solve``.
"""

# Made from chapters/11_own_rules_rest.md by `make chapter`;
# edit the chapter, not this file.

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

from minijax import lax
from minijax.arrays.array import shape_rules
from minijax.arrays.avals import typeof
from minijax.batching.rules import at_front, vmap_rules
from minijax.core import Primitive, impl_rules
from minijax.forward.rules import (
    add_tangents,
    instantiate,
    jvp_rules,
    zeros_like_tangent,
)
from minijax.forward.trace import jvp_flat
from minijax.jaxprs.jaxpr import ClosedJaxpr, Var, jaxpr_as_fun
from minijax.jaxprs.printing import print_rules, write_plainly
from minijax.jaxprs.staging import trace_to_jaxpr
from minijax.linear.linearization import linearize
from minijax.own_rules.flat_functions import mapped, take_apart
from minijax.own_rules.function_calls import callee_rules, write_down
from minijax.own_rules.tangent_rules import custom_jvp
from minijax.pytrees.forward_api import jvp
from minijax.pytrees.treedefs import tree_flatten
from minijax.reverse.backwards import dense_cotangent
from minijax.reverse.linear_functions import linear_transpose
from minijax.reverse.transposition import Linear, transpose_rules


class Written(NamedTuple):
    """A function of trees, written down.

    Args:
      program: the `ClosedJaxpr`, from what it closes over and its arguments.
      consts: the values of what it closes over.
      out_tree: the structure of its result.
    """

    program: Any
    consts: list
    out_tree: Any


def written(name, fun, args, like, has_aux=False, wanted="initial_guess"):
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
    leaves, function = take_apart(name, fun, args, ())
    program, consts = write_down(function, leaves)
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
    return Written(program, consts, tree)


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
    equation = written("f", f, one, initial_guess)
    solver = written("solve", functools.partial(solve, f), one, initial_guess, has_aux)
    tangent = written("tangent_solve", solve_linearized, two, initial_guess, wanted="x")

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
        return out, [*map(lax.neg, slope), *map(zeros_like_tangent, aux)]

    consts = equation.consts, solver.consts, tangent.consts
    return solver.out_tree.unflatten(_custom_root(*consts, guess))


linear_solve_p = Primitive("custom_linear_solve")


class _LinearSolveTuple(NamedTuple):
    """Something for each of the four programs; its name is JAX's, and is printed."""

    matvec: Any
    vecmat: Any
    solve: Any
    transpose_solve: Any

    def transpose(self):
        """Return it with the two pairs exchanged."""
        return type(self)(self.vecmat, self.matvec, self.transpose_solve, self.solve)


def groups(values, lengths):
    """Return the constants of each program, and the other values: the right side."""
    found, values = [], list(values)
    for length in lengths:
        found.append(values[:length])
        values = values[length:]
    return _LinearSolveTuple(*found), values


def _solve_impl(*args, const_lengths, jaxprs):
    consts, b = groups(args, const_lengths)
    return jaxpr_as_fun(jaxprs.solve)(*consts.solve, *b)


def _solve_shape(*avals, const_lengths, jaxprs):
    return jaxprs.solve.out_avals


def _solve_callee(eqn):
    """Return the solver's program, as one of all operands."""
    consts, b = groups(eqn.invars, eqn.params["const_lengths"])
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
    consts, b = groups(primals, const_lengths)
    moving, rhs = groups(tangents, const_lengths)
    x, aux = outs[: len(b)], outs[len(b) :]
    if any(tangent is not None for tangent in moving.matvec):
        still, matvec = [None] * len(x), jaxpr_as_fun(jaxprs.matvec)
        _, moved = jvp_flat(matvec, [*consts.matvec, *x], [*moving.matvec, *still])
        rhs = [add_tangents(r, None if m is None else -m) for r, m in zip(rhs, moved)]
    if all(tangent is None for tangent in rhs):
        return outs, [None] * len(outs)
    flat = [const for part in consts for const in part]
    slopes = linear_solve_p.bind(*flat, *instantiate(b, rhs), **params)
    return outs, slopes[: len(b)] + [None] * len(aux)


def _solve_transpose(cts, *operands, const_lengths, jaxprs):
    if jaxprs.transpose_solve is None:
        raise TypeError(
            "transpose_solve required for backwards mode automatic differentiation of "
            "custom_linear_solve"
        )
    consts, b = groups(operands, const_lengths)
    flat = [const for part in consts.transpose() for const in part]
    if any(isinstance(const, Linear) for const in flat):
        raise NotImplementedError(
            "custom_linear_solve is linear in its right-hand side, and not in what its "
            "functions close over."
        )
    cts = [dense_cotangent(x.aval, ct) for x, ct in zip(b, cts)]
    lengths = const_lengths.transpose()
    params = {"const_lengths": lengths, "jaxprs": jaxprs.transpose()}
    found = linear_solve_p.bind(*flat, *cts, **params)
    return [None] * len(flat) + found[: len(b)]


jvp_rules[linear_solve_p] = _solve_jvp
transpose_rules[linear_solve_p] = _solve_transpose


def _solve_vmap(axis, args, dims, const_lengths, jaxprs):
    consts, b = groups(args, const_lengths)
    places, b_dims = groups(dims, const_lengths)
    b = [at_front(x, dim, axis.size) for x, dim in zip(b, b_dims)]
    programs = []
    for program, values, found in zip(jaxprs, consts, places):
        if program is not None:
            fun = mapped(jaxpr_as_fun(program), [*found, *[0] * len(b)], axis)
            avals = list(map(typeof, [*values, *b]))
            program = ClosedJaxpr(*trace_to_jaxpr(fun, avals))
        programs.append(program)
    flat = [const for part in consts for const in part]
    params = {"const_lengths": const_lengths, "jaxprs": _LinearSolveTuple(*programs)}
    outs = linear_solve_p.bind(*flat, *b, **params)
    return outs, [0] * len(outs)


def _solve_write(eqn, writing):
    params = dict(sorted(eqn.params.items()))
    return write_plainly(eqn, writing, params | {"jaxprs": str(params["jaxprs"])})


vmap_rules[linear_solve_p], print_rules[linear_solve_p] = _solve_vmap, _solve_write


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
        return written(name, fun, (b,), b, has_aux, wanted="b")

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
