"""The arguments of a call: their leaves, and what messages call them, ``x['w'][0]``."""

# Made from chapters/05_pytrees.md by `make chapter`;
# edit the chapter, not this file.

from minijax.arrays.avals import typeof
from minijax.pytrees.call_checks import (
    CallChecks,
    check_callable,
    positional_names,
    resolve_argnums,
)
from minijax.pytrees.key_paths import keystr
from minijax.pytrees.treedefs import tree_flatten, tree_leaves_with_path


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
        result = self.output(range(self.num_outs))
        return keystr(tree_leaves_with_path(result)[i][0])


class CallArguments(CallNames):
    """The arguments of one call, as leaves and a structure, and what each is called."""

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
