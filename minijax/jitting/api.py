"""jit: a function as a program; and the switches of all jitted functions.

Reference: ``jax.jit``, ``jax.disable_jit``, ``jax.clear_caches``.
"""

# Made from chapters/12_jit_rest.md by `make chapter`;
# edit the chapter, not this file.

import gc
import warnings
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from functools import partial
from typing import Any, TypedDict, Unpack, overload

from minijax.arrays.array import ArrayImpl
from minijax.arrays.placement import Device, devices, finders, platforms
from minijax.arrays.settings import config
from minijax.core import Array
from minijax.forgetting.remembering import caches
from minijax.jitting.arguments import chosen, positional, signature_of
from minijax.jitting.compilation import backends
from minijax.jitting.functions import Options, jit_kind
from minijax.jitting.lowering import Wrapped, check_compiler_options
from minijax.jitting.shardings import UNSPECIFIED, check_shardings
from minijax.pytrees.call_checks import check_callable
from minijax.typing import P, R

_DEPRECATED = (
    "backend and device argument on jit is deprecated. You can use "
    '`jax.device_put(..., jax.local_devices(backend="cpu")[0])` on the inputs to the '
    "jitted function to get the same behavior."
)
_no_function = object()


class _Choices(TypedDict, total=False):
    in_shardings: Any
    out_shardings: Any
    static_argnums: int | Sequence[int] | None
    static_argnames: str | Sequence[str] | None
    donate_argnums: int | Sequence[int] | None
    donate_argnames: str | Sequence[str] | None
    keep_unused: bool
    device: Device | None
    backend: str | None
    inline: bool
    compiler_options: dict[str, Any] | None


@overload
def jit(fun: Callable[P, R], /, **choices: Unpack[_Choices]) -> "Wrapped[P, R]": ...
@overload
def jit(
    **choices: Unpack[_Choices],
) -> Callable[[Callable[P, R]], "Wrapped[P, R]"]: ...
def jit(
    fun=_no_function,
    /,
    *,
    in_shardings=UNSPECIFIED,
    out_shardings=UNSPECIFIED,
    static_argnums=None,
    static_argnames=None,
    donate_argnums=None,
    donate_argnames=None,
    keep_unused=False,
    device=None,
    backend=None,
    inline=False,
    compiler_options=None,
):
    """Return a function that runs `fun` as a program.

    The first call with arguments of certain shapes, dtypes and structures writes the
    program down and compiles it; later calls with such arguments run what there is.
    `fun` has to be a function of its arguments alone: what it reads elsewhere is read
    when it is written down, and what it does besides is done then.

    Args:
      fun: a function of trees of arrays that returns a tree of arrays. Without it, a
        decorator is returned.
      in_shardings: where arguments are brought before the program runs: a sharding, or
        a tree of shardings and None that is a prefix of the tuple of positional
        arguments. With it, no argument can be given by name.
      out_shardings: where results are: the same, a prefix of the result.
      static_argnums, static_argnames: arguments that `fun` receives as they are, by
        position (an integer or several, negative ones from the end) and by name. They
        must have a hash, and each new value is a new program. If one of the two is
        given, the other follows from the signature.
      donate_argnums, donate_argnames: arguments that the caller gives up: if a result
        has the shape and dtype of such an array, the array is deleted.
      keep_unused: whether arguments that do not matter stay inputs of the program.
      device: a `Device` to which arguments are brought. Deprecated, as in JAX: use
        `device_put` on the arguments.
      backend: the name of what runs the program, such as ``"interpreter"``, or of a
        platform, such as ``"cpu"``.
      inline: whether a call vanishes in a program that it is written into.
      compiler_options: a dictionary of options of XLA, which change nothing here, or
        None.

    Returns:
      The function, with the methods ``trace``, ``lower``, ``eval_shape`` and
      ``clear_cache``.

    Raises:
      TypeError: if `fun` cannot be called, or argnums are no integers, or argnames no
        strings. Calls raise it for a leaf that is no array or scalar.
      ValueError: if there are no such arguments, or one is both static and donated.
        Calls raise it for a static argument without a hash.
      RuntimeError: from calls, if there is no such backend, and for a compiler option
        that is not of XLA.

    Reference: ``jax.jit``.
    """
    settings = {name: value for name, value in locals().items() if name != "fun"}
    check_compiler_options(compiler_options)
    if fun is _no_function:
        return partial(jit, **settings)
    check_callable(fun)
    parameters = signature_of(fun)
    static = chosen("static", parameters, static_argnums, static_argnames)
    donate = chosen("donate", parameters, donate_argnums, donate_argnames)
    _check_apart(static, donate)
    wanted = [
        check_shardings("in_shardings", in_shardings),
        check_shardings("out_shardings", out_shardings),
    ]
    device, backend = _place(device, backend, *wanted)
    given = {"keep_unused": keep_unused, "inline": inline, "backend": backend}
    given["device"] = device
    params = {name: value for name, value in given.items() if value}
    labels = tuple(positional(parameters or []))
    return jit_kind.value(fun, Options(static, donate, labels, params, *wanted))


def _check_apart(static, donate):
    both = [*{*static.names} & {*donate.names}, *{*static.nums} & {*donate.nums}]
    if both:
        raise ValueError(
            f"An argument of a jitted function is static or donated, not both: {both}."
        )


def _place(device, backend, in_shardings, out_shardings):
    """Return a device and the name of a backend that runs programs, or None."""
    if device is not None:
        warnings.warn(_DEPRECATED, DeprecationWarning, stacklevel=3)
    named = {"in_shardings": in_shardings, "out_shardings": out_shardings}
    for option in [name for name in named if named[name] is not UNSPECIFIED]:
        if device is not None or backend in platforms:
            raise ValueError(
                f"If backend or device is specified on jit, then {option} should not "
                "be specified."
            )
    if device is not None and backend is not None:
        raise ValueError(
            "can't specify both a device and a backend for jit, got "
            f"{device=} and {backend=}"
        )
    if device is not None and not isinstance(device, Device):
        raise ValueError(f"jit takes a device of minijax.devices(), not {device!r}.")
    if backend in platforms or backend in finders:
        return devices(backend)[0], backend if backend in backends else None
    return device, backend


def disable_jit(disable: bool = True) -> AbstractContextManager[None]:
    """Return a context manager inside which functions run as Python, not as programs.

    Reference: ``jax.disable_jit``.
    """
    return config.override("jax_disable_jit", disable)


def explain_cache_misses(new_val: bool = True) -> AbstractContextManager[None]:
    """Return a context manager inside which each tracing logs its reason, a sentence.

    The logger is ``minijax.jitting.trace_cache``, the level WARNING.

    Reference: ``jax.explain_cache_misses``.
    """
    return config.override("jax_explain_cache_misses", new_val)


def live_arrays(platform: str | None = None) -> list[Array]:
    """Return the arrays of a platform that something still refers to.

    Python's garbage collector is asked for all its objects, so it takes milliseconds.
    Arrays whose memory was given up do not count.

    Args:
      platform: name of the platform, by default that of the default device.

    Reference: ``jax.live_arrays``.
    """
    here = {*devices(platform)}
    found = [x for x in gc.get_objects() if isinstance(x, ArrayImpl)]
    return [x for x in found if not x.is_deleted() and {*x.devices()} & here]


def clear_caches() -> None:
    """Forget all programs and all executables.

    Reference: ``jax.clear_caches``.
    """
    for cache in caches:
        for reference in cache.keyrefs():
            key = reference()
            if key is not None and (once := cache.get(key)):
                once.clear()
