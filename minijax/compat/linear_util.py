"""Wrapped functions, flat arguments: for transformations made outside the package.

References: ``jax.extend.linear_util``, ``jax.api_util``.
"""

# Made from chapters/14_callbacks_rest.md by `make chapter`;
# edit the chapter, not this file.

import functools
import inspect
import time
import warnings
import weakref
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from minijax.arrays.array import ShapedArray, typeof
from minijax.arrays.dtypes import config
from minijax.arrays.numerics import canonicalize_int_tuple
from minijax.pytrees import tree_operations as operations
from minijax.pytrees.api_util import argument_names
from minijax.pytrees.tree_operations import tree_unflatten, treedef_children
from minijax.pytrees.tree_util import PyTreeDef, tree_flatten
from minijax.rematerialization.caching import trace_context

# Wrapped functions: a function, and the transformations that are put around it.

_NOTHING = object()


class Store:
    """A place for one value, which a transformation writes while it runs."""

    __slots__ = ("_value",)

    def __init__(self):
        self.reset()

    def reset(self):
        """Forget the value."""
        self._value = _NOTHING

    def __bool__(self):
        return self._value is not _NOTHING

    def store(self, value):
        """Keep a value; raise if there is one."""
        if self:
            raise StoreException("Store occupied")
        self._value = value

    @property
    def val(self):
        """The value; raise if there is none."""
        if not self:
            raise StoreException("Store empty")
        return self._value


class EqualStore(Store):
    """A store that may be written again, with an equal value."""

    __slots__ = ()

    def store(self, value):
        """Keep a value; raise if there is another one."""
        if self and not bool(self._value == value):
            raise StoreException("Store occupied with not-equal value")
        self._value = value


class DebugInfo(NamedTuple):
    """What messages say of a function: for whom it is traced, its name, its arguments.

    Attributes:
      traced_for: the name of a transformation.
      func_src_info: the name of the function, and perhaps its file and line.
      arg_names, result_paths: a text for each leaf; None if they are not known.
    """

    traced_for: str
    func_src_info: str
    arg_names: tuple | None
    result_paths: Any

    @property
    def func_name(self):
        """The name of the function."""
        return self.func_src_info.split(" ")[0]


class StoreException(Exception):
    """A store was read before it was written, or written twice.

    Reference: ``jax.extend.linear_util.StoreException``.
    """


class WrappedFun:
    """A function with transformations around it, the outermost first.

    Args:
      f: the function.
      f_transformed: what a call runs.
      transforms: pairs of a transformation and its static arguments.
      stores: for each the store of its other result, or None.
      params: pairs of keyword arguments for `f`.
      debug_info: a `DebugInfo`.

    Reference: ``jax.extend.linear_util.WrappedFun``.
    """

    __slots__ = (
        "__weakref__", "debug_info", "f", "f_transformed", "in_type", "params",
        "stores", "transforms",
    )  # fmt: skip

    def __init__(
        self,
        f: Callable,
        f_transformed: Callable,
        transforms: tuple,
        stores: tuple,
        params: tuple,
        in_type: Any,
        debug_info: Any,
    ) -> None:
        self.f, self.f_transformed = f, f_transformed
        self.transforms, self.stores = transforms, stores
        self.params, self.in_type, self.debug_info = params, in_type, debug_info

    @property
    def __name__(self) -> str:
        return getattr(self.f, "__name__", "<unnamed wrapped function>")

    def wrap(self, gen: Callable, gen_static_args: tuple, out_store: Any) -> Any:
        """Return the function with one more transformation around it."""
        first = gen_static_args if out_store is None else (out_store, *gen_static_args)
        return WrappedFun(
            self.f,
            functools.partial(gen, self.f_transformed, *first),
            ((gen, gen_static_args), *self.transforms),
            (out_store, *self.stores),
            self.params,
            None,
            self.debug_info,
        )

    def populate_stores(self, stores: tuple) -> None:
        """Copy values from other stores into those that are there."""
        for own, other in zip(self.stores, stores):
            if own is not None:
                own.store(other.val)

    def call_wrapped(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function with all that is around it."""
        return self.f_transformed(*args, **kwargs)

    def _key(self):
        return self.f, self.transforms, self.params, self.in_type, self.debug_info

    def __hash__(self) -> int:
        return hash(self._key())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, WrappedFun) and self._key() == other._key()

    def __repr__(self) -> str:
        names = [
            f"{i}   : {getattr(gen, '__name__', gen)}   {args}"
            for i, (gen, args) in enumerate(self.transforms)
        ]
        return "\n".join(["Wrapped function:", *names, f"Core: {self.__name__}", ""])


def wrap_init(f: Callable, params: Any = None, *, debug_info: Any = None) -> WrappedFun:
    """Return a function as a `WrappedFun` without transformations.

    Args:
      f: the function.
      params: a dictionary of keyword arguments that every call gets.
      debug_info: what ``minijax.api_util.debug_info`` returns.

    Reference: ``jax.extend.linear_util.wrap_init``.
    """
    if debug_info is None:
        warnings.warn(
            "linear_util.wrap_init is missing a DebugInfo object: api_util.debug_info "
            "makes one.",
            DeprecationWarning,
            stacklevel=2,
        )
        name = "missing_debug_info"
        debug_info = DebugInfo(name, f"<{name}>", None, None)
    given = params or {}
    pairs = tuple(sorted(given.items()))
    info = debug_info._replace(result_paths=None)
    return WrappedFun(f, functools.partial(f, **given), (), (), pairs, None, info)


def transformation2(gen: Callable) -> Callable:
    """Make a transformation of a function ``gen(f, *static_args, *args, **kwargs)``.

    Returns:
      A function from a `WrappedFun` and static arguments to a `WrappedFun`.

    Reference: ``jax.extend.linear_util.transformation2``.
    """

    def around(fun, *gen_static_args):
        return fun.wrap(gen, gen_static_args, None)

    return _named_after(gen, around)


def transformation_with_aux2(gen: Callable) -> Callable:
    """Make a transformation of ``gen(f, store, *static_args, *args, **kwargs)``.

    Returns:
      A function from a `WrappedFun` and static arguments to a pair: a `WrappedFun`, and
      a function that returns what was put into the store when it ran.

    Reference: ``jax.extend.linear_util.transformation_with_aux2``.
    """

    def around(fun, *gen_static_args, use_eq_store=False, unk_names=False):
        store = EqualStore() if use_eq_store else Store()
        wrapped = fun.wrap(gen, gen_static_args, store)
        if unk_names:
            unknown = {"arg_names": None, "result_paths": None}
            wrapped.debug_info = wrapped.debug_info._replace(**unknown)
        return wrapped, lambda: store.val

    return _named_after(gen, around)


def _named_after(gen, function):
    function.__name__, function.__doc__ = gen.__name__, gen.__doc__
    function.__module__, function.__qualname__ = gen.__module__, gen.__qualname__
    return function


def transformation(gen: Callable) -> Callable:
    """Make a transformation of a generator.

    It yields arguments and keyword arguments, is sent the result, and yields another.

    Reference: ``jax.extend.linear_util.transformation``.
    """

    @functools.wraps(gen)
    def resumed(f, *args, **kwargs):
        return _sent(gen(*args, **kwargs), f)

    return transformation2(resumed)


def transformation_with_aux(gen: Callable) -> Callable:
    """Make a transformation of a generator that yields a result and other data.

    Reference: ``jax.extend.linear_util.transformation_with_aux``.
    """

    @functools.wraps(gen)
    def resumed(f, store, *args, **kwargs):
        result, aux = _sent(gen(*args, **kwargs), f)
        store.store(aux)
        return result

    return transformation_with_aux2(resumed)


def _sent(steps, f):
    args, kwargs = next(steps)
    return steps.send(f(*args, **kwargs))


def merge_linear_aux(aux1: Callable, aux2: Callable) -> tuple:
    """Return which of two stores was written, and its value.

    Reference: ``jax.extend.linear_util.merge_linear_aux``.
    """
    found = []
    for number, aux in enumerate((aux1, aux2)):
        try:
            found.append((not number, aux()))
        except StoreException:
            continue
    if len(found) == 1:
        return found[0]
    raise StoreException("both stores occupied" if found else "neither store occupied")


def cache(call: Callable, *, explain: Callable | None = None) -> Callable:
    """Remember results of a function of a `WrappedFun` and more.

    Args:
      call: the function.
      explain: called at each miss, while `jax_explain_cache_misses` is on, with the
        function, whether it is new, its results so far, the key, and the seconds.

    Returns:
      A function with `cache_clear`, and `evict_function` for a function's results.

    Reference: ``jax.extend.linear_util.cache``.
    """
    caches: weakref.WeakKeyDictionary = weakref.WeakKeyDictionary()

    def remembering(fun, *args):
        known = caches.setdefault(fun.f, {})
        key = fun.transforms, fun.params, fun.in_type, args, trace_context()
        if key in known:
            result, stores = known[key]
            fun.populate_stores(stores)
            return result
        first, start = not known, time.perf_counter()
        result = call(fun, *args)
        if explain and config.jax_explain_cache_misses:
            explain(fun, first, known, key, time.perf_counter() - start)
        known[key] = result, fun.stores
        return result

    remembering.cache_clear = caches.clear
    remembering.evict_function = lambda f: caches.pop(f, None)
    return remembering


# Arguments as flat lists, for transformations that are made outside the package.


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
    positions = tuple(
        [n % len(args) for n in canonicalize_int_tuple(wanted, "argnums")]
    )
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
