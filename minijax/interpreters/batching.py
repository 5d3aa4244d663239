# Made from chapters/14_callbacks_rest.md by `make chapter`;
# edit the chapter, not this file.
"""Batches of primitives, under the names that JAX has for them.

Reference: ``jax.interpreters.batching``.
"""

from minijax.batching.rules import elementwise_rule, vmap_rules


class _Batchers(dict):
    """From primitives to rules ``rule(operands, dims, **params)``."""

    def __setitem__(self, primitive, rule):
        def listed(axis, args, dims, **params):
            out, dim = rule(args, dims, **params)
            return primitive.listed(out), primitive.listed(dim)

        super().__setitem__(primitive, rule)
        vmap_rules[primitive.inner] = listed


primitive_batchers = _Batchers()


def defvectorized(primitive):
    """Set the rule of a primitive that acts on each element by itself."""
    vmap_rules[primitive.inner] = elementwise_rule(primitive.inner)


defbroadcasting = defvectorized
