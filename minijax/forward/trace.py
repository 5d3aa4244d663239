"""Forward-mode differentiation: a program run on values and their rates of change.

Reference: ``jax.jvp``; J. Siskind and B. Pearlmutter, "Nesting forward-mode AD in a
functional framework", Higher-Order and Symbolic Computation 21 (2008).
"""

# Made from chapters/04_forward.md by `make chapter`;
# edit the chapter, not this file.
# Amended in chapters/09_linearize.md: jvp_flat (2728e5c0).
# Amended in chapters/36_replicas_ground.md: JVPTrace.pack (76ac7cd7).

from minijax.arrays.array import held_as
from minijax.arrays.avals import typeof
from minijax.core import Trace, Tracer, current_trace, lifetime, set_current_trace
from minijax.errors import ConcretizationTypeError
from minijax.forward.rules import jvp_rules


class JVPTracer(Tracer):
    """A value that moves: a primal, and the rate at which it changes.

    Args:
      trace: the `JVPTrace` to which it belongs.
      primal: an array-like.
      tangent: an array-like of the shape and dtype of `primal`.
    """

    __slots__ = ("primal", "tangent")

    def __init__(self, trace, primal, tangent):
        super().__init__(trace)
        self.primal, self.tangent = primal, tangent

    @property
    def aval(self):
        return typeof(self.held())

    def held(self):
        """Return the primal; a Python number has the dtype of its tangent."""
        if type(self.primal) in (float, complex):
            self.primal = held_as(self.primal, typeof(self.tangent))
        return self.primal

    def concrete(self):
        """Return the array under all tangents, or ``None`` if there is none yet."""
        primal = self.primal
        return primal.concrete() if isinstance(primal, Tracer) else primal

    def __float__(self):
        raise ConcretizationTypeError(
            "A conversion by float or complex would lose the tangent of a value that "
            "is being differentiated. x.astype(float) converts in the program."
        )

    __complex__ = __float__


# Functions ``complete(trace, primal, tangent)``: they return a tangent that has the
# whole type of its primal.
tangent_completers: list = []


class JVPTrace(Trace):
    """Runs a program on primals and tangents at once, by the jvp rules.

    What does not depend on a moving value stays what it is: no tracer, no tangent.
    """

    def __init__(self, parent):
        self.parent = parent

    def unpack(self, x):
        """Return the primal and the tangent of `x`; a constant has tangent ``None``."""
        if isinstance(x, JVPTracer) and x._trace is self:
            return x.held(), x.tangent
        return x, None

    def pack(self, primal, tangent):
        """Return what the program gets to hold: a tracer if there is a tangent."""
        if tangent is None:
            return primal
        for complete in tangent_completers:
            tangent = complete(self, primal, tangent)
        return JVPTracer(self, primal, tangent)

    def process_primitive(self, primitive, args, params):
        primals, tangents = unzip2(map(self.unpack, args))
        with set_current_trace(self.parent):
            if all(tangent is None for tangent in tangents):
                return primitive.bind(*primals, **params)
            results, moves = jvp_rules[primitive](primals, tangents, **params)
        return [self.pack(*pair) for pair in zip(results, moves, strict=True)]


def unzip2(pairs):
    """Return the first and the second entries of `pairs` as two tuples."""
    pairs = list(pairs)
    return tuple(x for x, _ in pairs), tuple(y for _, y in pairs)


def jvp_flat(f, primals, tangents, trace=None):
    """Return the results of `f` and their rates of change.

    Args:
      f: a function of ``len(primals)`` array-likes that returns a list.
      primals: where to evaluate `f`.
      tangents: the rates of change of the arguments, each ``None`` (zero) or an
        array-like of the shape and dtype of its primal.
      trace: the `JVPTrace` that does it; by default a new one over the current trace.

    Returns:
      Two lists as long as the result of `f`: the primal results, and their tangents,
      ``None`` where a result does not depend on an argument that moves.

    Reference: ``jax.jvp``, for functions of any tree of arrays.
    """
    with lifetime(trace or JVPTrace(current_trace())) as trace:
        results = f(*map(trace.pack, primals, tangents))
        primals_out, tangents_out = unzip2(map(trace.unpack, results))
    return list(primals_out), list(tangents_out)
