# Made from chapters/01_interception_ground.md by `make chapter`;
# edit the chapter, not this file.
"""Public names of JAX that are not here yet, by package.

What will not be there has its reason in `_moved.ABSENT`.
"""

LATER = {
    "minijax.lax": """
        dce_sink dce_sink_p DotDimensionNumbers index_take PrecisionLike precv psend
        ragged_all_to_all ragged_all_to_all_p ragged_dot_general
        RaggedDotDimensionNumbers stage stage_p
    """,
    "minijax.debug": "inspect_array_sharding log",
    "minijax.ad_checkpoint": "Offloadable Recompute Saveable",
    "minijax.scipy": "spatial",
    "minijax.extend.core.primitives": "empty2_p sharding_constraint_p top_k_p",
    "minijax.interpreters.ad": """
        add_jaxvals add_jaxvals_p add_tangents annotations defbilinear defjvp2 deflinear
        get_primitive_transpose jvp JVPTrace JVPTracer linearize zeros_like_aval
    """,
    "minijax.interpreters.batching": """
        axis_primitive_batchers bdim_at_front broadcast defreducer
        fancy_primitive_batchers register_vmappable unregister_vmappable
    """,
}
