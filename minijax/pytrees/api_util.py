"""A user's function on trees, as a function on flat lists.

Transformations work on flat lists of arrays; users call functions with trees of
them. `FlatCall` stands between the two: it takes the arguments of one call apart,
offers the function in flat form, and puts the results together.

Reference: ``jax.api_util``.
"""

# Made from chapters/05_pytrees.md by `make chapter`;
# edit the chapter, not this file.

from minijax.pytrees.call_names import CallArguments
from minijax.pytrees.differences import differences
from minijax.pytrees.treedefs import tree_flatten


class FlatCall(CallArguments):
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
    lines = "\n  ".join(differences(treedef, tree, exact=True, name=given))
    wanted = f"the tree structure of {expected}, {treedef}"
    raise error(f"{given} must have {wanted}, but got {actual}:\n  {lines}")
