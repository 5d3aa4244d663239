# Made from chapters/12_jit.md by `make chapter`;
# edit the chapter, not this file.
"""The tracing cache: functions of trees as programs, and why one is traced anew.

Reference: the tracing cache of ``jax.jit``.
"""

import logging
import math
from itertools import zip_longest
from typing import NamedTuple
from weakref import WeakKeyDictionary

from minijax.arrays.settings import config
from minijax.core import Tracer, current_trace, lifetime
from minijax.jaxprs.jaxpr import ClosedJaxpr
from minijax.jaxprs.staging import JaxprTrace, Origin
from minijax.jitting.programs import partition
from minijax.jitting.remembering import (
    Once,
    cache_by_object,
    once_of,
    trace_context,
    traced_switches,
)
from minijax.pytrees.call_names import argument_names
from minijax.pytrees.differences import differences
from minijax.pytrees.treedefs import PyTreeDef


class Static:
    """A value in a key: equal to others of the same type, and equal in all its parts.

    Python's 1, 1.0 and True are equal and have one hash, and so are 0.0 and -0.0; as
    keys they differ.
    """

    __slots__ = ("value",)

    def __init__(self, value):
        self.value = value

    def __hash__(self):
        return hash(self.value)

    def __eq__(self, other):
        return isinstance(other, Static) and _same(self.value, other.value)

    def __repr__(self):
        return repr(self.value)


def _same(a, b):
    if type(a) is not type(b):
        return False
    if type(a) is tuple:
        return len(a) == len(b) and all(map(_same, a, b))
    if type(a) is float and a == 0.0 == b:
        return math.copysign(1.0, a) == math.copysign(1.0, b)
    return a is b or _equal(a, b)


def _equal(a, b):
    try:
        return bool(a == b)
    except Exception as error:
        raise ValueError(
            "Static arguments should be comparable by ==, and these two of type "
            f"{type(a).__name__} are not: {type(error).__name__}: {error}"
        ) from error


class Key(NamedTuple):
    """What a program depends on, besides the function.

    Attributes:
      tree: the structure of the arguments, a `PyTreeDef` of ``(args, kwargs)``.
      avals: the abstract values of their leaves.
      statics: pairs of a name and a `Static`.
      hoist: whether constants are inputs.
      switches: the values of `traced_switches`.
      axes: the named axes around, each a `MappedAxis`.
    """

    tree: PyTreeDef
    avals: tuple
    statics: tuple
    hoist: bool
    switches: tuple
    axes: tuple


class Program(NamedTuple):
    """A user's function, written down.

    Attributes:
      closed: a `ClosedJaxpr`, whose first inputs are those of `captured`.
      captured: the arrays and tracers that the function has used and that are inputs.
      out_tree: the structure of its result.
      name: of the function.
    """

    closed: ClosedJaxpr
    captured: list
    out_tree: PyTreeDef
    name: str


def _closed(call, key, jaxpr, consts):
    taken = [key.hoist or isinstance(const, Tracer) for const in consts]
    constvars, lifted = partition(taken, jaxpr.constvars)
    values, captured = partition(taken, consts)
    jaxpr = jaxpr.replace(constvars=constvars, invars=lifted + jaxpr.invars)
    return Program(
        ClosedJaxpr(jaxpr, values), captured, call.out_tree, name_of_program(call.fun)
    )


def name_of_program(fun):
    """Return what the program of a function is called."""
    inner = getattr(fun, "func", fun)  # of a functools.partial
    return getattr(inner, "__name__", "<unnamed function>")


_programs = cache_by_object()


def programs_of(fun):
    """Return the `Once` with the programs of a function, by `Key`."""
    try:
        return once_of(_programs, fun)
    except TypeError:  # it has no hash, or nobody may hold it weakly
        return Once()


def program_of(call, statics=(), hoist=False):
    """Return the `Program` of a call; it is made once for each kind of arguments.

    A program that has picked up tracers of the transformations around is right for them
    alone, and not kept.

    Args:
      call: a `FlatCall`.
      statics: pairs of a name and a `Static` on which the program depends.
      hoist: whether all constants become inputs, not only tracers.
    """
    once = programs_of(call.fun)
    key = Key(call.in_tree, tuple(call.avals), statics, hoist, *trace_context())
    if (program := once.values.get(key)) is not None:
        return program
    with once.turn(key) as program:
        if program is None:
            if config.jax_explain_cache_misses:
                log_reason(call, key, once)
            origin = Origin(call.name, call.fun_name, call.names)
            trace = JaxprTrace(current_trace(), origin)
            with lifetime(trace):  # `trace_to_jaxpr`, with fewer calls on the stack
                outs = call.__call__(*map(trace.new_input, call.avals))
                jaxpr, consts = trace.to_jaxpr(outs)
            program = _closed(call, key, jaxpr, consts)
            once.offer(key, program, _stands_alone(program))
    return program


def _stands_alone(program):
    return not any(isinstance(x, Tracer) for x in program.captured)


_logger = logging.getLogger(__name__)
_traced = WeakKeyDictionary()  # from code to the names of functions that it made


def log_reason(call, key, once):
    """Log why the function of a call has to be traced."""
    _logger.warning(reason_of(call, key, once))


def reason_of(call, key, once):
    """Return, in one sentence, why the function of a call has to be traced.

    Args:
      call: a `FlatCall`.
      key: the `Key` of the program that is wanted.
      once: the `Once` with the programs that there are.
    """
    known = [old for old in [*once.values] if old.hoist == key.hoist]
    if not known:
        return f"{call.fun_name} is traced because {_first_time(call, once)}."
    first, *rest = changes(call, key, nearest(key, known))
    others = f"{len(rest)} other things" if len(rest) > 1 else "another thing"
    more = f", and so did {others}" if rest else ""
    return f"{call.fun_name} is traced again because {first}{more}."


def nearest(key, known):
    """Return the one of the `known` keys that is most like `key`, the latest first."""

    def distance(old):
        return _tree_distance(key.tree, old.tree), _distance(key, old)

    return min(reversed(known), key=distance)


def _tree_distance(*trees):
    """Return how many arguments of two calls differ in structure."""
    calls = [tree.children() for tree in trees]
    pairs = [*zip_longest(*(args.children() for args, _ in calls))]
    now, before = (dict(zip(named.aux, named.children())) for _, named in calls)
    pairs += [(now.get(name), before.get(name)) for name in {**before, **now}]
    return sum(a != b for a, b in pairs)


def _distance(key, old):
    """Return in how many parts two keys differ."""
    parts = [*zip(key.switches, old.switches), (key.axes, old.axes)]
    now, before = dict(key.statics), dict(old.statics)
    parts += [(now.get(name), before.get(name)) for name in {**before, **now}]
    for a, b in zip(key.avals, old.avals):
        parts += [(a.shape, b.shape), (a.dtype, b.dtype), (a.weak_type, b.weak_type)]
    return sum(a != b for a, b in parts)


def changes(call, key, old):
    """Return what is different between a call's key and another one, as clauses."""
    return [
        *_pairs("the switch ", traced_switches, key.switches, old.switches),
        *_axis_changes(key.axes, old.axes),
        *_static_changes(dict(key.statics), dict(old.statics)),
        *(_tree_changes(call, key, old) or _aval_changes(call, key, old)),
    ]


def _changed(what, before, now):
    return f"{what} changed from {before} to {now}"


def _aval_changes(call, key, old):
    triples = zip(call.names(), old.avals, key.avals)
    return [_aval_change(name, a, b) for name, a, b in triples if a != b]


def _aval_change(name, before, now):
    kinds = {
        "shape": before.shape != now.shape,
        "dtype": before.dtype != now.dtype,
        "weak type": before.weak_type != now.weak_type,
    }
    what = " and ".join(kind for kind in kinds if kinds[kind])
    return _changed(f"the {what} of its argument {name}", _aval(before), _aval(now))


def _aval(aval):
    return "weak " * aval.weak_type + str(aval.update(weak_type=False))


def _pairs(what, names, now, before):
    triples = zip(names, before, now)
    return [_changed(f"{what}{name}", a, b) for name, a, b in triples if a != b]


def _axis_changes(now, before):
    if now == before:
        return []
    return [_changed("the named axes around the call", _axes(before), _axes(now))]


def _axes(axes):
    return " and ".join(f"{axis.name!r} of size {axis.size}" for axis in axes) or "none"


def _static_changes(now, before):
    names = {**before, **now}
    new, old = ([d.get(name, "its default") for name in names] for d in (now, before))
    return _pairs("its static argument ", names, new, old)


def _tree_changes(call, key, old):
    if key.tree == old.tree:
        return []
    (args, kwargs), (old_args, old_kwargs) = key.tree.children(), old.tree.children()
    if len(args.children()) != len(old_args.children()):
        counts = len(old_args.children()), len(args.children())
        return [_changed("the number of its positional arguments", *counts)]
    if kwargs.aux != old_kwargs.aux:
        names = _listed(old_kwargs.aux), _listed(kwargs.aux)
        return [_changed("what it is given by keyword", *names)]
    return list(_places(call, old_args.children() + old_kwargs.children()))


def _listed(names):
    return " and ".join(map(str, names)) or "nothing"


def _places(call, trees):
    """Yield a clause for each place where the arguments depart from `trees`."""
    values = [call.args[i] for i in call.argnums]
    values += [call.kwargs[name] for name in sorted(call.kwargs)]
    leaves = [0] * len(call.args), dict.fromkeys(call.kwargs, 0)
    names = argument_names(call.fun, *leaves, call.argnums)
    for name, value, tree in zip(names, values, trees):
        for line in differences(tree, value, exact=True, name=name):
            place, _, what = line.removeprefix("at ").partition(": expected ")
            before, _, now = what.partition(", got ")
            yield _changed(f"the structure of its argument {place}", before, now)


def _first_time(call, once):
    function = getattr(call.fun, "func", call.fun)  # of a functools.partial
    code = getattr(function, "__code__", None)
    names = set() if code is None else _traced.setdefault(code, set())
    seen = call.fun_name in names
    names.add(call.fun_name)
    if once.cleared:
        return "the caches were cleared after its last call"
    if once.refused:
        return (
            "it uses values of a transformation around it, and a program with such "
            "values in it is right for one call alone"
        )
    if seen:
        return (
            "this function object is new: the same lines have made another one before, "
            "and each object has programs of its own"
        )
    return "it is called for the first time"
