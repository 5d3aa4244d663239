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
from contextlib import suppress
from enum import Enum
from functools import update_wrapper, wraps
from threading import Lock
from time import perf_counter_ns
from typing import NamedTuple
from weakref import ref

import numpy as np

from minijax.arrays.array import ArrayImpl, typeof
from minijax.arrays.devices import default_placement, ignore_float_errors
from minijax.arrays.dtypes import _on_or_off, collect_warnings, config
from minijax.context_values import has_global_value
from minijax.core import (
    _current_trace,
    bind_listeners,
    current_trace,
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
    is_in_order,
    put_in_order,
    register_fastpath,
    structure,
)
from minijax.dispatch.fastpath_tables import signature_table
from minijax.dispatch.word_language import UnknownLayout
from minijax.errors import JaxRuntimeError
from minijax.jaxprs.jaxpr import ClosedJaxpr, JaxprTrace, JaxprTracer, jaxpr_as_fun
from minijax.jaxprs.types import TraceProvenance
from minijax.jitting.api import CacheEntry, jit, take_apart
from minijax.jitting.compilation import TracedProgram
from minijax.numpy.array_methods import operator_functions
from minijax.numpy.scalar_types import ScalarType
from minijax.pytrees.api_util import FlatCall
from minijax.pytrees.tree_util import PyTreeDef, tree_flatten, tree_structure
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
      x: an array, of which type and order count, or a value that never changes.
      placement: where arrays have to be.

    Raises:
      NoPlan: if it is neither, nor a container of such.
    """
    kind = type(x)
    if kind is ArrayImpl:
        if x.placement is not placement:
            raise NoPlan("an array that is somewhere else")
        return x.aval if is_in_order(x) else (kind, x.aval)
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
        in_order = x.flags.c_contiguous if kind is np.ndarray else None
        return cache_key_of_value(x) if is_number else (kind, typeof(x), in_order)
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

    It has the types of arrays and the values of all other arguments, and for an array
    whose numbers lie in another order, such as a transposed one, that they do.

    Args:
      args, kwargs: of the call.
      placement: where arrays have to be.

    Raises:
      NoPlan: if no program can stand for such calls.
    """
    parts = [
        x.aval
        if type(x) is ArrayImpl and x.placement is placement and is_in_order(x)
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


class Assembly(NamedTuple):
    """What a function returns, if not all of it is made by the program.

    Attributes:
      tree: the structure of the function's result.
      order: where each leaf of it is in a list of the program's results, then the
        leaves of the arguments, then `fixed`.
      fixed: numbers of Python.
    """

    tree: PyTreeDef
    order: list
    fixed: list

    def build(self, made, leaves):
        """Return the function's result, for the program's and the arguments' leaves."""
        found = [*made, *leaves, *self.fixed]
        return self.tree.unflatten([found[i] for i in self.order])


def split_results(outs, inputs, tree):
    """Return the results that are made, and the `Assembly`: None if all of them are.

    Args:
      outs: the leaves of a function's result.
      inputs: the `PlanTracer`s of its operands.
      tree: the structure of the result.

    Raises:
      NoPlan: if no array is made, or one twice, or one is there before the call.
    """
    given = [x.variable for x in inputs]
    made = [x for x in outs if isinstance(x, PlanTracer) and x.variable not in given]
    fixed = [x for x in outs if type(x) in NUMBERS]
    known = [*[x.variable for x in made], *given]
    if not made or len({*known}) < len(known):
        raise NoPlan("nothing that is made, or something twice")
    order, count = [], len(known)
    for x in outs:
        if isinstance(x, PlanTracer):
            order.append(known.index(x.variable))
        elif type(x) in NUMBERS:
            order.append(count)
            count += 1
        else:
            raise NoPlan("an array that is there before the call")
    return made, None if len(made) == len(outs) else Assembly(tree, order, fixed)


def planned_program(call):
    """Return the `TracedProgram` of a call, and the `Assembly` of its results or None.

    Args:
      call: a `FlatCall`.

    Raises:
      NoPlan: if the program is not all that the call does, or nothing is gained by it.
      Exception: what the function raises if it needs the values of its arguments.
    """
    origin = TraceProvenance(call.name, call.fun_name, call.names)
    trace = PlanTrace(current_trace(), origin)
    with collect_warnings() as told, trace_scope(trace):
        inputs = [*map(trace.new_input, call.avals)]
        outs = call(*inputs)
        made, assembly = split_results(outs, inputs, call.out_tree)
        jaxpr, consts = trace.to_jaxpr(made)
    current_trace()
    if told or has_effects(jaxpr):
        raise NoPlan("a warning, or an effect")
    tree = tree_structure(made) if assembly else call.out_tree
    program = TracedProgram(ClosedJaxpr(jaxpr, consts), [], tree, call.fun_name)
    return program, assembly


class EagerPlan:
    """A program that does what a function does with arguments of one kind.

    Args:
      function, args, kwargs: of a call.

    Attributes:
      ready: the `CacheEntry` that runs it if all of the result is made.
      assembly: the `Assembly` of the result, or None if all of it is made.
      made: if not all is made, the jitted function of the leaves that makes the rest.

    Raises:
      NoPlan, Exception: see `planned_program`.
    """

    def __init__(self, function, args, kwargs):
        self.nums = tuple(i for i, x in enumerate(args) if varies(x))
        self.names = frozenset(name for name, x in kwargs.items() if varies(x))
        named = {name: kwargs[name] for name in kwargs if name in self.names}
        fixed = {name: kwargs[name] for name in kwargs if name not in self.names}
        options = {"argnums": self.nums, "constants": fixed}
        call = FlatCall("jit", function, args, named, **options)
        self.flat = not kwargs and len(call.leaves) == len(args) == len(self.nums)
        program, self.assembly = planned_program(call)
        params = {"jaxpr": program.closed, "name": program.name}
        self.ready = CacheEntry(program, params, (False,) * len(call.leaves))
        if self.assembly:
            self.made = jit(jaxpr_as_fun(program.closed))

    def leaves(self, args, kwargs):
        """Return the operands of the program, a list."""
        if self.flat:
            return [*args]
        named = {name: kwargs[name] for name in kwargs if name in self.names}
        return take_apart([args[i] for i in self.nums], named)[0]

    def run(self, args, kwargs):
        """Return what the function returns."""
        leaves = self.leaves(args, kwargs)
        if self.assembly:
            return self.assembly.build(self.made(*leaves), leaves)
        return self.ready.run(leaves)


def agree(result, expected, leaves):
    """Return whether a program's result is what the function itself has returned.

    Args:
      result, expected: trees.
      leaves: the arguments, whose largest number says what little is.
    """
    (found, tree), (known, structure) = map(tree_flatten, (result, expected))
    if tree != structure:
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
    if x is y or (type(x) is type(y) and type(x) in NUMBERS and repr(x) == repr(y)):
        return True
    if not type(x) is type(y) is ArrayImpl:
        return False
    if x.aval != y.aval or x.placement is not y.placement:
        return False
    x, y = np.asarray(x._buffer), np.asarray(y._buffer)
    if x.dtype.kind not in "fc":
        return x.tobytes() == y.tobytes()
    eps = float(np.finfo(x.dtype).eps)
    atol = max(eps**0.7 * size, eps**0.5 * largest(y))
    return np.allclose(x, y, rtol=eps**0.5, atol=atol, equal_nan=True)


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
      turned: references to arguments whose numbers lie in another order.
    """

    tick, price = 1_000_000, 30_000_000

    def __init__(self, function):
        super().__init__(function)
        self.plans, self.times, self.spent, self.turned = {}, {}, 0, []

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

    def look(self, call, result, placement):
        """Note a tick of the clock; make a plan if it is time.

        Args:
          call: an `EagerFunction` and its arguments, positional and named.
          result: what it has returned.
          placement: where its arrays are.
        """
        spent, self.spent = self.spent, 0
        _, args, kwargs = call
        self._put_in_order(args)
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
                self._make(key, call, result)

    def _put_in_order(self, args):
        """Give arrays in another order that are met again and again a buffer in order.

        One that is made for each call, such as ``x.T``, is not worth a copy.
        """
        turned = [x for x in args if type(x) is ArrayImpl and not is_in_order(x)]
        known = [reference() for reference in self.turned]
        with suppress(MemoryError):
            put_in_order([x for x in turned if any(x is each for each in known)])
        self.turned = [ref(x) for x in turned]

    def _make(self, key, call, result):
        """Keep a plan that has proved itself, or note that there is none."""
        (answer, args, kwargs), record = call, None
        with suppress(Exception):  # the function can do without
            plan = EagerPlan(answer.function, args, kwargs)
            if agree(plan.run(args, kwargs), result, plan.leaves(args, kwargs)):
                self.plans[key] = plan
                record = self._add_record(plan, args, kwargs)
                if self.is_faster(answer, args, kwargs):
                    return
        self.plans.pop(key, None)
        self.remove(record)
        self.refused.add(key)

    def is_faster(self, answer, args, kwargs):
        """Return whether a function with a plan is faster than without, by the clock.

        The plan may have more to do: a part of an array need not be copied in Python.
        """
        times, end = [], perf_counter_ns() + self.price
        while len(times) < 3 or (len(times) < 8 and perf_counter_ns() < end):
            begin = perf_counter_ns()
            answer(*args, **kwargs)
            middle = perf_counter_ns()
            answer.function(*args, **kwargs)
            times.append((middle - begin, perf_counter_ns() - middle))
        planned, unplanned = map(min, zip(*times))
        return planned < unplanned

    def _add_record(self, plan, args, kwargs):
        """Have the fast path answer such calls; return the record, or None."""
        ready = plan.ready
        entry = fastpath_entry(ready)
        fixed = [x for i, x in enumerate(args) if i not in plan.nums]
        fixed += [x for name, x in kwargs.items() if name not in plan.names]
        arrays = [x for x in plan.leaves(args, kwargs) if type(x) is ArrayImpl]
        plain = not plan.assembly and all(map(is_in_order, arrays))
        known = plain and fastpath_supported(entry, ready.placement)
        if not known or not all(map(_stays, fixed)):
            return None
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
            return None
        record.held.append(plan)
        self.add(record)
        return record


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
            with suppress(Exception):
                return plan.run(args, kwargs)
            return self.function(*args, **kwargs)  # it says itself what is wrong
        start = perf_counter_ns()
        result = self.function(*args, **kwargs)
        ready.spent += perf_counter_ns() - start
        if ready.spent > ready.tick:
            ready.look((self, args, kwargs), result, placement)
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
