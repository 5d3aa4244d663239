"""Functions of trees as functions of flat lists, names of arguments, jvp of trees.

Transformations work on flat lists of arrays; users call functions with trees of
them. `FlatCall` stands between the two: it takes the arguments of one call apart,
offers the function in flat form, and puts the results together.

References: ``jax.api_util``, ``jax.jvp``.
"""

# Made from chapters/05_pytrees.md by `make chapter`;
# edit the chapter, not this file.
# Amended in chapters/05_pytrees_rest.md: argument_names, CallNames.names,
#   FlatCall.__init__, FlatCall.__call__, FlatCall.output, FlatCall.aux,
#   FlatCall._split_aux, jvp (74065de7).
# Amended in chapters/28_indexing_rest.md: jvp (267608e8).

from collections.abc import Callable
from functools import wraps
from typing import Any

from minijax.arrays.array import typeof
from minijax.forward_mode.jvp import jvp_flat_fun
from minijax.pytrees.argument_checks import (
    CallChecks,
    check_callable,
    check_primals_and_tangents,
    instantiate_tangent,
    is_ref,
    lent_refs,
    positional_names,
    refs_in,
    resolve_argnums,
    tangent_leaf,
)
from minijax.pytrees.registry import keystr, register_pytree_node, structure_differences
from minijax.pytrees.tree_util import (
    tree_flatten,
    tree_leaves,
    tree_leaves_with_path,
    tree_map,
    tree_structure,
)

# The arguments of a call: their leaves, and what messages call them, ``x['w'][0]``.


def argument_names(fun, args, kwargs, argnums=None):
    """Return what the caller of a function calls each leaf of its arguments.

    Args:
      fun: the function, whose signature is asked for the names of parameters.
      args: tuple of positional arguments.
      kwargs: dictionary of keyword arguments.
      argnums: the positions to include; all, if None.

    Returns:
      A list of texts such as ``x['w'][0]``, in the order of the leaves.
    """
    labels = positional_names(fun, len(args))
    chosen = range(len(args)) if argnums is None else argnums
    named = [(labels[i], args[i]) for i in chosen]
    named += [(key, kwargs[key]) for key in sorted(kwargs)]
    return [
        label + keystr(path)
        for label, tree in named
        for path, _ in tree_leaves_with_path(tree)
    ]


class CallNames(CallChecks):
    """What a call, its leaves and its results are called in messages."""

    @property
    def args_tree(self):
        """The structure of the varying positional arguments, a tuple."""
        return self.in_tree.children()[0]

    @property
    def fun_name(self):
        """What the function is called."""
        inner = getattr(self.fun, "func", self.fun)  # of a functools.partial
        return getattr(inner, "__name__", None) or type(inner).__name__

    def names(self):
        """Return what the user calls each varying leaf, such as ``x['w'][0]``."""
        return argument_names(self.fun, self.args, self.kwargs, self.argnums)

    def name_of(self, i):
        """Return what the user calls the leaf number `i`."""
        return self.names()[i]

    def out_name(self, i):
        """Return the path of output leaf `i`, such as ``['loss'][0]``, after a call."""
        result = self.output(range(self.out_tree.num_leaves))
        return keystr(tree_leaves_with_path(result)[i][0])


# A user's function on trees, as a function on flat lists.


class FlatCall(CallNames):
    """One call of a function on trees, offered as a function on a flat list of leaves.

    Attributes:
      leaves: the leaves that vary, a list.
      avals: their abstract values, a list.
      in_tree: the structure of the pair of varying positional arguments, a tuple, and
        keyword arguments.
      out_tree: the structure of the result, after a call.
    """

    def __init__(
        self,
        name,
        fun,
        args,
        kwargs=None,
        *,
        argnums=None,
        constants=None,
        has_aux=False,
        typeof=typeof,
    ):
        """Take the arguments of a call apart.

        Args:
          name: of the transformation, for messages.
          fun: the user's function.
          args: tuple of its positional arguments, trees of arrays.
          kwargs: dictionary of keyword arguments that vary as well.
          argnums: which positional arguments vary (an integer or a tuple of them); the
            others stay as they are. None: all vary.
          constants: dictionary of keyword arguments that stay as they are.
          has_aux: whether `fun` returns a pair, of a result and other data.
          typeof: from a varying leaf to its abstract value; raises a TypeError for what
            is no array or scalar.

        Raises:
          TypeError: if `fun` cannot be called, or a varying leaf is no array or scalar.
        """
        check_callable(fun)
        self.name, self.fun, self.args, self.has_aux = name, fun, tuple(args), has_aux
        self.kwargs, self.constants = kwargs or {}, constants or {}
        chosen = tuple(range(len(args))) if argnums is None else argnums
        self.argnums = resolve_argnums(name, chosen, len(args))
        varying = tuple([args[i] for i in self.argnums])
        self.leaves, self.in_tree = tree_flatten((varying, self.kwargs))
        self.avals = [self._input_aval(typeof, i) for i in range(len(self.leaves))]

    def __call__(self, *flat):
        """Call the function with `flat` in place of the leaves.

        It notes the structures of result and other data, `out_tree` and `aux_tree`, and
        the number of leaves of the result, `num_outs`.

        Returns:
          The list of the leaves of its result, followed by those of the other data.

        Raises:
          TypeError: if a leaf of the result is no array or scalar, or if `has_aux` and
            the function does not return a pair.
        """
        varying, kwargs = self.in_tree.unflatten(flat)
        args = list(self.args)
        for position, arg in zip(self.argnums, varying):
            args[position] = arg
        result = self.fun(*args, **kwargs, **self.constants)
        result, aux = self._split_aux(result) if self.has_aux else (result, None)
        outs, self.out_tree = tree_flatten(result)
        aux_leaves, self.aux_tree = tree_flatten(aux)
        self.num_outs = len(outs)
        for i, out in enumerate(outs):
            self._check_output(out, i)
        return outs + aux_leaves

    def output(self, flat):
        """Return the result as a tree, from a list such as a call returns."""
        return self.out_tree.unflatten(flat[: self.num_outs])

    def aux(self, flat):
        """Return the other data as a tree, from a list such as a call returns."""
        return self.aux_tree.unflatten(flat[self.num_outs :])

    def _split_aux(self, result):
        if isinstance(result, (tuple, list)) and len(result) == 2:
            return result
        raise TypeError(
            f"With has_aux=True, {self.fun_name} should return a pair (result, aux), a "
            f"two-element tuple, but it returned {result!r} of type "
            f"{type(result).__name__}."
        )


def flatten_like(
    treedef: Any, tree: Any, given: str, expected: str, error: Any = ValueError
) -> list:
    """Return the leaves of a tree that has to have a given structure.

    Args:
      treedef: the structure.
      tree: the tree.
      given: what `tree` is called in messages, such as ``"tangents"``.
      expected: what has the structure, such as ``"primals"``.
      error: the class of the error.

    Raises:
      error: if the structures differ; the message shows both, and the paths.
    """
    leaves, actual = tree_flatten(tree)
    if actual == treedef:
        return leaves
    lines = "\n  ".join(structure_differences(treedef, tree, exact=True, name=given))
    wanted = f"the tree structure of {expected}, {treedef}"
    raise error(f"{given} must have {wanted}, but got {actual}:\n  {lines}")


# Forward-mode differentiation of functions on trees of arrays.


class Lent:
    """What a reference holds, marked as such in a tree of arguments.

    Args:
      value: the array.
      kind: the class of the reference.
    """

    __slots__ = ("kind", "value")

    def __init__(self, value, kind):
        self.value, self.kind = value, kind


register_pytree_node(
    Lent, lambda x: ((x.value,), x.kind), lambda kind, values: Lent(values[0], kind)
)


def returning_refs(fun):
    """Return a function that gets `Lent` arrays where `fun` gets references.

    It returns the pair of the result, and the list of what the references hold then.
    """

    @wraps(fun)
    def pure(*args, **kwargs):
        made = []

        def stand_in(x):
            if not isinstance(x, Lent):
                return x
            made.append(x.kind.stand_in(x.value))
            return made[-1]

        trees = tree_map(
            stand_in, (args, kwargs), is_leaf=lambda x: isinstance(x, Lent)
        )
        result = fun(*trees[0], **trees[1])
        return result, [ref.read() for ref in made]

    return pure


class Loan:
    """A call of a transformed function, with arrays in place of references.

    Args:
      name: of the transformation, for messages.
      fun: the function whose arguments they are.
      args, kwargs: its arguments.
      flags: for each leaf whether it is lent if it is a reference; None for all.

    Attributes:
      refs: the references.
      args, kwargs: the arguments, with `Lent` in place of them.

    Raises:
      ValueError: if a reference is there twice.
    """

    def __init__(self, name, fun, args, kwargs=None, flags=None):
        leaves, tree = tree_flatten((args, kwargs or {}))
        flags = [is_ref(x) for x in leaves] if flags is None else flags
        self.refs = [x for x, flag in zip(leaves, flags) if flag]
        check_aliases(name, fun, args, kwargs or {})
        pairs = zip(leaves, flags)
        lent = [Lent(x.read(), type(x)) if flag else x for x, flag in pairs]
        self.args, self.kwargs = tree.unflatten(lent)
        self._call = name, fun, args, kwargs or {}

    def refuse_closure(self, ref):
        """Raise, since one of the references is used as well as its stand-in."""
        name, fun, args, kwargs = self._call
        labels = argument_names(fun, args, kwargs)
        place = [x is ref for x in tree_leaves((args, kwargs))].index(True)
        raise ValueError(
            f"when tracing {getattr(fun, '__name__', fun)} for {name}, a mutable array "
            f"reference of type {ref.str_short()} was both closed over and passed as "
            f"the argument {labels[place]}. Use the argument alone."
        )

    def call(self, function):
        """Return the result of a function that `returning_refs` made, and write."""
        token = lent_refs.set((*lent_refs.get(), self))
        try:
            result, finals = function(*self.args, **self.kwargs)
        finally:
            lent_refs.reset(token)
        for ref, final in zip(self.refs, finals):
            ref.write(final)
        return result


def holds_refs(tree):
    """Return whether a tree has references among its leaves."""
    return bool(refs_in(tree_leaves(tree)))


def check_aliases(name, fun, args, kwargs):
    """Raise if a reference is there twice among the arguments of a call."""
    first: dict = {}
    for i, leaf in enumerate(tree_leaves((args, kwargs))):
        if is_ref(leaf) and first.setdefault(leaf, i) != i:
            labels = argument_names(fun, args, kwargs)
            raise ValueError(
                "only one reference to a mutable array may be passed as an argument to "
                f"a function, but when tracing {getattr(fun, '__name__', fun)} for "
                f"{name} the mutable array reference of type {leaf.str_short()} "
                f"appeared at both {labels[first[leaf]]} and {labels[i]}."
            )


def _jvp_of_refs(fun, primals, tangents, has_aux):
    """Move what references hold by what the references among the tangents hold."""

    def pure(*args):
        result, finals = returning_refs(fun)(*args)
        result, aux = result if has_aux else (result, None)
        return (result, finals), aux

    values, moves = Loan("jvp", fun, primals), Loan("jvp", fun, tangents)
    given = values.args, moves.args
    (out, finals), (slope, final_slopes), aux = jvp(pure, *given, has_aux=True)
    for ref, final in zip(values.refs + moves.refs, finals + final_slopes):
        ref.write(final)
    return (out, slope, aux) if has_aux else (out, slope)


def jvp(fun: Callable, primals: Any, tangents: Any, has_aux: bool = False) -> tuple:
    """Return the value of a function and its derivative in one direction.

    Args:
      fun: a function of arrays, scalars and trees of them.
      primals: tuple (or list) of its arguments.
      tangents: the direction: a tuple (or list) with the tree structure of `primals`,
        whose leaves have the shapes and dtypes of theirs; dtype ``float0`` for
        integers and booleans; a reference for a reference, where the direction of what
        that one holds is changed with it.
      has_aux: whether `fun` returns a pair ``(result, aux)``.

    Returns:
      The pair ``(primals_out, tangents_out)``, two trees of the same structure; with
      `has_aux` the triple ``(primals_out, tangents_out, aux)``.

    Raises:
      TypeError: if `fun` cannot be called, a leaf is no array, the structures differ
        or a dtype does not fit.
      ValueError: if a tangent does not have the shape of its primal.

    Reference: ``jax.jvp``.
    """
    check_callable(fun)
    check_primals_and_tangents(primals, tangents)
    if holds_refs(primals):
        return _jvp_of_refs(fun, tuple(primals), tuple(tangents), has_aux)
    call = FlatCall("jvp", fun, primals, has_aux=has_aux)
    structure = tree_structure(primals)
    given = flatten_like(structure, tangents, "tangents", "primals", TypeError)
    directions = [tangent_leaf(call, i, tangent) for i, tangent in enumerate(given)]
    values, slopes = jvp_flat_fun(call, call.leaves, directions)
    slopes = list(map(instantiate_tangent, values[: call.num_outs], slopes))
    results = call.output(values), call.output(slopes)
    return (*results, call.aux(values)) if has_aux else results
