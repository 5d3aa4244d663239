"""Names that JAX has elsewhere than the floors which define them (jax.extend)."""

# Made from chapters/14_callbacks_rest.md by `make chapter`;
# edit the chapter, not this file.
