# Made from chapters/11_own_rules.md by `make chapter`;
# edit the chapter, not this file.
"""Calls of functions that bring their own rules: primitives with functions inside.

Reference: ``custom_jvp_call_p``, ``custom_vjp_call_p`` in
``jax._src.custom_derivatives``.
"""

from minijax.arrays.array import shape_rules
from minijax.arrays.avals import typeof
from minijax.batching.rules import at_front, vmap_rules
from minijax.batching.trace import program_primitives, vmap_flat
from minijax.core import Primitive, RuleTable, current_trace, impl_rules
from minijax.jaxprs.jaxpr import ClosedJaxpr, jaxpr_as_fun
from minijax.jaxprs.printing import print_rules, write_plainly
from minijax.jaxprs.staging import JaxprTrace, trace_to_jaxpr
from minijax.pytrees.treedefs import tree_flatten


def write_down(fun, args):
    """Return the program of a function, and what it uses without receiving it.

    Args:
      fun: a function from flat arguments to a list.
      args: arguments of the right types.

    Returns:
      A `ClosedJaxpr` from those values and the arguments to the results; the values.
    """
    jaxpr, consts = trace_to_jaxpr(fun, list(map(typeof, args)))
    invars = [*jaxpr.constvars, *jaxpr.invars]
    return ClosedJaxpr(jaxpr.replace(constvars=[], invars=invars), []), consts


class CallPrimitive(Primitive):
    """A call of a function, which stays Python unless it has to be written down."""

    def bind(self, *args, call_jaxpr, num_consts=0, **params):
        """Return the list of results.

        Args:
          *args: the operands: `num_consts` values that the program uses without
            being given them, and its arguments.
          call_jaxpr: what is called: a function of flat arguments, or a `ClosedJaxpr`.
          num_consts: their number.
          **params: the rules, and what they depend on.
        """
        staged = isinstance(current_trace(), JaxprTrace)
        if staged and not isinstance(call_jaxpr, ClosedJaxpr):
            call_jaxpr, consts = write_down(call_jaxpr, args)
            args, num_consts = [*consts, *args], num_consts + len(consts)
        params |= {"call_jaxpr": call_jaxpr, "num_consts": num_consts}
        return super().bind(*args, **params)


def as_fun(call_jaxpr):
    """Return what is called as a function from flat arguments to a list."""
    written = isinstance(call_jaxpr, ClosedJaxpr)
    return jaxpr_as_fun(call_jaxpr) if written else call_jaxpr


def _impl(*args, call_jaxpr, **params):
    return as_fun(call_jaxpr)(*args)


def _shape(*avals, call_jaxpr, **params):
    return call_jaxpr.out_avals


def mapped(fun, dims, axis):
    """Return a function for all examples at once; its results have the axis in front.

    Args:
      fun: a function from flat arguments to a list.
      dims: the mapped axis of each argument, or None.
      axis: the `MappedAxis`.
    """

    def all_examples(*values):
        outs, places = vmap_flat(fun, values, dims, axis)
        return [at_front(out, dim, axis.size) for out, dim in zip(outs, places)]

    return all_examples


def map_trees(fun, trees, dims, axis):
    """Call a function of trees for all examples; return a tree, the axis in front.

    Args:
      fun: a function of trees of arrays that returns one; None holds no array.
      trees: its arguments.
      dims: for each of their leaves the mapped axis, or None.
      axis: the `MappedAxis`.
    """
    leaves, in_tree = tree_flatten(trees)
    found = []

    def flat(*values):
        outs, out_tree = tree_flatten(fun(*in_tree.unflatten(values)))
        found.append(out_tree)
        return outs

    outs = mapped(flat, dims, axis)(*leaves)
    return found[0].unflatten(outs)


class CallRule:
    """A rule that comes with a call, as a function of flat lists; None is zero."""

    name = ""  # what the user calls it

    def __repr__(self):
        return self.name

    def dims_of(self, dims, *trees):
        """Return the mapped axes of the arguments' leaves, from those of the call."""
        raise NotImplementedError

    def placed(self, found, dims, axis):
        """Return what it found for all examples, with the mapped axes where they go."""
        return found


class MappedRule(CallRule):
    """A rule for all examples at once.

    Args:
      rule: the rule for one.
      dims: the mapped axes of the arguments of the call, or None.
      axis: the `MappedAxis`.
    """

    def __init__(self, rule, dims, axis):
        self.rule, self.dims, self.axis, self.name = rule, dims, axis, rule.name
        self.dims_of, self.placed = rule.dims_of, rule.placed

    def __call__(self, *trees):
        dims = self.dims_of(self.dims, *trees)
        found = map_trees(self.rule, trees, dims, self.axis)
        return self.placed(found, self.dims, self.axis)


def _vmap_rule(primitive):
    """Return the rule: the same call, of what is called and its rules all mapped."""

    def rule(axis, args, dims, call_jaxpr, num_consts, **params):
        shared = all(dim is None for dim in dims) and axis.name is None
        if shared and isinstance(call_jaxpr, ClosedJaxpr):
            params |= {"call_jaxpr": call_jaxpr, "num_consts": num_consts}
            return primitive.bind(*args, **params), [None] * len(call_jaxpr.outvars)
        for key, value in params.items():
            if isinstance(value, CallRule):
                params[key] = MappedRule(value, dims[num_consts:], axis)
        program = mapped(as_fun(call_jaxpr), dims, axis)
        params |= {"call_jaxpr": program, "num_consts": num_consts}
        outs = primitive.bind(*args, **params)
        return outs, [0] * len(outs)

    return rule


# Rules ``rule(eqn)`` return the `ClosedJaxpr` that an equation calls, None if it is no
# call: to run such an equation is to run that program.
callee_rules: RuleTable = RuleTable("callee", default=lambda eqn: None)


def _write(eqn, writing):
    """Write the name first, and the number of constants only if there are any."""
    params = {"name": eqn.params["name"], **dict(sorted(eqn.params.items()))}
    if not params["num_consts"]:
        del params["num_consts"]
    return write_plainly(eqn, writing, params)


def call_primitive(name):
    """Return a new primitive that calls a function, with the rules of every call."""
    primitive = CallPrimitive(name)
    program_primitives.add(primitive)
    impl_rules[primitive], shape_rules[primitive] = _impl, _shape
    vmap_rules[primitive], print_rules[primitive] = _vmap_rule(primitive), _write
    callee_rules[primitive] = lambda eqn: eqn.params["call_jaxpr"]
    return primitive
