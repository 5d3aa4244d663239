"""Public names of JAX that are elsewhere, gone, or not here yet.

For a name that moved, where it is now; for one that was removed, what JAX says.

What will not be there has its reason in `ABSENT`.
"""

# Made from chapters/01_interception_ground.md by `make chapter`;
# edit the chapter, not this file.

# Public names that JAX has moved or removed, by the module in which they were.

_TYPES_AND_TRACES = """
    DropVar Effect Effects check_jaxpr concrete_or_error find_top_trace gensym
    get_opaque_trace_state jaxprs_in_params new_jaxpr_eqn no_effects
    nonempty_axis_env_DO_NOT_USE primal_dtype_to_tangent_dtype
    unsafe_am_i_under_a_jit_DO_NOT_USE unsafe_am_i_under_a_vmap_DO_NOT_USE
    unsafe_get_axis_names_DO_NOT_USE valid_jaxtype
"""
MOVED = {
    "minijax.core": {
        **dict.fromkeys(_TYPES_AND_TRACES.split(), "minijax.extend.core"),
        "InconclusiveDimensionOperation": "minijax.errors",
        "JaxprTypeError": "minijax.errors",
    }
}

_GONE = "deprecated in JAX v0.8.2 and removed in JAX v0.10.0"
_TO_EXTENSIONS = """
    mapped_aval unmapped_aval set_current_trace take_current_trace subjaxprs
"""
REMOVED = {
    "minijax.core": {
        **{
            name: f"{_GONE}. Use minijax.extend.core.{name}."
            for name in _TO_EXTENSIONS.split()
        },
        "get_aval": f"{_GONE}; use minijax.typeof instead.",
        "traverse_jaxpr_params": f"{_GONE}.",
    }
}

_NO_XLA = "there is no XLA to ask. minijax.jit(f).lower(...) shows what is compiled."
_NO_SCOPES = (
    "equations keep the user's line and no stack of names. Pass the result of "
    "current() to minijax.extend.core.new_jaxpr_eqn."
)
_COMPOSED = "what it does is made of other primitives here."
_NO_TOKENS = "programs run their effects in order, and need no tokens for that."
_NO_HALVES = (
    "JAX has it on GPUs alone, with a token that orders the half that sends and the "
    "half that receives. lax.ppermute does both."
)
_FLAT_TREES = (
    "it takes arguments as objects of a class that JAX keeps to itself, FlatTree. "
    "minijax.jvp and minijax.linearize take trees."
)
_ONE_SPARSE = (
    "of sparse arrays there is BCOO, with its operators; grad takes its data, and "
    "todense() serves the rest."
)
_NARROW = "products of floats of 8 bits are computed in 32 bits."
_TEXT_ONLY = "export writes the text of one program; it has no bytes and no letters."
_NO_PROFILER = (
    "traces are files for a trace viewer, and nothing here reads or serves them. "
    "`minijax.jit(f).lower(x).compile().profile(x)` takes the time of each step of a "
    "program, and cost_analysis() counts what it does."
)


def _each(names, reason):
    return dict.fromkeys(names.split(), reason)


ABSENT = {
    "minijax.ref": {"AbstractRef": "a reference is its own type."},
    "minijax.nn": _each("get_scaled_dot_general_config scaled_dot_general", _NARROW),
    "minijax.profiler": _each(
        """
        ProfileData ProfileEvent ProfilePlane device_memory_profile register_subprocess
        save_device_memory_profile start_server stop_server
        """,
        _NO_PROFILER,
    ),
    "minijax.lax": {
        **_each("after_all_p create_token_p", _NO_TOKENS),
        **_each(
            """
            approx_top_k_p bessel_i0e_p bessel_i1e_p eq_to_p igamma_grad_a_p igamma_p
            igammac_p le_to_p lt_to_p mulhi_p polygamma_p reduce_p select_and_scatter_p
            regularized_incomplete_beta_p split_p stack_p tile_p unstack_p zeta_p
            """,
            _COMPOSED,
        ),
        **_each("precv psend", _NO_HALVES),
        "ragged_all_to_all_p": _COMPOSED,
        "stage_p": "stage leaves no operation behind, here or in a jaxpr of JAX.",
        **_each("rng_bit_generator_p rng_uniform_p", _COMPOSED),
        "scaled_dot": _NARROW,
    },
    "minijax.debug": _each("DebugEffect OrderedDebugEffect", _NO_TOKENS),
    "minijax.custom_derivatives": {"remat_opt_p": _COMPOSED},
    "minijax.experimental.sparse": _each(
        """
        CuSparseEfficiencyWarning SparseEfficiencyError SparseEfficiencyWarning
        SparseTracer bcoo_broadcast_in_dim bcoo_concatenate bcoo_conv_general_dilated
        bcoo_dot_general bcoo_dot_general_sampled bcoo_dynamic_slice bcoo_extract
        bcoo_gather bcoo_multiply_dense bcoo_multiply_sparse bcoo_reduce_sum
        bcoo_reshape bcoo_rev bcoo_slice bcoo_sort_indices bcoo_squeeze
        bcoo_sum_duplicates bcoo_transpose bcoo_update_layout bcsr_broadcast_in_dim
        bcsr_concatenate bcsr_dot_general bcsr_extract bcsr_fromdense
        bcsr_sum_duplicates bcsr_todense coo_fromdense coo_matmat coo_matvec coo_todense
        csr_fromdense csr_matmat csr_matvec csr_todense empty eye grad jacfwd jacobian
        jacrev linalg random_bcoo value_and_grad
        """,
        _ONE_SPARSE,
    ),
    "minijax.export": _each(
        """
        DisabledSafetyCheck SymbolicScope deserialize is_symbolic_dim
        maximum_supported_calling_convention_version
        minimum_supported_calling_convention_version register_namedtuple_serialization
        register_pytree_node_serialization symbolic_args_specs symbolic_shape
        """,
        _TEXT_ONLY,
    ),
    "minijax.extend.core": {
        **_each("AbstractToken Token", _NO_TOKENS),
        **_each("CallPrimitive call_impl", "calls are primitives with a program."),
        "DebugInfo": "messages are made of the lines of equations.",
    },
    "minijax.extend.core.primitives": _each(
        """
        after_all_p approx_top_k_p bessel_i0e_p bessel_i1e_p create_token_p eq_to_p
        get_p igamma_grad_a_p igamma_p igammac_p le_to_p lt_to_p polygamma_p
        ragged_all_to_all_p reduce_p regularized_incomplete_beta_p rng_bit_generator_p
        rng_uniform_p select_and_gather_add_p select_and_scatter_add_p
        select_and_scatter_p swap_p threefry2x32_p zeta_p
        """,
        _COMPOSED,
    ),
    "minijax.interpreters.partial_eval": {
        **_each("Val annotations", "it is typing.Any, or a word of from __future__."),
        **_each(
            """
            custom_partial_eval_rules dce_jaxpr_call_rule dce_jaxpr_closed_call_rule
            dce_jaxpr_consts dce_rules partial_eval_jaxpr_custom_rules
            """,
            "rules of this kind are minijax.extend.rules, in a form of their own.",
        ),
    },
    "minijax.interpreters.xla": {"Backend": "use minijax.extend.backend."},
    "minijax.interpreters.mlir": _each(
        """
        AxisContext ConstantHandler DEVICE_TO_DEVICE_TYPE LoweringParameters
        LoweringResult LoweringRule Mesh MeshAxisName RECV_FROM_HOST_TYPE
        SEND_TO_HOST_TYPE SPMDAxisContext ShapePolyLoweringState ShardingContext Token
        TokenSet Value aval_to_ir_type aval_to_ir_types core_call_lowering
        dense_int_array dense_int_elements dtype_to_ir_type flatten_ir_types
        flatten_ir_values i32_attr i64_attr ir ir_attribute ir_constant ir_constants
        ir_tree_registry ir_type_handlers jaxpr_subcomp lower_jaxpr_to_fun
        lower_jaxpr_to_module lowerable_effects make_ir_context merge_mlir_modules
        module_to_bytecode module_to_string register_constant_handler shape_tensor
        token_type unflatten_ir_values_like_types
        """,
        "lowerings work on tracers here, and no library of MLIR is needed.",
    ),
    "minijax.interpreters.ad": {
        "annotations": "it is a word of from __future__.",
        **_each("jvp linearize", _FLAT_TREES),
    },
    "minijax.extend.linear_util": {"Callable": "it is collections.abc.Callable."},
    "minijax.extend.backend": {
        "backend_xla_version": _NO_XLA,
        "clear_in_memory_compilation_cache": "use minijax.clear_caches().",
        "get_compile_options": _NO_XLA,
        "ifrt_proxy": _NO_XLA,
        "register_backend_cache": "no cache here holds a handle of a backend.",
        "register_backend_factory": "a backend is a way to run a program, chosen by "
        "minijax.jit(f, backend=...) (see minijax.kernels.lowering).",
    },
    "minijax.extend.random": {
        "threefry2x32_p": "threefry_2x32 is made of other primitives.",
    },
    "minijax.extend.source_info_util": dict.fromkeys(
        """
        NameStack SourceInfo current_name_stack extend_name_stack new_name_stack
        reset_name_stack set_name_stack transform_name_stack user_context
        """.split(),
        _NO_SCOPES,
    ),
}


# Public names of JAX that are not here yet, by package: ``"minijax.lax": "name …"``.

LATER: dict[str, str] = {}
