"""Evaluation and types of a primitive, set and asked for as in JAX.

Reference: ``jax.extend.core.Primitive``.
"""

# Made from chapters/14_callbacks_rest.md by `make chapter`;
# edit the chapter, not this file.

from minijax.arrays.array import as_array_impl, shape_rules
from minijax.core import impl_rules, primitive_methods, primitive_rules


def results_as_jax(primitive, results):
    """Return the list of results, or the only one where JAX has no list around it."""
    return results if primitive.multiple_results else results[0]


def results_as_list(primitive, result):
    """Return the list of results, for what a rule of a user returns."""
    if primitive.multiple_results or isinstance(result, list):
        return list(result)
    return [result]


def check_results(primitive, rule, error, result):
    """Return the list of results; refuse a list where one is expected, or the reverse.

    Args:
      primitive, rule: whose rule it is, and what JAX calls it.
      error: the class of errors that is raised.
      result: what the rule has returned.
    """
    is_list = isinstance(result, (list, tuple))
    if is_list == bool(primitive.multiple_results):
        return list(result) if is_list else [result]
    got = f"{len(result)} results in a {type(result).__name__}" if is_list else "one"
    raise error(
        f"{primitive}.{rule}() method should return a tuple or a list iff "
        f"{primitive}.multiple_results: it is {primitive.multiple_results}, and the "
        f"rule returned {got}."
    )


def _def_impl(self, impl):
    """Set the evaluation: a function from arrays to an array, or to a list."""

    def rule(*args, **params):
        results = check_results(self, "impl", TypeError, impl(*args, **params))
        return list(map(as_array_impl, results))

    impl_rules[self] = rule
    return impl


def _def_abstract_eval(self, shape):
    """Set the shape rule: a function from `ShapedArray` to such, or to a list."""

    def rule(*avals, **params):
        return check_results(self, "abstract_eval", ValueError, shape(*avals, **params))

    shape_rules[self] = rule
    return shape


def _rule_of(table):
    """Return a function that gives the rule of a primitive in a table, as JAX does."""

    def read(primitive):
        set_now = table.get(primitive)

        def rule(*args, **params):
            ours = set_now or table[primitive]  # which says that there is none
            return results_as_jax(primitive, ours(*args, **params))

        return rule

    return read


primitive_methods["def_impl"] = _def_impl
primitive_methods["def_abstract_eval"] = _def_abstract_eval
primitive_rules["impl"] = _rule_of(impl_rules)
primitive_rules["abstract_eval"] = _rule_of(shape_rules)
