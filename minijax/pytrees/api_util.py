# Made from chapters/05_pytrees.md by `make chapter`;
# edit the chapter, not this file.
"""A user's function on trees, as a function on flat lists.

Transformations work on flat lists of arrays; users call functions with trees of
them. `FlatCall` stands between the two: it takes the arguments of one call apart,
offers the function in flat form, and puts the results together.

Reference: ``jax.api_util``.
"""

import operator

from minijax.arrays.avals import typeof
from minijax.pytrees.call_names import CallNames
from minijax.pytrees.differences import differences
from minijax.pytrees.treedefs import PyTreeDef, tree_flatten, tree_structure


def check_callable(fun):
    """Raise a TypeError if `fun` cannot be called."""
    if not callable(fun):
        raise TypeError(f"Expected a callable value, got {fun!r}.")


def resolve_argnums(name, argnums, num_args, error=TypeError):
    """Return positions of arguments as a tuple of integers from 0 on.

    Args:
      name: of the transformation, for messages.
      argnums: an integer or a sequence of integers; negative ones count from the end.
      num_args: the number of positional arguments.
      error: the class of the error if there are not that many arguments.

    Raises:
      TypeError: if `argnums` is neither.
      error: if a position is too large.
      ValueError: if a negative position reaches beyond the first argument, or if two
        positions are the same.
    """
    positions = []
    for argnum in argnums if isinstance(argnums, (tuple, list)) else [argnums]:
        position = _as_integer(name, argnum)
        if position >= num_args:
            raise error(
                f"{name} with argnums={argnums} needs at least {position + 1} "
                f"positional arguments, but the call has {num_args}."
            )
        if position < -num_args:
            raise ValueError(
                f"{name} with argnums={argnums}: there is no argument {position} in a "
                f"call with {num_args} positional arguments."
            )
        positions.append(position % num_args)
    if len(set(positions)) < len(positions):
        raise ValueError(f"{name}: argnums={argnums} names an argument twice.")
    return tuple(positions)


def _as_integer(name, argnum):
    try:
        return operator.index(argnum)
    except TypeError:
        raise TypeError(
            f"{name} needs an integer or a tuple of integers as argnums, "
            f"got {argnum!r}."
        ) from None


class FlatCall(CallNames):
    """One call of a function on trees, offered as a function on a flat list of leaves.

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

    Attributes:
      leaves: the leaves that vary, a list.
      avals: their abstract values, a list.
      in_tree: the structure of the pair of varying `args`, a tuple, and `kwargs`.
      out_tree, aux_tree: the structures of result and other data, after a call.
      num_outs: the number of leaves of the result, after a call.

    Raises:
      TypeError: if `fun` cannot be called, or a varying leaf is no array or scalar.
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
        check_callable(fun)
        self.name, self.fun, self.args, self.has_aux = name, fun, tuple(args), has_aux
        self.kwargs, self.constants = kwargs or {}, constants or {}
        chosen = tuple(range(len(args))) if argnums is None else argnums
        self.argnums = resolve_argnums(name, chosen, len(args))
        varying = tuple([args[i] for i in self.argnums])
        self.leaves, self.in_tree = tree_flatten((varying, self.kwargs))
        self.avals = [self._input_aval(typeof, i) for i in range(len(self.leaves))]

    @property
    def args_tree(self):
        """The structure of the varying positional arguments, a tuple."""
        return self.in_tree.children()[0]

    def __call__(self, *flat):
        """Call the function with `flat` in place of the leaves.

        Returns:
          The list of the leaves of its result, followed by those of the other data.

        Raises:
          TypeError: if a leaf of the result is no array or scalar, or if `has_aux`
            and the function does not return a pair.
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


class _Leaf:
    """Stands for a leaf where only the structure is known."""

    def __repr__(self):
        return "an array"


def flatten_axes(what, axes, tree):
    """Spread axes over the leaves of a tree.

    Args:
      what: the name of `axes` for messages, such as ``"vmap in_axes"``.
      axes: a tree of integers and None that is a prefix of `tree`: one entry holds
        for the whole subtree at its place. None is an entry, not an empty tree.
      tree: a tree, or a `PyTreeDef`.

    Returns:
      A list with an entry for each leaf.

    Raises:
      ValueError: if `axes` is no prefix of `tree`; the message shows the paths.
    """
    leaves, prefix = tree_flatten(axes, _is_none)
    treedef = tree if isinstance(tree, PyTreeDef) else tree_structure(tree)
    counts = _leaves_behind(prefix, treedef)
    if counts is not None:
        return [axis for axis, count in zip(leaves, counts) for _ in range(count)]
    if tree is treedef:
        tree = tree.unflatten([_Leaf()] * tree.num_leaves)
    raise ValueError(
        f"{what} has to be a tree prefix of the values that it speaks of:\n  "
        + "\n  ".join(differences(prefix, tree, name=what.split()[-1]))
    )


def _is_none(axis):
    return axis is None


def _leaves_behind(prefix, treedef):
    """Return how many leaves stand behind each leaf of a prefix, None if it is none."""
    if prefix.kind is None:
        return [treedef.num_leaves]
    pairs = [*zip(prefix.children(), treedef.children())]
    if prefix.node_data() != treedef.node_data():
        return None
    if len(pairs) != len(prefix.children()) or len(pairs) != len(treedef.children()):
        return None
    counts = [_leaves_behind(*pair) for pair in pairs]
    return None if None in counts else sum(counts, [])


def flatten_like(treedef, tree, given, expected, error=ValueError):
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
    lines = differences(treedef, tree, exact=True, name=given)
    raise error(
        f"{given} must have the tree structure of {expected}, {treedef}, "
        f"but got {actual}:\n  " + "\n  ".join(lines)
    )
