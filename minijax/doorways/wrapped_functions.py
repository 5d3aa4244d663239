"""Wrapped functions: a function, and the transformations that are put around it.

Reference: ``jax.extend.linear_util``.
"""

# Made from chapters/14_callbacks_rest.md by `make chapter`;
# edit the chapter, not this file.

import functools
import time
import warnings
import weakref
from collections.abc import Callable
from typing import Any, NamedTuple

from minijax.arrays.settings import config
from minijax.forgetting.remembering import trace_context

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
