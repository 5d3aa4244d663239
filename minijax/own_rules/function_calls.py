"""Calls of functions that bring their own rules: primitives with functions inside.

Reference: ``custom_jvp_call_p``, ``custom_vjp_call_p`` in
``jax._src.custom_derivatives``.
"""

# Made from chapters/11_own_rules.md by `make chapter`;
# edit the chapter, not this file.

from functools import partial

from minijax.arrays.array import shape_rules
from minijax.arrays.avals import typeof
from minijax.batching.rules import vmap_rules
from minijax.batching.trace import program_primitives
from minijax.core import Primitive, RuleTable, current_trace, impl_rules
from minijax.jaxprs.jaxpr import ClosedJaxpr
from minijax.jaxprs.printing import print_rules, write_plainly
from minijax.jaxprs.staging import JaxprTrace, trace_to_jaxpr
from minijax.own_rules.flat_functions import as_fun, mapped_call


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


def _impl(*args, call_jaxpr, **params):
    return as_fun(call_jaxpr)(*args)


def _shape(*avals, call_jaxpr, **params):
    return call_jaxpr.out_avals


# Rules ``rule(eqn)`` return the `ClosedJaxpr` that an equation calls, None if it is no
# call: to run such an equation is to run that program.
callee_rules: RuleTable = RuleTable("callee", default=lambda eqn: None)
# Primitives whose calls have no rules of their own: nothing is lost with the call.
plain_calls: set = set()


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
    vmap_rules[primitive] = partial(mapped_call, primitive)
    print_rules[primitive] = _write
    callee_rules[primitive] = lambda eqn: eqn.params["call_jaxpr"]
    return primitive
