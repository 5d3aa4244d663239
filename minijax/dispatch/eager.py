"""Plans of eager calls: what a function has done often enough becomes a program.

A public function that is called with arrays runs as Python, operation by operation. A
clock of its own ticks while it does. Where the ticks of one kind of call have come to
the time that a program costs, the call is traced and compiled, and the fast path
answers it from then on.

Reference: JAX's functions of arrays are themselves jitted.
"""

# Made from chapters/26_calls_rest.md by `make chapter`;
# edit the chapter, not this file.

import os
from enum import Enum
from functools import update_wrapper, wraps
from threading import Lock
from time import perf_counter_ns

import numpy as np

from minijax import lax
from minijax.arrays.array import (
    ArrayImpl,
    asbuffer,
    def_shape_and_impl,
    eval_rules,
    typeof,
)
from minijax.arrays.devices import default_placement, ignore_float_errors
from minijax.arrays.dtypes import _on_or_off, collect_warnings, config, dtype_kind
from minijax.context_values import has_global_value
from minijax.core import (
    _current_trace,
    bind_listeners,
    current_trace,
    impl_rules,
    trace_scope,
    tracer_methods,
)
from minijax.diagnostics.error_messages import eager_function_hook, method_boundaries
from minijax.diagnostics.tracebacks import api_boundary, eager_frames
from minijax.dispatch.fastpath_functions import (
    SignatureCache,
    enable_fastpath,
    fastpath_entry,
    fastpath_supported,
    register_fastpath,
    structure,
)
from minijax.dispatch.fastpath_tables import signature_table
from minijax.dispatch.word_language import UnknownLayout
from minijax.errors import JaxRuntimeError
from minijax.jaxprs.jaxpr import ClosedJaxpr, JaxprTrace, JaxprTracer, Literal, Var
from minijax.jaxprs.pretty_printer import jaxprs_in_params
from minijax.jaxprs.types import TraceProvenance
from minijax.jitting.api import CacheEntry, take_apart
from minijax.jitting.compilation import TracedProgram
from minijax.jitting.stages import FLOPS, TRANSCENDENTALS, eqn_cost
from minijax.kernels.lowering import cpu_rules
from minijax.numpy.array_methods import operator_functions
from minijax.numpy.scalar_types import ScalarType
from minijax.pytrees.api_util import FlatCall
from minijax.pytrees.tree_util import tree_flatten
from minijax.rematerialization.caching import cache_key_of_value
from minijax.rematerialization.jaxpr_transforms import has_effects


class NoPlan(Exception):
    """Something in a call that no program can stand for."""


ATOMS = frozenset([bool, int, str, bytes, type(None), type(...)])
CONTAINERS = frozenset([list, tuple, dict])
CONSTANTS = np.dtype, ScalarType, Enum  # of which each is one value for ever
NUMBERS = {bool, int, float, complex}


def key_of(x, placement):
    """Return the part of a key that stands for an argument.

    Args:
      x: an array, of which the type counts, or a value that never changes.
      placement: where arrays have to be.

    Raises:
      NoPlan: if it is neither, nor a container of such.
    """
    kind = type(x)
    if kind is ArrayImpl:
        if x.placement is not placement:
            raise NoPlan("an array that is somewhere else")
        return x.aval
    if kind in ATOMS:
        return kind, x
    if kind in CONTAINERS:
        items = x.items() if kind is dict else x
        return kind, *[key_of(item, placement) for item in items]
    return _rarer_key_of(x, placement)


def _rarer_key_of(x, placement):
    """Return the part of a key for an argument that is seldom met."""
    kind = type(x)
    if kind is np.ndarray or isinstance(x, (np.generic, float, complex)):
        is_number = isinstance(x, (float, complex)) and not isinstance(x, np.generic)
        return cache_key_of_value(x) if is_number else (kind, typeof(x))
    if kind is slice:
        return kind, *[key_of(end, placement) for end in (x.start, x.stop, x.step)]
    if isinstance(x, tuple):
        return kind, *[key_of(item, placement) for item in x]
    is_dtype = kind is type and (x in NUMBERS or issubclass(x, np.generic))
    if is_dtype or isinstance(x, CONSTANTS):
        return cache_key_of_value(x)
    raise NoPlan(f"an argument of type {kind.__name__}")


def call_key(args, kwargs, placement):
    """Return the key of a call: two calls of one key have one plan.

    It has the types of arrays and the values of all other arguments.

    Args:
      args, kwargs: of the call.
      placement: where arrays have to be.

    Raises:
      NoPlan: if no program can stand for such calls.
    """
    parts = [
        x.aval
        if type(x) is ArrayImpl and x.placement is placement
        else key_of(x, placement)
        for x in args
    ]
    if kwargs:
        parts += [(name, key_of(kwargs[name], placement)) for name in sorted(kwargs)]
    return tuple(parts)


def varies(x):
    """Return whether an argument is an operand of the program: arrays, and no others.

    Raises:
      NoPlan: if it is a container of arrays and of something else.
    """
    if isinstance(x, (ArrayImpl, np.ndarray, np.generic)):
        return True
    if isinstance(x, slice):
        parts = [False, x.start, x.stop, x.step]
    elif isinstance(x, (tuple, list, dict)):
        parts = [*(x.values() if isinstance(x, dict) else x)]
    else:
        return False
    found = {part is not False and varies(part) for part in parts}
    if len(found) == 2:
        raise NoPlan("arrays beside other values")
    return True in found


class PlanTracer(JaxprTracer):
    """A tracer whose numbers exist, and that will be others in the next call."""

    __slots__ = ()

    def concrete(self):
        """Refuse: what follows would depend on the numbers."""
        raise NoPlan("a number is looked at")


class PlanTrace(JaxprTrace):
    """Writes down what is done now: functions decide as they do when they compute."""

    stages = False

    def new_input(self, aval):
        """Return a tracer for an argument."""
        return PlanTracer(self, super().new_input(aval).variable)

    def record(self, eqn):
        """Keep an equation, and return tracers for its results."""
        return [PlanTracer(self, out.variable) for out in super().record(eqn)]


def planned_program(call):
    """Return the `TracedProgram` of a call.

    Args:
      call: a `FlatCall`.

    Raises:
      NoPlan: if the program is not all that the call does, or nothing is gained by it.
      Exception: what the function raises if it needs the values of its arguments.
    """
    origin = TraceProvenance(call.name, call.fun_name, call.names)
    trace = PlanTrace(current_trace(), origin)
    with collect_warnings() as told, trace_scope(trace):
        outs = call(*map(trace.new_input, call.avals))
        jaxpr, consts = trace.to_jaxpr(outs)
    current_trace()
    if told or has_effects(jaxpr):
        raise NoPlan("a warning, or an effect")
    given = {*jaxpr.invars, *jaxpr.constvars}
    made = {x for x in jaxpr.outvars if isinstance(x, Var) and x not in given}
    if len(made) < max(1, len(jaxpr.outvars)):
        raise NoPlan("a result that is an argument, a constant, or there twice")
    return TracedProgram(ClosedJaxpr(jaxpr, consts), [], call.out_tree, call.fun_name)


# Operations whose results IEEE's standard prescribes, for real numbers.
ROUNDED_ONCE = {
    lax.add_p, lax.sub_p, lax.mul_p, lax.div_p, lax.neg_p, lax.abs_p, lax.sign_p,
    lax.square_p, lax.sqrt_p, lax.floor_p, lax.ceil_p, lax.round_p, lax.select_n_p,
    lax.convert_element_type_p,
}  # fmt: skip


def operations(jaxpr):
    """Return the equations of a program that do something, those inside others too."""
    found = []
    for eqn in jaxpr.eqns:
        inner = [*map(operations, jaxprs_in_params(eqn.params))]
        found += sum(inner, []) if inner else [eqn]
    return found


def is_compiled(eqn):
    """Return whether a program may do an operation that is all that it does.

    That is if its bits are the same wherever it is done, or if the compiler has a way
    of its own, such as a routine of LAPACK. NumPy does the others, as it always has.
    """
    kinds = {dtype_kind(var.aval.dtype) for var in eqn.outvars}
    if eqn.primitive in cpu_rules or kinds <= {*"biux"}:
        return True
    cost = eqn_cost(eqn)
    prescribed = eqn.primitive in ROUNDED_ONCE or eqn.params.get("y") == 2  # a square
    moves = not cost.get(FLOPS) and not cost.get(TRANSCENDENTALS)
    return moves or (prescribed and "c" not in kinds)


class OneOperation:
    """An operation of which all is known but the numbers; NumPy does it.

    Args:
      program: a `TracedProgram` of one equation.
      placement: where operands are.

    Raises:
      NoPlan: if it is not done by NumPy.
    """

    def __init__(self, program, placement):
        jaxpr, [eqn] = program.closed.jaxpr, program.closed.jaxpr.eqns
        rule = getattr(impl_rules[eqn.primitive], "__qualname__", "")
        if not rule.startswith(def_shape_and_impl.__name__ + "."):
            raise NoPlan("an operation that is not NumPy's")
        known = dict(zip(jaxpr.constvars, program.closed.consts))
        given = {var: i for i, var in enumerate(jaxpr.invars)}
        self.operands = [
            (given.get(x), x.value if isinstance(x, Literal) else known.get(x))
            for x in eqn.invars
        ]
        self.in_order = [i for i, _ in self.operands] == [*range(len(jaxpr.invars))]
        self.outs = [eqn.outvars.index(var) for var in jaxpr.outvars]
        self.what = eqn.primitive, eval_rules[eqn.primitive]
        self.params, self.avals = eqn.params, [var.aval for var in eqn.outvars]
        self.tree, self.placement = program.out_tree, placement

    executable = None  # so that the fast path leaves it alone

    def run(self, leaves):
        """Return the result, a tree, for the leaves of the arguments."""
        if not self.in_order:
            leaves = [x if i is None else leaves[i] for i, x in self.operands]
        place, avals = self.placement, self.avals
        buffers = [
            x._buffer if type(x) is ArrayImpl else asbuffer(x, place.device)
            for x in leaves
        ]
        made = place.device.evaluate(*self.what, buffers, self.params, avals)
        if self.tree.kind is None:
            return ArrayImpl(made[0], avals[0], place)
        outs = [ArrayImpl(made[i], avals[i], place) for i in self.outs]
        return self.tree.unflatten(outs)


class EagerPlan:
    """A program that does what a function does with arguments of one kind.

    Args:
      function, args, kwargs: of a call.
      placement: where its arrays are.

    Attributes:
      ready: what runs it: a `CacheEntry`, or an `OneOperation`.

    Raises:
      NoPlan, Exception: see `planned_program`.
    """

    def __init__(self, function, args, kwargs, placement):
        self.nums = tuple(i for i, x in enumerate(args) if varies(x))
        self.names = frozenset(name for name, x in kwargs.items() if varies(x))
        named = {name: kwargs[name] for name in kwargs if name in self.names}
        fixed = {name: kwargs[name] for name in kwargs if name not in self.names}
        options = {"argnums": self.nums, "constants": fixed}
        call = FlatCall("jit", function, args, named, **options)
        self.flat = not kwargs and len(call.leaves) == len(args) == len(self.nums)
        program = planned_program(call)
        done = operations(program.closed.jaxpr)
        if len(done) > 1 or any(map(is_compiled, done)):
            params = {"jaxpr": program.closed, "name": program.name}
            self.ready = CacheEntry(program, params, (False,) * len(call.leaves))
        else:
            self.ready = OneOperation(program, placement)

    def leaves(self, args, kwargs):
        """Return the operands of the program, a list."""
        if self.flat:
            return [*args]
        named = {name: kwargs[name] for name in kwargs if name in self.names}
        return take_apart([args[i] for i in self.nums], named)[0]

    def run(self, args, kwargs):
        """Return what the function returns."""
        return self.ready.run(self.leaves(args, kwargs))

    def is_faster(self, args, kwargs, took):
        """Return whether the plan takes less than so many nanoseconds."""
        times = []
        for _ in range(5):
            start = perf_counter_ns()
            self.run(args, kwargs)
            times.append(perf_counter_ns() - start)
        return min(times) < took


def agree(result, expected, leaves):
    """Return whether a program's result is what the function itself has returned.

    Args:
      result, expected: trees.
      leaves: the arguments, whose largest number says what little is.
    """
    (found, tree), (known, structure) = map(tree_flatten, (result, expected))
    if tree != structure or any(type(x) is not ArrayImpl for x in known):
        return False
    size = max(map(largest, [*known, *leaves]), default=0.0)
    return all(_alike(x, y, size) for x, y in zip(found, known))


def largest(x):
    """Return the largest finite number of an array of floats, in size."""
    x = np.asarray(x if type(x) is not ArrayImpl else x._buffer)
    if x.dtype.kind not in "fc":
        return 1.0
    return float(np.abs(x[np.isfinite(x)]).max(initial=0.0))


@ignore_float_errors
def _alike(x, y, size):
    if x.aval != y.aval or x.placement is not y.placement:
        return False
    x, y = np.asarray(x._buffer), np.asarray(y._buffer)
    if x.dtype.kind not in "fc":
        return x.tobytes() == y.tobytes()
    eps = float(np.finfo(x.dtype).eps)
    near = {"rtol": eps**0.5, "atol": eps**0.7 * size}
    return np.allclose(x, y, **near, equal_nan=True)


config.define(
    "minijax_eager_plans", os.environ.get("MINIJAX_EAGER_PLANS", "1"), _on_or_off
)

# Switches that look at operations, or at programs, one by one.
WATCHING = """
    jax_disable_jit jax_no_tracing jax_log_compiles jax_explain_cache_misses
    jax_debug_key_reuse jax_check_tracer_leaks jax_transfer_guard
    jax_transfer_guard_host_to_device jax_transfer_guard_device_to_host
""".split()

_overrides = config._overrides
_last: tuple = (None, None)  # all switches, and what they allow


def is_outside(variable):
    """Return whether a context variable is as it is outside of all blocks."""
    return variable.get().before is None or has_global_value(variable)


def plan_placement():
    """Return where arrays are of which calls may have plans; None if none may now."""
    global _last
    if bind_listeners or not is_outside(_current_trace) or not is_outside(_overrides):
        return None
    values, last = config._values, _last
    if last[0] is values:
        return last[1]
    watched = [values.get(name) not in (None, False, "allow") for name in WATCHING]
    allowed = values["minijax_eager_plans"] and not any(watched)
    _last = values, default_placement() if allowed else None
    return _last[1]


def _stays(x):
    """Return whether a value can never become another one; a list can."""
    try:
        hash(x)
    except TypeError:
        return False
    return True


class PlanCache(SignatureCache):
    """The plans of a function, and how long calls of each kind have taken.

    Attributes:
      tick: after how many nanoseconds of its time a function is looked at.
      price: after how many nanoseconds a kind of call gets a plan: what it costs.
      plans: by the key of a call the `EagerPlan`.
      spent: nanoseconds since it was last looked at.
      times: by key, nanoseconds.
    """

    tick, price = 1_000_000, 30_000_000

    def __init__(self, function):
        super().__init__(function)
        self.plans, self.times, self.spent = {}, {}, 0

    def clear(self):
        """Forget all plans."""
        super().clear()
        self.plans.clear()
        self.times.clear()

    def unlock(self):
        """Forget who is making a plan: after a fork, no thread is."""
        super().unlock()
        self._making_lock = Lock()

    def find(self, args, kwargs, placement):
        """Return the `EagerPlan` of a call, or None."""
        if self.switches is not config._values:
            self.clear()
            return None
        try:
            return self.plans.get(call_key(args, kwargs, placement))
        except (NoPlan, TypeError, ValueError):
            return None

    def look(self, call, result, took, placement):
        """Note a tick of the clock; make a plan if it is time.

        Args:
          call: a function and its arguments, positional and named.
          result: what it has returned.
          took: the nanoseconds that this took.
          placement: where its arrays are.
        """
        spent, self.spent = self.spent, 0
        _, args, kwargs = call
        try:
            key = call_key(args, kwargs, placement)
        except (NoPlan, TypeError, ValueError):
            return
        if len(self.times) > 256 or self.switches is not config.state[0]:
            self.clear()
        if key not in self.times:  # the first call has imported what it needs
            self.times[key] = 0
            return
        self.times[key] += spent
        if self.times[key] < self.price or key in self.refused:
            return
        if not self._making_lock.locked():
            with self._making_lock:
                self._make(key, call, result, took, placement)

    def _make(self, key, call, result, took, placement):
        """Keep a plan that has proved itself, or note that there is none."""
        try:
            function, args, kwargs = call
            plan = EagerPlan(function, args, kwargs, placement)
            leaves = plan.leaves(args, kwargs)
            right = agree(plan.run(args, kwargs), result, leaves)
            answered = right and self._add_record(plan, args, kwargs)
            if answered or (right and plan.is_faster(args, kwargs, took)):
                self.plans[key] = plan
                return
        except Exception:
            pass  # the function can do without
        self.refused.add(key)

    def _add_record(self, plan, args, kwargs):
        """Have the fast path answer such calls, and return whether it will."""
        ready = plan.ready
        entry = fastpath_entry(ready)
        fixed = [x for i, x in enumerate(args) if i not in plan.nums]
        fixed += [x for name, x in kwargs.items() if name not in plan.names]
        known = fastpath_supported(entry, ready.placement)
        if not known or not all(map(_stays, fixed)):
            return False
        trees = [structure(x, i not in plan.nums) for i, x in enumerate(args)]
        named = {k: structure(kwargs[k], k not in plan.names) for k in sorted(kwargs)}
        closed = ready.program.closed
        try:
            record = signature_table(
                enable_fastpath(EagerFunction), trees, named, closed.in_avals,
                ready.program.out_tree, closed.out_avals, entry, ready.executable,
                ready.places, ready.placement, ready.given,
            )  # fmt: skip
        except (UnknownLayout, JaxRuntimeError, MemoryError):
            return False
        record.held.append(plan)
        self.add(record)
        return True


class _Eager:
    """What answers the calls of a function of arrays."""

    def __init__(self, function):
        update_wrapper(self, function)
        self.function, self._ready = function, PlanCache(self)
        self._fast_path = self._ready.head

    def __call__(self, /, *args, **kwargs):
        """Do what the function does: by a plan, or in Python while a clock runs."""
        placement = plan_placement()
        if placement is None:
            return self.function(*args, **kwargs)
        ready = self._ready
        if ready.plans and (plan := ready.find(args, kwargs, placement)) is not None:
            try:
                return plan.run(args, kwargs)
            except Exception:  # let the function itself say what is wrong
                return self.function(*args, **kwargs)
        start = perf_counter_ns()
        result = self.function(*args, **kwargs)
        took = perf_counter_ns() - start
        ready.spent += took
        if ready.spent > ready.tick:
            ready.look((self.function, args, kwargs), result, took, placement)
        return result


class EagerFunction(_Eager):
    """What answers the calls of a function of arrays, by the fast path if it can."""

    __slots__ = ("_fast_path",)


register_fastpath(EagerFunction)


def eagerly(function):
    """Return a function of arrays that does what `function` does, and has plans."""
    answer = EagerFunction(function)

    @wraps(function)
    def call(*args, **kwargs):
        return answer(*args, **kwargs)

    call.__wrapped__ = getattr(function, "__wrapped__", function)  # the user's own
    eager_frames.add(call.__code__)
    return call


UNARY = {"__neg__", "__invert__", "__abs__"}


def plan_methods():
    """Give operators, and those methods that are functions of arrays, plans."""
    for function in operator_functions:
        operator_functions[function] = EagerFunction(function)
    for name, method in [*tracer_methods.items()]:
        function = method if name in UNARY else getattr(method, "__wrapped__", None)
        made = name in UNARY or method_boundaries.get(function) is method
        if made and function.__module__.startswith("minijax.numpy."):
            method_boundaries[function] = api_boundary(eagerly(function), True)
            tracer_methods.supersede(name, method, method_boundaries[function])


eager_frames.add(EagerFunction.__call__.__code__)
eager_function_hook.value = eagerly
plan_methods()
