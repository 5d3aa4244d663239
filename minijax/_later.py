# Made from chapters/01_interception_ground.md by `make chapter`;
# edit the chapter, not this file.
"""Public names of JAX that are not here yet, by package.

What will not be there has its reason in `_moved.ABSENT`.
"""

LATER = {
    "minijax.lax": """
        dce_sink dce_sink_p precv psend ragged_all_to_all ragged_all_to_all_p stage
        stage_p
    """,
    "minijax.extend.core.primitives": "empty2_p sharding_constraint_p",
    "minijax.interpreters.ad": "jvp linearize",
    "minijax.interpreters.batching": "register_vmappable unregister_vmappable",
}
