"""The switches of JAX: what each means here, and context managers that set them.

A switch that another module defines is *done*. The others are *accepted*, if they keep
their value and change nothing, or *refused*, if only the default is possible.

References: ``jax.config.values``, ``jax.numpy_dtype_promotion``,
``jax.numpy_rank_promotion``, the context managers of ``jax``.
"""

# Made from chapters/02_arrays_rest.md by `make chapter`;
# edit the chapter, not this file.

import os
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial, wraps

import numpy as np

from minijax.arrays.array import TypePromotionError, typeof
from minijax.arrays.dtypes import (
    EXTENDED_DTYPES,
    PYTHON_TYPE_OF_NODE,
    _on_or_off,
    _one_of,
    config,
    dtype_kind,
    dtype_name,
    lattice_node,
    warn_user,
)
from minijax.context_values import DerivedContextValue
from minijax.core import EvalTrace, Trace, Tracer, _current_trace, set_current_trace
from minijax.lax.reductions import check_arraylike

# The switches of JAX: their defaults, and what each of them means here.

HONORED_SWITCHES = {
    "jax_enable_x64": "64-bit types exist.",
    "jax_platforms": "The platforms to choose from, the default one first.",
    "jax_platform_name": "The platform that is the default.",
    "jax_default_device": "Where arrays lie that name no device.",
    "jax_num_cpu_devices": "How many devices the CPU has; set before the first use.",
    "jax_explicit_x64_dtypes": "What asking for 64 bits leads to while they are off.",
    "jax_numpy_dtype_promotion": "`strict` refuses to mix dtypes in `jnp`.",
    "jax_numpy_rank_promotion": "`warn` and `raise` tell of new leading axes in `jnp`.",
    "jax_default_matmul_precision": "What a product asks for; all are exact.",
    "jax_transfer_guard": "Sets the three guards below.",
    "jax_transfer_guard_host_to_device": "What numbers that become arrays lead to.",
    "jax_transfer_guard_device_to_device": "What arrays that are moved lead to.",
    "jax_transfer_guard_device_to_host": "What numbers that leave a GPU lead to.",
    "jax_traceback_filtering": "Which frames a traceback shows.",
    "jax_disable_jit": "Functions run as Python, line by line.",
    "jax_explain_cache_misses": "Each tracing logs its reason.",
    "jax_log_compiles": "Each tracing logs the function and its types, as a warning.",
    "jax_no_tracing": "A jitted function that would have to be traced is an error.",
    "jax_debug_nans": "A result that is nan is an error at the line that made it.",
    "jax_debug_infs": "An infinite result is an error at the line that made it.",
    "jax_enable_checks": "Programs are checked after each pass.",
    "jax_enable_compilation_cache": "Machine code is kept on disk.",
    "jax_compilation_cache_dir": "Where machine code is kept.",
    "jax_compilation_cache_max_size": "How many bytes of machine code are kept.",
    "jax_default_prng_impl": "The generator of keys, where none is named.",
    "jax_enable_custom_prng": "`PRNGKey` makes typed keys, as `key` does.",
    "jax_threefry_partitionable": "Off: keys and bits are those of JAX before 0.5.",
    "jax_high_dynamic_range_gumbel": "Gumbel numbers are made of 64 random bits.",
    "jax_debug_key_reuse": "A key that is used twice is an error.",
    "jax_check_tracer_leaks": "A tracer that a transformation leaves is an error.",
}

OPTIMIZATION_LEVELS = "UNKNOWN", "O0", "O1", "O2", "O3"
LOGS = "NOTSET", "DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"
GENERATORS = """
    threefry2x32 threefry4x32 rbg unsafe_rbg philox2x32 philox4x32
""".split()
ENUM_CHOICES = {
    "jax_array_garbage_collection_guard": (None, "allow", "log", "fatal"),
    "jax_cpu_collectives_implementation": (None, "gloo", "mpi", "megascale"),
    "jax_default_prng_impl": GENERATORS,
    "jax_error_checking_behavior_divide": ("ignore", "raise"),
    "jax_error_checking_behavior_nan": ("ignore", "raise"),
    "jax_error_checking_behavior_oob": ("ignore", "raise"),
    "jax_explicit_x64_dtypes": ("warn", "error", "allow"),
    "jax_legacy_prng_key": ("allow", "warn", "error"),
    "jax_logging_level": (None, *LOGS),
    "jax_memory_fitting_level": OPTIMIZATION_LEVELS,
    "jax_optimization_level": OPTIMIZATION_LEVELS,
    "jax_send_traceback_to_runtime": ("off", "on", "full"),
    "jax_use_magma": ("off", "on", "auto"),
}

ACCEPTED = {
    "Devices are found, ordered and put into meshes in one way.": {
        "jax_sort_devices_by_process_index": True, "jax_cuda_visible_devices": "all",
        "jax_rocm_visible_devices": "all", "jax_oneapi_visible_devices": "all",
        "jax_mock_gpu_topology": "", "mock_num_gpu_processes": 0,
        "jax_auto_pcast": True, "check_vma": False,
        "jax_remove_size_one_mesh_axis_from_type": False,
        "jax_disallow_mesh_context_manager": False,
        "jax_disable_vmap_shmap_error": False, "jax_use_shardy_partitioner": True,
        "jax_thread_guard": False,
    },
    "Python frees an array with its last reference; no cycle holds one.": {
        "jax_array_garbage_collection_guard": None,
    },
    "Shapes, dtypes and results of rules are always checked.": {
        "jax_disable_bwd_checks": False, "jax_mutable_array_checks": True,
    },
    "An equation remembers the user's line, and errors are cut to the user's frames.": {
        "jax_include_full_tracebacks_in_locations": True,
        "jax_traceback_in_locations_limit": 100,
        "jax_tracer_error_num_traceback_frames": 5,
        "jax_send_traceback_to_runtime": "off", "jax_source_url_schema": None,
        "jax_hlo_source_file_canonicalization_regex": None,
        "jax_include_debug_info_in_dumps": True,
    },
    "There is one implementation, which both values name.": {
        "jax_use_direct_linearize": True, "jax_custom_vjp3": False, "jax_remat3": False,
        "jax_scan3": False, "jax_refs_to_pins": False, "jax_softmax_custom_jvp": False,
        "jax_use_simplified_jaxpr_constants": False, "eager_constant_folding": False,
        "jax_threefry_gpu_kernel_lowering": False,
    },
    "Programs are printed without colours.": {"jax_pprint_use_color": True},
    "Loggers are those of Python: `logging.getLogger('minijax').setLevel(...)`.": {
        "jax_logging_level": "NOTSET", "jax_debug_log_modules": "",
        "jax_compiler_detailed_logging_min_ops": 10, "jax_distributed_debug": False,
    },
    "Constants of a program are kept as they are, without a report.": {
        "jax_captured_constants_warn_bytes": 2000000000,
        "jax_captured_constants_report_frames": 0,
        "jax_embedded_constants_max_bytes": 32,
    },
    "All executables are kept, whatever their size and the time that they took.": {
        "jax_persistent_cache_min_compile_time_secs": 1.0,
        "jax_persistent_cache_min_entry_size_bytes": 0,
        "jax_persistent_cache_enable_xla_caches":
            "xla_gpu_per_fusion_autotune_cache_dir",
        "jax_raise_persistent_cache_errors": False,
        "jax_compilation_cache_check_contents": False,
        "jax_compilation_cache_expect_pgle": False,
        "jax_compilation_cache_include_metadata_in_key": False,
        "jax_remove_custom_partitioning_ptr_from_cache_key": False,
        "jax_share_binary_between_hosts": False,
        "jax_share_binary_between_hosts_timeout_ms": 1200000,
    },
    "There is no XLA: programs are optimised in one way.": {
        "jax_optimization_level": "UNKNOWN", "jax_exec_time_optimization_effort": 0.0,
        "jax_memory_fitting_level": "O2", "jax_memory_fitting_effort": 0.0,
        "jax_disable_most_optimizations": False, "jax_compiler_enable_remat_pass": True,
        "jax_enable_pgle": False, "jax_pgle_profiling_runs": 3,
        "jax_pgle_aggregation_percentile": 90, "jax_xla_profile_version": 0,
        "jax_xla_backend": "", "jax_backend_target": "",
        "jax_pjrt_client_create_options": None, "jax_cpu_enable_async_dispatch": True,
        "jax_experimental_unsafe_xla_runtime_errors": False,
        "jax_debug_leaked_clients_on_clear_backends": False,
        "jax_bcoo_cusparse_lowering": False, "jax_use_magma": "auto",
        "jax_ragged_dot_use_gpu_pallas_triton_lowering": False,
        "jax_ragged_dot_use_ragged_dot_instruction": True,
    },
    "There is no Pallas.": {
        "jax_pallas_enable_debug_checks": False, "jax_pallas_poison_buffers": False,
        "jax_pallas_use_mosaic_gpu": True, "jax_pallas_verbose_errors": False,
        "jax_mosaic_allow_hlo": False, "jax_use_emit_pipeline_primitive": False,
    },
    "Programs are exported as text, in one version.": {
        "jax_export_calling_convention_version": 10,
        "jax_export_ignore_forward_compatibility": False,
        "jax_serialization_version": 0,
        "jax2tf_associative_scan_reductions": False,
        "jax2tf_default_native_serialization": True,
    },
    "Processes talk through MPI, where there are several.": {
        "jax_check_proxy_envs": True, "jax_cpu_collectives_implementation": "gloo",
        "jax_cpu_get_global_topology_timeout_minutes": 5,
        "jax_cpu_get_local_topology_timeout_minutes": 2,
        "jax_cross_host_transfer_socket_address": "",
        "jax_cross_host_transfer_timeout_seconds": None,
        "jax_cross_host_transfer_transfer_size": None,
        "jax_cross_host_transport_addresses": "",
        "jax_force_dcn_cross_host_transfers": False,
        "jax_enable_preemption_service": True, "jax_enable_recoverability": False,
    },
}  # fmt: skip

REFUSED = {
    "Keys are made of their seeds alone.": {
        "jax_random_seed_offset": 0,
    },
    "`PRNGKey` makes a key of two integers, and nobody is told.": {
        "jax_legacy_prng_key": "allow",
    },
    "A compiled program cannot be kept from running.": {"jax_no_execution": False},
    "Use `jax_debug_nans` and `jax_debug_infs`, which name the line.": {
        "jax_error_checking_behavior_nan": "ignore",
        "jax_error_checking_behavior_divide": "ignore",
        "jax_error_checking_behavior_oob": "ignore",
    },
    "An index beyond the end is handled as JAX does by default.": {
        "jax_check_static_indices": False,
    },
    "Sums of 16-bit floats are computed, not refused.": {
        "jax_allow_f16_reductions": True,
    },
    "`print_saved_residuals` shows what is saved.": {
        "jax_log_checkpoint_residuals": False,
    },
    "`jit(f).lower(...).as_text()` shows a program; none is written to a file.": {
        "jax_dump_ir_to": "", "jax_dump_ir_modes": "stablehlo",
    },
}  # fmt: skip


def statuses():
    """Yield, for each switch of JAX, its name, its status and what it means here."""
    for name, meaning in HONORED_SWITCHES.items():
        yield name, "done", meaning
    for status, groups in ("accepted", ACCEPTED), ("refused", REFUSED):
        for meaning, switches in groups.items():
            yield from ((name, status, meaning) for name in switches)


def _of_kind(kind, value):
    """Return a number, or None."""
    if value is not None and not isinstance(value, (kind, int)):
        raise ValueError(
            f"new {kind.__name__} config value must be None or of type "
            f"{kind.__name__}, got {value} of type {type(value)}"
        )
    return value


def _accepts(name, default):
    """Return what turns a value of a switch into a valid one, or raises."""
    if name in ENUM_CHOICES:
        return partial(_one_of, ENUM_CHOICES[name])
    if isinstance(default, bool):
        return _on_or_off
    if isinstance(default, int | float):
        return partial(_of_kind, type(default))
    return lambda value: value


def _only(default, meaning, accepts, value):
    """Return the default; refuse another valid value."""
    value = accepts(value)
    if value != default:
        raise NotImplementedError(f"only {default!r} is possible here. {meaning}")
    return value


def _define(name, default, accepts):
    if name not in config.values:  # a higher floor may have done it
        given = os.environ.get(name.upper(), default)
        is_number = isinstance(default, int | float) and not isinstance(default, bool)
        config.define(name, type(default)(given) if is_number else given, accepts)


for _meaning, _switches in ACCEPTED.items():
    for _name, _default in _switches.items():
        _define(_name, _default, _accepts(_name, _default))
for _meaning, _switches in REFUSED.items():
    for _name, _default in _switches.items():
        _only_it = partial(_only, _default, _meaning, _accepts(_name, _default))
        _define(_name, _default, _only_it)


# Checks of operands that switches ask for: strict promotion, and told new axes.

WEAK_BELOW = {
    "b": [], "i": ["int*"], "u": ["int*"], "f": ["int*", "float*"],
    "h": ["int*", "float*"], "c": ["int*", "float*", "complex*"],
}  # fmt: skip
MANUAL = "see https://docs.jax.dev/en/latest/rank_promotion_warning.html."


def check_promotion_operands(name, *args):
    """Refuse what is no array, what meets keys, and what the switches refuse."""
    check_arraylike(name, *args)
    dtypes = {getattr(arg, "dtype", None): arg for arg in args}
    if len(dtypes) > 1 and not EXTENDED_DTYPES.keys().isdisjoint(dtypes):
        listed = ", ".join(dtype_name(typeof(arg).dtype) for arg in args)
        raise TypeError(f"{name} does not accept dtypes {listed}.")
    for check in wanted:
        check(name, args)


def check_dtypes(name, args):
    """Refuse operands of different dtypes, if promotion is strict in this thread."""
    if config.jax_numpy_dtype_promotion == "strict" and len(args) > 1:
        avals = [typeof(arg) for arg in args]
        check_strict_promotion(
            {lattice_node(aval.dtype, aval.weak_type) for aval in avals}
        )


def check_strict_promotion(nodes):
    """Refuse places in the lattice that do not meet without a change of dtype."""
    weak = [node for node in nodes if node.endswith("*")]
    strong = [node for node in nodes if node not in weak]
    below = WEAK_BELOW[dtype_kind(np.dtype(strong[0]))] if strong else weak
    if len(strong) > 1 or not {*weak} <= {*below}:
        raise TypePromotionError(
            f"Input dtypes {tuple(sorted(map(_node_text, nodes)))} have no available "
            "implicit dtype promotion path when jax_numpy_dtype_promotion=strict. Try "
            "explicitly casting inputs to the desired output type, or set "
            "jax_numpy_dtype_promotion=standard."
        )


def _node_text(node):
    return str(PYTHON_TYPE_OF_NODE[node]) if node.endswith("*") else node


def check_ranks(name, args):
    """Tell of operands of different ranks, if this thread wants to hear of them."""
    shapes = [typeof(arg).shape for arg in args]
    if len({len(shape) for shape in shapes if shape}) > 1:
        check_rank_promotion(name, shapes)


def check_rank_promotion(name, shapes):
    """Warn of shapes of different ranks or refuse them, as this thread has asked."""
    mode = config.jax_numpy_rank_promotion
    if mode == "allow":
        return
    listed = " ".join(map(str, shapes))
    if mode == "raise":
        raise ValueError(
            f"Operands could not be broadcast together for {name} on shapes {listed} "
            "and with the config option jax_numpy_rank_promotion='raise'. For more "
            f"information, {MANUAL}"
        )
    warn_user(
        f"Following NumPy automatic rank promotion for {name} on shapes {listed}. Set "
        "the jax_numpy_rank_promotion config option to 'allow' to disable this "
        f"warning; for more information, {MANUAL}",
        stacklevel=5,
    )


wanted: list = []  # the checks that a thread may want


def _follow(check, default):
    """Return what keeps a check in `wanted` while its switch has another value."""

    def told(values):
        if check in wanted:
            wanted.remove(check)
        if {*values} != {default}:
            wanted.append(check)

    return told


def _define_promotion(name, check, *choices):
    value = os.environ.get(name.upper(), choices[0])
    config.define(name, value, partial(_one_of, choices), _follow(check, choices[0]))


_define_promotion("jax_numpy_dtype_promotion", check_dtypes, "standard", "strict")
_define_promotion("jax_numpy_rank_promotion", check_ranks, "allow", "warn", "raise")


def permissive_promotion():
    """Allow operands of all ranks and dtypes, in a ``with`` block of this thread."""
    ranks, dtypes = "jax_numpy_rank_promotion", "jax_numpy_dtype_promotion"
    return config.override_all({ranks: "allow", dtypes: "standard"})


def promoting(function: Callable) -> Callable:
    """Return a function whose own operations promote, whatever users have asked for."""

    @wraps(function)
    def inside(*args, **kwargs):
        with permissive_promotion():
            return function(*args, **kwargs)

    return inside


# Context managers that set switches in this thread, for a block or a function.

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
transfer_guard = _manager("jax_transfer_guard")
transfer_guard_device_to_device = _manager("jax_transfer_guard_device_to_device")
transfer_guard_device_to_host = _manager("jax_transfer_guard_device_to_host")
transfer_guard_host_to_device = _manager("jax_transfer_guard_host_to_device")


def checking_leaks() -> AbstractContextManager[None]:
    """Return a context manager that sets the switch ``jax_check_tracer_leaks``.

    Reference: ``jax.checking_leaks``.
    """
    return check_tracer_leaks(True)


class _FoldingTrace(Trace):
    """Computes what is asked of values; the trace around gets operations on tracers."""

    stage_value = None  # numbers become arrays, not literals of the program around

    def __init__(self, parent):
        self.parent, self.eager = parent, EvalTrace()

    def process_primitive(self, primitive, args, params):
        if not any(isinstance(arg, Tracer) for arg in args):
            return self.eager.process_primitive(primitive, args, params)
        with set_current_trace(self.parent):
            return primitive.bind_all(*args, **params)


def ensure_compile_time_eval() -> AbstractContextManager:
    """Compute at once what is inside the block, even while a program is written down.

    What depends on a tracer is left to the trace that is current around the block.

    Reference: ``jax.ensure_compile_time_eval``.
    """
    return DerivedContextValue(_current_trace, _folding)


def _folding(around):
    return around if isinstance(around, EvalTrace) else _FoldingTrace(around)
