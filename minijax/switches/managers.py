"""Context managers that set switches in this thread, for a block or a function.

Reference: the context managers of ``jax``.
"""

# Made from chapters/02_arrays_rest.md by `make chapter`;
# edit the chapter, not this file.

from collections.abc import Callable
from contextlib import AbstractContextManager

from minijax.arrays.settings import config
from minijax.core import EvalTrace, Trace, Tracer, _current_trace, set_current_trace
from minijax.extents import Derived

_no_value = object()


def _manager(name, default=_no_value) -> Callable[..., AbstractContextManager[None]]:
    """Return a context manager for a switch, with the value it has by default."""

    def manager(new_val=default):
        if new_val is _no_value:
            raise TypeError(
                f"Context manager for {manager.__name__} config option requires an "
                "argument representing the new value for the config option."
            )
        return config.override(name, new_val)

    manager.__name__ = manager.__qualname__ = name.removeprefix("jax_")
    manager.__doc__ = f"""Return a context manager that sets the switch ``{name}``.

    Reference: ``jax.{manager.__name__}``.
    """
    return manager


allow_f16_reductions = _manager("jax_allow_f16_reductions", True)
array_garbage_collection_guard = _manager("jax_array_garbage_collection_guard")
auto_pcast = _manager("jax_auto_pcast", True)
check_tracer_leaks = _manager("jax_check_tracer_leaks", True)
debug_key_reuse = _manager("jax_debug_key_reuse", True)
default_device = _manager("jax_default_device")
default_matmul_precision = _manager("jax_default_matmul_precision")
default_prng_impl = _manager("jax_default_prng_impl")
enable_checks = _manager("jax_enable_checks", True)
enable_custom_prng = _manager("jax_enable_custom_prng", True)
jax2tf_associative_scan_reductions = _manager(
    "jax2tf_associative_scan_reductions", True
)
legacy_prng_key = _manager("jax_legacy_prng_key")
log_compiles = _manager("jax_log_compiles", True)
no_execution = _manager("jax_no_execution", True)
no_tracing = _manager("jax_no_tracing", True)
numpy_dtype_promotion = _manager("jax_numpy_dtype_promotion")
numpy_rank_promotion = _manager("jax_numpy_rank_promotion")
remove_size_one_mesh_axis_from_type = _manager(
    "jax_remove_size_one_mesh_axis_from_type", True
)
softmax_custom_jvp = _manager("jax_softmax_custom_jvp", True)
thread_guard = _manager("jax_thread_guard", True)
threefry_partitionable = _manager("jax_threefry_partitionable", True)
transfer_guard_device_to_device = _manager("jax_transfer_guard_device_to_device")
transfer_guard_device_to_host = _manager("jax_transfer_guard_device_to_host")
transfer_guard_host_to_device = _manager("jax_transfer_guard_host_to_device")


def checking_leaks() -> AbstractContextManager[None]:
    """Return a context manager that sets the switch ``jax_check_tracer_leaks``.

    Reference: ``jax.checking_leaks``.
    """
    return check_tracer_leaks(True)


def transfer_guard(new_val: str) -> AbstractContextManager[None]:
    """Set the guards of all three directions in which arrays may be transferred.

    Reference: ``jax.transfer_guard``.
    """
    ways = "", "_host_to_device", "_device_to_device", "_device_to_host"
    return config.override_all({f"jax_transfer_guard{way}": new_val for way in ways})


class _FoldingTrace(Trace):
    """Computes what is asked of values; the trace around gets operations on tracers."""

    stage_value = None  # numbers become arrays, not literals of the program around

    def __init__(self, parent):
        self.parent, self.eager = parent, EvalTrace()

    def process_primitive(self, primitive, args, params):
        if not any(isinstance(arg, Tracer) for arg in args):
            return self.eager.process_primitive(primitive, args, params)
        with set_current_trace(self.parent):
            return primitive.bind(*args, **params)


def ensure_compile_time_eval() -> AbstractContextManager:
    """Compute at once what is inside the block, even while a program is written down.

    What depends on a tracer is left to the trace that is current around the block.

    Reference: ``jax.ensure_compile_time_eval``.
    """
    return Derived(_current_trace, _folding)


def _folding(around):
    return around if isinstance(around, EvalTrace) else _FoldingTrace(around)
