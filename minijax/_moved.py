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
