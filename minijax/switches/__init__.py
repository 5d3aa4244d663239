"""The switches of JAX: what they mean here, and what sets them for a while."""

# Made from chapters/02_arrays_rest.md by `make chapter`;
# edit the chapter, not this file.
