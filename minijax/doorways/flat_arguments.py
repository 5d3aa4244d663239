"""Arguments as flat lists, for transformations that are made outside the package.

Reference: ``jax.api_util``.
"""

# Made from chapters/14_callbacks_rest.md by `make chapter`;
# edit the chapter, not this file.

import functools
import inspect
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from minijax.arrays.avals import ShapedArray, typeof
from minijax.arrays.checks import integers
from minijax.doorways.wrapped_functions import (
    DebugInfo,
    WrappedFun,
    transformation2,
    transformation_with_aux2,
)
from minijax.pytrees import operations
from minijax.pytrees.call_names import argument_names
from minijax.pytrees.operations import tree_unflatten, treedef_children
from minijax.pytrees.treedefs import PyTreeDef, tree_flatten


@transformation_with_aux2
def flatten_fun(f: Any, store: Any, in_tree: PyTreeDef, *args_flat: Any) -> list:
    """Turn a function of trees into one of flat lists; the pair has its result's tree.

    Reference: ``jax.api_util.flatten_fun``.
    """
    args, kwargs = tree_unflatten(in_tree, args_flat)
    leaves, tree = tree_flatten(f(*args, **kwargs))
    store.store(tree)
    return leaves


@transformation_with_aux2
def flatten_fun_nokwargs(f: Any, store: Any, in_tree: PyTreeDef, *flat: Any) -> list:
    """Turn a function of trees, without keyword arguments, into one of flat lists.

    Reference: ``jax.api_util.flatten_fun_nokwargs``.
    """
    leaves, tree = tree_flatten(f(*tree_unflatten(in_tree, flat)))
    store.store(tree)
    return leaves


class _Static:
    """An argument that is compared by its value and by its class."""

    __slots__ = ("val",)

    def __init__(self, val):
        self.val = val

    def __hash__(self):
        return hash(self.val)

    def __eq__(self, other):
        return type(self.val) is type(other.val) and self.val == other.val


class _Unhashable(_Static):
    """An argument that is equal to itself alone."""

    __slots__ = ()
    __hash__ = object.__hash__
    __eq__ = object.__eq__


@transformation2
def _with_fixed(f, dyn_argnums, fixed, *dynamic):
    args = [None] * (len(fixed) + len(dynamic))
    for position, arg in zip(dyn_argnums, dynamic):
        args[position] = arg
    others = iter(fixed)
    free = {*range(len(args))} - {*dyn_argnums}
    for position in sorted(free):
        args[position] = next(others).val
    return f(*args)


def argnums_partial(
    f: WrappedFun,
    dyn_argnums: int | Sequence[int],
    args: Sequence,
    require_static_args_hashable: bool = True,
) -> tuple[WrappedFun, tuple]:
    """Fix all arguments but some.

    Args:
      f: a `WrappedFun`.
      dyn_argnums: the positions of the others.
      args: all arguments.
      require_static_args_hashable: whether the fixed ones need a hash.

    Returns:
      A function of the others, and the tuple of these.

    Reference: ``jax.api_util.argnums_partial``.
    """
    wanted = dyn_argnums if isinstance(dyn_argnums, Iterable) else [dyn_argnums]
    positions = tuple([n % len(args) for n in integers(wanted, "argnums")])
    kind = _Static if require_static_args_hashable else _Unhashable
    fixed = []
    for position, arg in enumerate(args):
        if position in positions:
            continue
        if kind is _Static and type(arg).__hash__ is None:
            raise ValueError(
                "Non-hashable static arguments are not supported, as this can lead to "
                f"unexpected cache-misses. Static argument (index {position}) of type "
                f"{type(arg)} for function {f.__name__} is non-hashable."
            )
        fixed.append(kind(arg))
    chosen = tuple([args[position] for position in positions])
    return _with_fixed(f, positions, tuple(fixed)), chosen


def donation_vector(
    donate_argnums: Any, donate_argnames: Any, in_tree: PyTreeDef, kws: bool = True
) -> tuple[bool, ...]:
    """Return for each leaf of the arguments whether it is donated.

    Reference: ``jax.api_util.donation_vector``.
    """
    positional, named = in_tree, None
    if kws:
        positional, named = treedef_children(in_tree)
    parts = [*enumerate(treedef_children(positional))]
    flags = [number in donate_argnums for number, _ in parts]
    trees = [tree for _, tree in parts]
    if named is not None:
        names = sorted(named.unflatten(range(named.num_leaves)))
        flags += [name in donate_argnames for name in names]
        trees += treedef_children(named)
    pairs = zip(flags, trees)
    return tuple([flag for flag, tree in pairs for _ in range(tree.num_leaves)])


def rebase_donate_argnums(
    donate_argnums: Iterable[int], static_argnums: Iterable[int]
) -> tuple[int, ...]:
    """Return positions of donated arguments among those that are not static.

    Reference: ``jax.api_util.rebase_donate_argnums``.
    """
    donated, static = sorted({*donate_argnums}), sorted({*static_argnums})
    if {*donated} & {*static}:
        raise ValueError(
            f"`static_argnums` {static} and `donate_argnums` {donated} cannot "
            "intersect."
        )
    return tuple([each - sum(other < each for other in static) for each in donated])


def flatten_axes(
    name: str,
    treedef: PyTreeDef,
    axis_tree: Any,
    *,
    kws: bool = False,
    tupled_args: bool = False,
) -> list:
    """Spread a tree of axes over the leaves of a larger tree.

    Args:
      name: of the axes, for messages.
      treedef: the structure of the larger tree.
      axis_tree: a tree of axes and None, a prefix of it.
      kws, tupled_args: say more in JAX's message; the one here shows the paths.

    Reference: ``jax.api_util.flatten_axes``.
    """
    return operations.flatten_axes(name, axis_tree, treedef)


def shaped_abstractify(x: Any) -> ShapedArray:
    """Return the abstract value of an array, a number or an abstract value.

    Reference: ``jax.api_util.shaped_abstractify``.
    """
    return x if isinstance(x, ShapedArray) else typeof(x)


def safe_map(f: Callable, *args: Iterable) -> list:
    """Return the list of results of a function on sequences of one length.

    Reference: ``jax.api_util.safe_map``.
    """
    lists = [*map(list, args)]
    if len({*map(len, lists)}) > 1:
        raise ValueError(f"length mismatch: {[*map(len, lists)]}")
    return [*map(f, *lists)]


def debug_info(
    traced_for: str,
    fun: Callable,
    args: Sequence[Any],
    kwargs: dict[str, Any],
    *,
    static_argnums: Sequence[int] = (),
    static_argnames: Sequence[str] = (),
    result_paths_thunk: Any = None,
    sourceinfo: str | None = None,
    signature: Any = None,
) -> DebugInfo:
    """Return what messages say of a function that is called with some arguments.

    Args:
      traced_for: the name of a transformation.
      fun: the function.
      args, kwargs: its arguments.
      static_argnums, static_argnames: of those that have no leaves.
      result_paths_thunk: a function that returns names of the results.
      sourceinfo: the name of the function, its file and its line, in one text.
      signature: not needed; the names come from the function.

    Reference: ``jax.api_util.debug_info``.
    """
    moving = [i for i in range(len(args)) if i not in static_argnums]
    others = {k: v for k, v in kwargs.items() if k not in static_argnames}
    names = tuple(argument_names(fun, tuple(args), others, moving))
    where = _place_of(fun) if sourceinfo is None else sourceinfo
    return DebugInfo(traced_for, where, names, result_paths_thunk)


def _place_of(fun):
    """Return the name of a function, with its file and line where it has them."""
    while isinstance(fun, functools.partial):
        fun = fun.func
    fun = inspect.unwrap(fun)
    name, code = getattr(fun, "__name__", "<unknown>"), getattr(fun, "__code__", None)
    return f"{name} at {code.co_filename}:{code.co_firstlineno}" if code else name
