"""Functions that were compiled for XLA: registered, and refused when they are called.

Reference: ``jax.ffi``.
"""

# Made from chapters/14_callbacks_rest.md by `make chapter`;
# edit the chapter, not this file.

import ctypes
from collections.abc import Callable
from typing import Any

_targets: dict[tuple[str, str], Any] = {}  # from names and platforms to functions
_types: dict[tuple[str, str], Any] = {}


def _refuse(name):
    there = {platform for target, platform in _targets if target == name}
    registered = f" It is registered for {', '.join(sorted(there))}." if there else ""
    raise NotImplementedError(
        f"There is no XLA that could call the foreign function {name!r}.{registered} "
        "minijax.pure_callback calls a function of Python, such as one of ctypes, and "
        "minijax.extend.core.Primitive takes rules."
    )


def ffi_call(
    target_name: str,
    result_shape_dtypes: Any,
    *,
    has_side_effect: bool = False,
    vmap_method: str | None = None,
    input_layouts: Any = None,
    output_layouts: Any = None,
    input_output_aliases: dict[int, int] | None = None,
    custom_call_api_version: int = 4,
    legacy_backend_config: str | None = None,
) -> Callable[..., Any]:
    """Return a function that says, when it is called, why it cannot be.

    Args:
      target_name: under which the function is registered.
      result_shape_dtypes: of its results, as `ShapeDtypeStruct`.
      has_side_effect, vmap_method, input_layouts, output_layouts,
        input_output_aliases, custom_call_api_version, legacy_backend_config: without
        effect.

    Raises:
      NotImplementedError: from that function.

    Reference: ``jax.ffi.ffi_call``.
    """
    return lambda *args, **kwargs: _refuse(target_name)


def register_ffi_target(
    name: str, fn: Any, platform: str = "cpu", api_version: int = 1, **kwargs: Any
) -> None:
    """Remember that a function is registered under a name, for a platform.

    Args:
      name: of the function.
      fn: the function, a capsule of Python that holds its address.
      platform: of the devices for which it is.
      api_version, kwargs: of XLA; without effect.

    Reference: ``jax.ffi.register_ffi_target``.
    """
    _targets[name, platform] = fn


def register_ffi_type(name: str, type_registration: Any, platform: str = "cpu") -> None:
    """Remember that a type of XLA's is registered under a name.

    Reference: ``jax.ffi.register_ffi_type``.
    """
    _types[name, platform] = type_registration


def register_ffi_type_id(name: str, obj: Any, platform: str = "cpu") -> None:
    """Remember that the number of a type of XLA's is registered under a name.

    Reference: ``jax.ffi.register_ffi_type_id``.
    """
    _types[name, platform] = obj


def register_ffi_target_as_batch_partitionable(name: str) -> None:
    """Accept that a function may be dealt out along a batch; it is not called.

    Reference: ``jax.ffi.register_ffi_target_as_batch_partitionable``.
    """


def pycapsule(funcptr: Any) -> Any:
    """Return a capsule of Python that holds the address of a function of ctypes.

    Reference: ``jax.ffi.pycapsule``.
    """
    make = ctypes.pythonapi.PyCapsule_New
    make.restype = ctypes.py_object
    make.argtypes = ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p
    return make(ctypes.cast(funcptr, ctypes.c_void_p), None, None)


def include_dir() -> str:
    """Refuse to name the folder of XLA's header files: there is none.

    Raises:
      NotImplementedError: in all cases.

    Reference: ``jax.ffi.include_dir``.
    """
    raise NotImplementedError(
        "XLA's header files come with jaxlib, and are not a part of this package."
    )


def ffi_lowering(call_target_name: str, **lowering_args: Any) -> Callable[..., Any]:
    """Return a rule that says, when a program is lowered by it, why it cannot be.

    Raises:
      NotImplementedError: from that rule.

    Reference: ``jax.ffi.ffi_lowering``.
    """
    return lambda *args, **kwargs: _refuse(call_target_name)


def build_ffi_lowering_function(
    call_target_name: str, **lowering_args: Any
) -> Callable[..., Any]:
    """Return what `ffi_lowering` returns.

    Reference: ``jax.ffi.build_ffi_lowering_function``.
    """
    return ffi_lowering(call_target_name)
