"""Primitives as users of JAX define them.

Reference: ``jax.extend.core.Primitive``.
"""

# Made from chapters/14_callbacks_rest.md by `make chapter`;
# edit the chapter, not this file.

from minijax import core
from minijax.arrays.array import asarray_impl, shape_rules
from minijax.core import impl_rules


class Primitive:
    """An operation that a user adds, under the names that JAX has for it.

    Args:
      name: how it is printed.

    Attributes:
      multiple_results: whether it returns a list; otherwise, one array.
      inner: the `minijax.core.Primitive`, under which it stands in rule tables and
        equations. Both are one key: a table finds a rule under either.
    """

    multiple_results = False

    def __init__(self, name):
        self.name, self.inner = name, core.Primitive(name)

    def __repr__(self):
        return self.name

    def __eq__(self, other):
        return self.inner is getattr(other, "inner", other)

    def __hash__(self):
        return hash(self.inner)

    def bind(self, *args, **params):
        """Return the result of the operation, or the list of its results."""
        return self.pick(self.inner.bind(*args, **params))

    def pick(self, results):
        """Return what a user of the operation expects, for a list of results."""
        return results if self.multiple_results else results[0]

    def listed(self, result):
        """Return the list of results, for what a rule of a user returns."""
        return list(result) if self.multiple_results else [result]

    def def_impl(self, impl):
        """Set the evaluation: a function from arrays to an array, or to a list."""

        def rule(*args, **params):
            return list(map(asarray_impl, self.listed(impl(*args, **params))))

        impl_rules[self.inner] = rule
        return impl

    def def_abstract_eval(self, shape):
        """Set the shape rule: a function from `ShapedArray` to such, or to a list."""

        def rule(*avals, **params):
            return self.listed(shape(*avals, **params))

        shape_rules[self.inner] = rule
        return shape
