# Made from chapters/01_interception_ground.md by `make chapter`;
# edit the chapter, not this file.
"""Public names that JAX has moved or removed, by the module in which they were.

For a name that moved, where it is now; for one that was removed, what JAX says.
"""

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
_ONE_CIPHER = (
    "keys are of one generator, threefry2x32, whose dtype the package knows. Another "
    "one can be a function of words, made by minijax.random.bits or by itself."
)
_NO_SCOPES = (
    "equations keep the user's line and no stack of names. Pass the result of "
    "current() to minijax.extend.core.new_jaxpr_eqn."
)
ABSENT = {
    "minijax.extend.backend": {
        "backend_xla_version": _NO_XLA,
        "clear_in_memory_compilation_cache": "use minijax.clear_caches().",
        "get_compile_options": _NO_XLA,
        "ifrt_proxy": _NO_XLA,
        "register_backend_cache": "no cache here holds a handle of a backend.",
        "register_backend_factory": "a backend is a way to run a program, chosen by "
        "minijax.jit(f, backend=...) (see minijax.kernels.backends).",
    },
    "minijax.extend.random": dict.fromkeys(
        ("define_prng_impl", "rbg_prng_impl", "unsafe_rbg_prng_impl"), _ONE_CIPHER
    )
    | {"threefry2x32_p": "threefry_2x32 is made of other primitives."},
    "minijax.extend.source_info_util": dict.fromkeys(
        """
        NameStack SourceInfo current_name_stack extend_name_stack new_name_stack
        reset_name_stack set_name_stack transform_name_stack user_context
        """.split(),
        _NO_SCOPES,
    ),
}
