"""Functions that are written down once, and run as programs from then on.

Reference: ``jax.jit``.
"""

# Made from chapters/12_jit_rest.md by `make chapter`;
# edit the chapter, not this file.

import weakref
from functools import partial, update_wrapper
from operator import itemgetter
from types import MethodType
from typing import Any, NamedTuple

import numpy as np

from minijax.arrays.array import ArrayImpl
from minijax.arrays.avals import typeof
from minijax.arrays.dtypes import float0
from minijax.arrays.interchange import spot_of
from minijax.arrays.placement import Placement, default_placement
from minijax.arrays.settings import config
from minijax.arrays.transfer import brought
from minijax.core import EvalTrace, current_trace, refuse_dead_tracers, watchers
from minijax.diagnostics.tracebacks import guarded
from minijax.errors import UnexpectedTracerError, present, raise_if_out_of_memory
from minijax.forgetting.remembering import cache_by_object, once_of, trace_context
from minijax.jaxprs.latest import Latest
from minijax.jaxprs.staging_api import abstractify, eval_shape_rules
from minijax.jitting.arguments import (
    Chosen,
    DeletedArray,
    DonatedArray,
    check_given_once,
    give_up,
    memory_given,
    raise_if_donated,
    static_value,
    taken,
    warn_of_useless,
)
from minijax.jitting.compilation import compile_context, compiled
from minijax.jitting.lowering import Traced, numpy_if_empty
from minijax.jitting.placing import where_to_run
from minijax.jitting.primitive import jit_p
from minijax.jitting.shardings import (
    UNSPECIFIED,
    place_of_leaf,
    program_placed,
    shardings_of_call,
)
from minijax.jitting.trace_cache import program_of, programs_of
from minijax.pytrees.api_util import FlatCall
from minijax.pytrees.treedefs import tree_flatten


class Options(NamedTuple):
    """How a function is jitted.

    Attributes:
      static, donate: the `Chosen` arguments that are static, and that are donated.
      labels: names of the positional parameters.
      params: parameters of `jit_p`.
      in_shardings, out_shardings: trees of shardings, from `check_shardings`.
    """

    static: Chosen = Chosen()
    donate: Chosen = Chosen()
    labels: tuple = ()
    params: dict = {}
    in_shardings: Any = UNSPECIFIED
    out_shardings: Any = UNSPECIFIED

    def sort(self, args, kwargs):
        """Return the varying arguments as a pair, and the static ones.

        The static ones are pairs of a name and a `Static`.
        """
        if not (self.static.nums or self.static.names):
            return (args, kwargs), ()
        fixed = self.static.positions(len(args))
        varying = tuple([arg for i, arg in enumerate(args) if i not in fixed])
        named = {k: kwargs[k] for k in kwargs if k not in self.static.names}
        pairs = [(self.label(i), args[i]) for i in fixed]
        pairs += [(k, kwargs[k]) for k in sorted(kwargs) if k in self.static.names]
        return (varying, named), tuple([(k, static_value(k, x)) for k, x in pairs])

    def label(self, i):
        """Return the name of the argument at a position."""
        return self.labels[i] if i < len(self.labels) else f"number {i}"

    def flat_call(self, fun, args, kwargs, typeof=typeof):
        """Return the `FlatCall` in which the static arguments stay as they are."""
        fixed = self.static.positions(len(args))
        return FlatCall(
            "jit",
            fun,
            args,
            {k: kwargs[k] for k in kwargs if k not in self.static.names},
            argnums=tuple(i for i in range(len(args)) if i not in fixed),
            constants={k: kwargs[k] for k in kwargs if k in self.static.names},
            typeof=typeof,
        )

    def donated(self, call):
        """Return for each leaf of a `FlatCall` whether it is donated."""
        args, kwargs = call.in_tree.children()
        chosen = self.donate.positions(len(call.args))
        flags = [num in chosen for num in call.argnums]
        flags += [name in self.donate.names for name in kwargs.aux]
        trees = zip(flags, args.children() + kwargs.children())
        return tuple(flag for flag, tree in trees for _ in range(tree.num_leaves))


class CallContext(NamedTuple):
    """What a call depends on besides the function and its arguments.

    Attributes:
      tracing, compiling: `trace_context` and `compile_context`.
      disabled: whether functions run as Python.
      placement: where arrays lie that name no device.
    """

    tracing: tuple
    compiling: tuple
    disabled: bool
    placement: Placement


_last = None, None, None, None  # what the last context was made from, and the context


def call_context():
    """Return the `CallContext` of a call: the same object, as long as nothing changes.

    Whether anything has changed is seen from three objects that are replaced then.
    """
    global _last
    (values, overrides), trace, last = config.state, current_trace(), _last
    if last[0] is values and last[1] is overrides and last[2] is trace:
        return last[3]
    parts = trace_context(), compile_context(), config.jax_disable_jit
    context = CallContext(*parts, default_placement())
    if isinstance(trace, EvalTrace):  # the others end soon, and nothing may hold them
        _last = values, overrides, trace, context
    return context


class PreparedCall:
    """A program, and all that a call of it needs.

    Attributes:
      program: a `Program`.
      params: the parameters of its call.
      given: for each operand whether a result takes its memory.
      empty: whether a result is of dtype float0; NumPy's arrays stand for such.
      placement: where the program runs; None until it is evaluated.
      places: the `Placement` of each operand then, None for what has none.
      moves: whether an operand is on another device.
    """

    def __init__(self, program, params, given):
        self.program, self.params, self.given = program, params, given
        self.gives, self.executable = any(given), None
        self.placement, self.places, self.moves = None, (), False
        self.empty = any(aval.dtype == float0 for aval in program.closed.out_avals)
        alone = program.out_tree.kind is None and not self.empty
        self._build = itemgetter(0) if alone else self._unflatten

    def _unflatten(self, outs):
        return self.program.out_tree.unflatten(map(numpy_if_empty, outs))

    def run(self, leaves):
        """Return the result, a tree, for the leaves of the arguments."""
        operands = self.program.captured + leaves
        if not isinstance(current_trace(), EvalTrace):
            return self._build(jit_p.bind(*operands, **self.params))
        if self.placement is None:
            self.settle(operands)
        if self.moves:
            operands = brought(operands, self.placement.device)
        if self.gives:
            check_given_once(self.given, operands)
        if watchers:
            outs = jit_p.bind(*operands, **self.params)
            outs = give_up(self.given, operands, outs) if self.gives else outs
        else:
            outs = self._evaluate(operands)
        return self._build(outs)

    def settle(self, operands, names=None):
        """Find out where the program runs.

        Args:
          operands: arrays and numbers.
          names: what messages call the arguments.

        Raises:
          ValueError: if operands that matter are committed to different devices.
        """
        labels = names and ["a value from outside"] * len(self.program.captured) + names
        self.places = tuple(map(spot_of, operands))
        self.placement = where_to_run(self.params, self.places, labels)
        devices = {place.joint.device for place in self.places if place}
        self.moves = not devices <= {self.placement.device}

    def _evaluate(self, operands):
        """Do what binding the call would do in the end."""
        refuse_dead_tracers(jit_p, operands)
        warm = self.executable is not None
        if self.executable is None:
            params = self.params
            choices = params.get("backend"), params["name"], self.given, self.placement
            closed = program_placed.value(params["jaxpr"], params)
            self.executable = compiled(closed, *choices)
        try:
            if not self.gives:
                return self.executable(*operands)
            return self.executable(*taken(self.given, operands))
        except MemoryError as error:
            raise_if_out_of_memory(self.program.name, error)
            raise
        except RuntimeError as error:
            raise_if_donated(error, warm)
            raise


LEAVES = frozenset(
    [ArrayImpl, DeletedArray, DonatedArray, np.ndarray, bool, int, float, complex]
)


def take_apart(args, kwargs):
    """Return the leaves of arguments, and what stands for their structure in a key."""
    names = tuple(sorted(kwargs)) if kwargs else ()
    leaves: list = []
    trees: list = []
    for arg in [*args, *map(kwargs.get, names)]:
        if type(arg) in LEAVES:
            leaves.append(arg)
            trees.append(None)
        else:
            found, tree = tree_flatten(arg)
            leaves += found
            trees.append(tree)
    return leaves, (names, tuple(trees))


def places_of(leaves, default):
    """Return the placement of each array, or None if it is `default` for all."""
    for leaf in leaves:
        if type(leaf) is ArrayImpl and leaf.placement is not default:
            return tuple(map(spot_of, leaves))
    return None


class Inspectable:
    """What can be asked of a jitted function besides its result."""

    @guarded
    def trace(self, /, *args, **kwargs):
        """Write the function down for these arguments, and return a `Traced`.

        Leaves of the arguments may be `ShapeDtypeStruct`.
        """
        call, statics = self._flat_call(args, kwargs, abstractify)
        program = program_of(call, statics)
        if program.captured:
            raise UnexpectedTracerError(
                f"{program.name} uses values of a transformation around it, "
                f"{program.captured}; it has no program of its own."
            )
        return Traced(
            fun_name=program.name,
            names=call.names(),
            in_tree=call.in_tree,
            out_tree=program.out_tree,
            program=program.closed,
            donated=self._options.donated(call),
            keep_unused=self._options.params.get("keep_unused", False),
            backend=self._options.params.get("backend"),
            device=self._options.params.get("device"),
            places=tuple(map(place_of_leaf, call.leaves)),
            shardings=tuple(shardings_of_call(self._options, call, program).items()),
        )

    @guarded
    def lower(self, /, *args, **kwargs):
        """Write the function down for these arguments, and return a `Lowered`."""
        return self.trace(*args, **kwargs).lower()

    @guarded
    def eval_shape(self, /, *args, **kwargs):
        """Return the shapes and dtypes of the result, a tree of `ShapeDtypeStruct`."""
        return self.trace(*args, **kwargs).out_info

    def clear_cache(self):
        """Forget the programs of this function."""
        self._lane.clear()
        programs_of(self._kept_by).clear()

    def _cache_size(self):
        return len(self._lane.values)

    def __repr__(self):
        try:
            return f"<JitFunction of {self._fun!r}>"
        except Exception:  # of a callable object's own text
            return "<JitFunction>"

    def __reduce__(self):
        return type(self), (self._fun, self._options)


_lanes = cache_by_object()


def _may_be_kept(fun):
    try:
        weakref.ref(fun)
        hash(fun)
    except TypeError:
        return False
    return True


class JitFunction(Inspectable):
    """A function that is written down once for each kind of arguments.

    Args:
      fun: the function.
      options: its `Options`.
    """

    def __init__(self, fun, options):
        update_wrapper(self, fun)
        self._fun, self._options = fun, options
        self._kept_by = fun if _may_be_kept(fun) else partial(fun)
        self._lane = once_of(_lanes, self)

    def __call__(self, /, *args, **kwargs):
        try:
            context = call_context()
            if context.disabled:
                return self._fun(*args, **kwargs)
            varying, statics = self._options.sort(args, kwargs)
            leaves, structure = take_apart(*varying)
            avals = self._avals(leaves, args, kwargs)
            places = places_of(leaves, context.placement)
            key = structure, avals, statics, context, places
            prepared = self._lane.values.get(key)
            if prepared is None:
                prepared = self._prepare(key, args, kwargs)
            return self._run(prepared, leaves, args, kwargs)
        except Exception as error:
            present(error)
            raise

    def _run(self, prepared, leaves, args, kwargs):
        return prepared.run(leaves)

    def __get__(self, instance, owner=None):
        return self if instance is None else MethodType(self, instance)

    def _avals(self, leaves, args, kwargs):
        try:
            return tuple([
                leaf.aval if type(leaf) is ArrayImpl else typeof(leaf)
                for leaf in leaves
            ])  # fmt: skip
        except (TypeError, ValueError):
            self._options.flat_call(self._kept_by, args, kwargs)  # raises with a name
            raise

    def _flat_call(self, args, kwargs, typeof=typeof):
        call = self._options.flat_call(self._kept_by, args, kwargs, typeof)
        _, statics = self._options.sort(args, kwargs)
        return call, statics

    def _prepare(self, key, args, kwargs):
        call, statics = self._flat_call(args, kwargs)
        program = program_of(call, statics)
        donated = (False,) * len(program.captured) + self._options.donated(call)
        params = {"jaxpr": program.closed, "name": program.name}
        params |= self._options.params | shardings_of_call(self._options, call, program)
        given = donated
        if any(donated):
            params["donated_invars"] = donated
            given = memory_given(program.closed, donated, "keep_unused" in params)
            if isinstance(current_trace(), EvalTrace):
                warn_of_useless(program.closed, donated, given)
        prepared = PreparedCall(program, params, given)
        if isinstance(current_trace(), EvalTrace):
            prepared.settle(program.captured + call.leaves, call.names())
        if not program.captured:
            self._lane.put(key, prepared)
        return prepared


eval_shape_rules[JitFunction] = JitFunction.eval_shape  # it knows of shardings

# The class of jitted functions that `jit` makes.
jit_kind = Latest(JitFunction)
