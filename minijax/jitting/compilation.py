"""The tracing cache, shardings of a jitted function, and backends that compile.

References: the tracing cache of ``jax.jit``, the parameter ``inline`` of ``jax.jit``,
``in_shardings``, ``out_shardings`` of ``jax.jit``, ``jax.stages.Compiled``.
"""

# Made from chapters/12_jit_ground.md by `make chapter`;
# edit the chapter, not this file.
# Amended in chapters/18_llvm_rest.md: compile_context (3f8fecb4).
# Amended in chapters/28_indexing_rest.md: _closed, trace_call, call_sharding_params
#   (d3268d86).

import copy
import operator
import os
import time
from contextlib import nullcontext
from itertools import repeat
from typing import NamedTuple

from minijax._registry import Registry
from minijax.arrays.array import ArrayImpl, as_array_impl, asbuffer
from minijax.arrays.devices import Sharding, default_placement, sharding_converters
from minijax.arrays.dtypes import config
from minijax.arrays.interchange import device_ids, placement_of, placement_or_none
from minijax.arrays.transfer import transfer_operands
from minijax.batching.vmap import higher_order_primitives
from minijax.core import (
    EvalTrace,
    Primitive,
    Tracer,
    check_leaked_tracers,
    current_trace,
    set_current_trace,
    trace_scope,
)
from minijax.diagnostics.tracebacks import (
    raise_if_leaked,
    source_line_readers,
    traces_begun,
)
from minijax.jaxprs.jaxpr import ClosedJaxpr, JaxprTrace, TraceProvenance, eval_jaxpr
from minijax.jaxprs.pretty_printer import jaxprs_in_params
from minijax.jaxprs.types import Hook, ShapeDtypeStruct, struct_of
from minijax.monitoring import record_event_duration_secs
from minijax.pytrees.argument_checks import is_ref, refs_in
from minijax.pytrees.tree_operations import flatten_axes
from minijax.pytrees.tree_util import PyTreeDef, tree_map
from minijax.rematerialization.caching import (
    KeyedCache,
    cache_for_object,
    trace_context,
    weakref_cache,
    weakref_memoize,
)
from minijax.rematerialization.jaxpr_transforms import (
    dce_all_outputs,
    partition_list,
    select_where,
)

# The tracing cache: functions of trees as programs, each made once for its key.


class TraceKey(NamedTuple):
    """What a program depends on, besides the function.

    Attributes:
      tree: the structure of the arguments, a `PyTreeDef` of ``(args, kwargs)``.
      avals: the abstract values of their leaves.
      statics: pairs of a name and a `Static`.
      hoist: whether constants are inputs.
      switches: the values of `trace_context_switches`.
      axes: the named axes around, each a `MappedAxis`.
    """

    tree: PyTreeDef
    avals: tuple
    statics: tuple
    hoist: bool
    switches: tuple
    axes: tuple


class TracedProgram(NamedTuple):
    """A user's function, traced.

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
    captures = [key.hoist or isinstance(x, Tracer) or is_ref(x) for x in consts]
    constvars, lifted = partition_list(captures, jaxpr.constvars)
    values, captured = partition_list(captures, consts)
    jaxpr = jaxpr.replace(constvars=constvars, invars=lifted + jaxpr.invars)
    closed = ClosedJaxpr(jaxpr, values)
    return TracedProgram(closed, captured, call.out_tree, name_of_program(call.fun))


def name_of_program(fun):
    """Return what the program of a function is called."""
    inner = getattr(fun, "func", fun)  # of a functools.partial
    return getattr(inner, "__name__", "<unnamed function>")


_programs = weakref_cache()
cache_miss_hook = Hook(lambda call, key, once: None)  # Is told of each miss.


def trace_cache_of(fun):
    """Return the `KeyedCache` with the programs of a function, by `TraceKey`."""
    try:
        return cache_for_object(_programs, fun)
    except TypeError:  # it has no hash, or no weak references
        return KeyedCache()


def _ends(x):
    """Return whether a captured value is of a transformation around."""
    return isinstance(x, Tracer) or (is_ref(x) and not x.lasts)


def trace_call(call, statics=(), hoist=False):
    """Return the `TracedProgram` of a call; it is made once for each kind of arguments.

    A program that has picked up tracers of the transformations around is right for them
    alone, and not kept. The results for the references among what it has captured
    follow those of the function.

    Args:
      call: a `FlatCall`.
      statics: pairs of a name and a `Static` on which the program depends.
      hoist: whether all constants become inputs, not only tracers.
    """
    once = trace_cache_of(call.fun)
    key = TraceKey(call.in_tree, tuple(call.avals), statics, hoist, *trace_context())
    if (program := once.values.get(key)) is not None:
        return program
    with once.lock_for(key):
        if (program := once.values.get(key)) is None:
            cache_miss_hook.value(call, key, once)
            origin = TraceProvenance(call.name, call.fun_name, call.names)
            trace = JaxprTrace(current_trace(), origin)
            trace.constants.states = {}
            with trace_scope(trace):  # `trace_to_jaxpr`, with fewer calls on the stack
                outs = call.__call__(*map(trace.new_input, call.avals))
                jaxpr, consts = trace.to_jaxpr(outs)
            current_trace()  # who reads it lets go of the trace that has ended
            if traces_begun:
                del trace, outs
                raise_if_leaked()
            program = _closed(call, key, jaxpr, consts)
            once.insert(key, program, not any(map(_ends, program.captured)))
    return program


source_line_readers.add(trace_call, keeps=True)


# The class of the primitive `jit`: a call may be asked to vanish.


class JitPrimitive(Primitive):
    """A call; one that is to be inlined vanishes when it is written down."""

    multiple_results = True

    def bind_all(self, *args, jaxpr, **params):
        """Return the list of the results of the program `jaxpr`."""
        trace = current_trace()
        if params.get("inline") and isinstance(trace, JaxprTrace):
            return eval_jaxpr(jaxpr.jaxpr, jaxpr.consts, *args)
        check_leaked_tracers(self, args)
        return trace.process_primitive(self, args, {"jaxpr": jaxpr, **params})


# Shardings that a user of jit asks for, for operands and results.


class _Unspecified:
    """Stands for a sharding that is left open."""

    def __repr__(self):
        return "UnspecifiedValue"

    def __reduce__(self):
        return "UNSPECIFIED"


UNSPECIFIED = _Unspecified()


def check_shardings(option, shardings):
    """Return a tree of shardings; None becomes `UNSPECIFIED`.

    Args:
      option: ``"in_shardings"`` or ``"out_shardings"``.
      shardings: a tree of `Sharding` and None.

    Raises:
      TypeError: if a leaf is neither.
    """
    if shardings is None or shardings is UNSPECIFIED:
        return UNSPECIFIED
    if isinstance(shardings, Sharding):
        return shardings
    return tree_map(
        lambda leaf: _leaf_of(option, leaf), shardings, is_leaf=lambda x: x is None
    )


def _leaf_of(option, leaf):
    if leaf is None or leaf is UNSPECIFIED:
        return UNSPECIFIED
    if isinstance(leaf, Sharding):
        return leaf
    if type(leaf) in sharding_converters:
        return sharding_converters[type(leaf)](option, leaf)
    raise TypeError(
        f"{option} leaf specifications are expected to be Shardings or None, but got "
        f"{leaf} of type {type(leaf).__name__}. The sharding of a device is "
        "minijax.sharding.SingleDeviceSharding(device)."
    )


def in_shardings_of(shardings, call):
    """Return a tuple with a sharding for each leaf of the arguments.

    Args:
      shardings: what `check_shardings` returns, a prefix of the positional arguments.
      call: a `FlatCall`.

    Raises:
      ValueError: if it is no prefix, or if arguments are given by name.
    """
    args, kwargs = call.in_tree.children()
    if shardings is UNSPECIFIED:
        return (UNSPECIFIED,) * call.in_tree.num_leaves
    if kwargs.children() or call.constants:
        raise ValueError(
            "jit does not support kwargs when in_shardings is specified: its entries "
            "belong to positional arguments. Give all arguments by position."
        )
    shardings = tuple(shardings) if isinstance(shardings, list) else shardings
    return tuple(flatten_axes("jit in_shardings", shardings, args))


def out_shardings_of(shardings, out_tree):
    """Return a tuple with a sharding for each leaf of the result.

    Raises:
      ValueError: if the tree of shardings is no prefix of the result.
    """
    return tuple(flatten_axes("jit out_shardings", shardings, out_tree))


def sharding_params(**shardings):
    """Return those parameters of a call in which a sharding is specified."""
    return {
        name: leaves
        for name, leaves in shardings.items()
        if any(leaf is not UNSPECIFIED for leaf in leaves)
    }


_SHARDINGS = "in_shardings", "out_shardings"


def requested_devices(params):
    """Yield the devices that the parameters of a call ask for."""
    if params.get("device"):
        yield params["device"]
    for name in _SHARDINGS:
        for sharding in params.get(name, ()):
            if sharding is not UNSPECIFIED:
                yield sharding.placement.device


def with_single_device(params):
    """Return parameters of a call that names its device instead of its shardings.

    A transformed call has other operands and results, and runs where the call would.
    """
    if not any(name in params for name in _SHARDINGS):
        return params
    rest = {name: params[name] for name in params if name not in _SHARDINGS}
    return rest | {"device": next(requested_devices(params))}


@weakref_memoize
def device_constraints(closed):
    """Return where calls inside have to run: pairs of a text and a `Placement`."""
    return [*dict.fromkeys(_wishes_in(closed.jaxpr, set()))]


# By primitive: functions of its parameters that return the devices it asks for.
device_constraint_rules: dict = Registry()


def _wishes_in(jaxpr, seen):
    for eqn in jaxpr.eqns:
        calls = eqn.primitive in higher_order_primitives
        ask = device_constraint_rules.get(
            eqn.primitive, requested_devices if calls else None
        )
        for device in ask(eqn.params) if ask else ():
            yield f"{eqn.primitive} inside jit", device.committed
        for inner in jaxprs_in_params(eqn.params) if calls else ():
            if inner not in seen:
                seen.add(inner)
                yield from _wishes_in(inner, seen)


def common_placement(wishes):
    """Return the `Placement` that all wishes name, or None if there is no wish.

    Args:
      wishes: pairs of a text, what the wish comes from, and a committed `Placement`.

    Raises:
      ValueError: if two wishes differ.
    """
    first, placement = "", None
    for wish, place in wishes:
        if placement is not None and placement.devices != place.devices:
            raise ValueError(
                f"Received incompatible devices for jitted computation. Got {first} "
                f"with {device_ids(placement)} and {wish} with {device_ids(place)}. "
                "Name one device, or leave the sharding out."
            )
        if placement is None:
            first, placement = wish, place
    return placement and placement.mesh_placement


def constrained_placement(placement, name, *programs):
    """Return where programs run: at a placement, unless calls in them ask for another.

    Raises:
      ValueError: if calls ask for another device than one that is committed.
    """
    wishes = [(f"an argument of {name}", placement)] if placement.committed else []
    inside = [wish for closed in programs for wish in device_constraints(closed)]
    return common_placement(wishes + inside) or placement


def user_out_avals(program):
    """Return the types of the results of a user's function, without references."""
    return program.closed.out_avals[: program.out_tree.num_leaves]


def call_sharding_params(options, call, program):
    """Return the parameters of a call that say where it is to be, a dictionary."""
    if options.in_shardings is options.out_shardings is UNSPECIFIED:
        return {}
    outside = (UNSPECIFIED,) * len(program.captured)
    finals = (UNSPECIFIED,) * len(refs_in(program.captured))
    wanted = in_shardings_of(options.in_shardings, call)
    results = out_shardings_of(options.out_shardings, program.out_tree) + finals
    return sharding_params(in_shardings=outside + wanted, out_shardings=results)


def sharding_of_leaf(x):
    """Return the placement of an array, or the one that a `ShapeDtypeStruct` names."""
    if isinstance(x, ShapeDtypeStruct):
        return x.sharding and x.sharding.placement
    return placement_or_none(x)


def structs_of(avals, shardings):
    """Return a list of `ShapeDtypeStruct`; `shardings` are parameters of the call."""
    wanted = dict(shardings).get("out_shardings", repeat(None))
    wanted = (None if x is UNSPECIFIED else x for x in wanted)
    return list(map(struct_of, avals, wanted))


# From a program to something that runs it: backends, and what they have made.

# From names to functions of a `ClosedJaxpr` and its name that make an executable: a
# callable from arrays to a list of arrays, with `text` and its results' `placement`.
backends: dict = Registry()


class Interpreter:
    """Runs a program one equation at a time.

    Args:
      closed: a `ClosedJaxpr`.
      name: what the program is called.
    """

    placement = None

    def __init__(self, closed, name="program"):
        self.jaxpr, self.consts, self.name = closed.jaxpr, closed.consts, name
        self.out_avals = closed.out_avals

    text = property(lambda self: str(self.jaxpr))

    def __call__(self, *args):
        """Return the list of results."""
        inside = config.override("minijax_backend", "interpreter")
        with (
            set_current_trace(EvalTrace()),
            inside,
            default_device_scope(self.placement),
        ):
            outs = eval_jaxpr(self.jaxpr, self.consts, *args)
        return [_typed(*pair, self.placement) for pair in zip(outs, self.out_avals)]


backends["interpreter"] = Interpreter


config.define("minijax_backend", os.environ.get("MINIJAX_BACKEND"), lambda name: name)
# By platform, the name of the backend that runs a program, where none is asked for.
default_backends = Registry({"cpu": "interpreter"})  # which serves all platforms

# From names to functions of a `ClosedJaxpr`, its name, and the flags of donated inputs
# that return a text: what the program looks like on the way to an executable.
text_formats: dict = Registry()

# What a program means: a function of a `ClosedJaxpr` that returns the one to be run.
canonicalization_hook: Hook = Hook(lambda closed: closed)


def _typed(x, aval, placement):
    """Return a result as an array; one that is a literal is as weak as it was."""
    x = as_array_impl(x)
    placement = placement or x.placement
    if x.aval == aval and x.placement is placement:
        return x
    return ArrayImpl(asbuffer(x, placement.device), aval, placement)


def default_device_scope(placement):
    """Return a context manager inside which new arrays are on the same device."""
    if placement is None or placement.device is default_placement().device:
        return nullcontext()
    return config.override("jax_default_device", placement.device)


def backend_name(name=None, platform=None):
    """Return the name of a backend: this one, the configured, or a platform's default.

    Raises:
      RuntimeError: if there is no such backend, or if it is for other platforms.
    """
    platform = platform or default_placement().device.platform
    name = name or config.minijax_backend
    name = name or default_backends.get(platform, "interpreter")
    if name not in backends:
        known = ", ".join(backends)
        raise RuntimeError(f"Unknown backend {name!r}; there are: {known}.")
    serves = getattr(backends[name], "platforms", (platform,))
    if platform not in serves:
        raise RuntimeError(
            f"The backend {name!r} makes programs for {', '.join(serves)}; this one is "
            f"to run on {platform}."
        )
    return name


def compile_context():
    """Return what compiling depends on, besides the program."""
    return config.minijax_backend, config.jax_enable_x64, config.minijax_cpu


def dce_for_compilation(closed):
    """Return a program without the equations that neither results nor effects need."""
    return dce_all_outputs(closed)[0]


def _options(backend, donated, device):
    """Return the keyword arguments that a backend takes besides program and name.

    One with a true attribute `donates` takes `donated`; with `per_device`, `device`.
    """
    takes = any(donated) and getattr(backend, "donates", False)
    options = {"device": device} if getattr(backend, "per_device", False) else {}
    return options | ({"donated": tuple(donated)} if takes else {})


def _with_consts_on(closed, device):
    """Return a program whose constants are on a device, and uncommitted."""
    consts = [
        x
        if not isinstance(x, ArrayImpl) or x.placement is device.uncommitted
        else ArrayImpl(asbuffer(x, device), x.aval, device.uncommitted)
        for x in closed.consts
    ]
    same = all(map(operator.is_, consts, closed.consts))
    return closed if same else ClosedJaxpr(closed.jaxpr, consts)


def _at(executable, placement):
    """Return an executable with another placement of its results."""
    if getattr(executable, "placement", placement) is placement:
        return executable
    twin = copy.copy(executable)
    twin.placement = placement
    return twin


def loop_placement(args, name, *programs):
    """Return the `Placement` of a loop: that of its operands, or asked for inside it.

    Args:
      args: operands.
      name: of the operation, for messages.
      *programs: those that it runs.

    Raises:
      ValueError: if two of all these are committed to different devices.
    """
    return constrained_placement(placement_of(args, name), name, *programs)


def run_program(closed, args, backend=None, name="program", placement=None):
    """Run a program where its operands are, and return the list of results.

    Operands that no result needs have no say in where that is.

    Args:
      closed: a `ClosedJaxpr`.
      args: its operands.
      backend, name: see `compile_cached`.
      placement: where to run it instead.
    """
    default = default_placement()
    if placement is None and any(
        isinstance(x, ArrayImpl) and x.placement is not default for x in args
    ):
        needed = dce_all_outputs(closed)[1]
        labels = [f"args[{i}]" for i in select_where(needed, range(len(args)))]
        placement = placement_of(list(select_where(needed, args)), name, labels)
    placement = constrained_placement(placement or default, name, closed)
    args = transfer_operands(args, placement.device)
    return compile_cached(closed, backend, name, placement=placement)(*args)


COMPILE_EVENT = "/jax/core/compile/backend_compile_duration"
_executables = weakref_cache()


def compile_cached(closed, backend=None, name="program", donated=(), placement=None):
    """Return the executable of a program; it is made once for each device.

    Args:
      closed: a `ClosedJaxpr`.
      backend: the name of a backend, or None for the default of the platform.
      name: what the program is called.
      donated: for each input whether its memory may be written to; () for none.
      placement: where operands are, and results will be; None for the default.
    """
    placement = placement or default_placement()
    device = placement.device
    backend = backend_name(backend, device.platform)
    options = _options(backends[backend], donated, device)
    key = backend, compile_context(), options.get("donated"), placement.sharding
    once = cache_for_object(_executables, closed)
    if (value := once.values.get(key)) is not None:
        return _at(value, placement)
    with once.lock_for(key):
        if (value := once.values.get(key)) is None:
            program = dce_for_compilation(canonicalization_hook.value(closed))
            program = _with_consts_on(program, device)
            start = time.perf_counter()
            value = backends[backend](program, name, **options)
            taken = time.perf_counter() - start
            record_event_duration_secs(COMPILE_EVENT, taken, fun_name=name)
            if hasattr(value, "placement"):
                value.placement = placement
            once.insert(key, value)
    return _at(value, placement)
