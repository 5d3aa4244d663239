"""jit: a function as a program; its cache, and why it is traced again.

References: ``jax.jit``, ``jax.disable_jit``, ``jax.clear_caches``,
``jax.explain_cache_misses``.
"""

# Made from chapters/12_jit_rest.md by `make chapter`;
# edit the chapter, not this file.
# Amended in chapters/28_indexing_rest.md: CacheEntry.__init__, CacheEntry.run,
#   JitFunction._prepare (b4c25551).
# Amended in chapters/28_indexing_rest.md: Inspectable.trace (77021850).
# Amended in chapters/28_indexing_rest.md: JitFunction.__call__, JitFunction._avals
#   (e25f521f).
# Amended in chapters/28_indexing_rest.md: Inspectable.trace (217e7098).
# Amended in chapters/28_indexing_rest.md: JitFunction.__call__ (1fb6a82a).
# Amended in chapters/36_replicas_rest.md: CacheEntry._evaluate (de25ff67).

import gc
import warnings
import weakref
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from functools import partial, update_wrapper
from itertools import zip_longest
from operator import itemgetter
from types import MethodType
from typing import Any, NamedTuple, TypedDict, Unpack, overload
from weakref import WeakKeyDictionary

import numpy as np

from minijax.arrays.array import ArrayImpl, typeof
from minijax.arrays.devices import (
    Device,
    Placement,
    default_placement,
    device_factories,
    devices,
    platforms,
)
from minijax.arrays.dtypes import config, float0
from minijax.arrays.interchange import placement_or_none
from minijax.arrays.transfer import transfer_operands
from minijax.core import (
    Array,
    EvalTrace,
    bind_listeners,
    check_leaked_tracers,
    current_trace,
)
from minijax.custom_derivatives.custom_jvp_vjp import custom_vjp_call_p
from minijax.custom_derivatives.flat_functions import holds
from minijax.diagnostics.tracebacks import api_boundary
from minijax.errors import (
    UnexpectedTracerError,
    format_for_user,
    raise_if_out_of_memory,
)
from minijax.jaxprs.jaxpr import JaxprTrace, abstractify, eval_shape_rules
from minijax.jaxprs.pretty_printer import jaxprs_in_params
from minijax.jaxprs.types import Hook
from minijax.jitting.arguments import (
    ArgSelection,
    DeletedArray,
    DonatedArray,
    aliasable_inputs,
    check_donated_once,
    donate_operands,
    execution_placement,
    parameters_or_none,
    positional_parameter_names,
    raise_if_donated,
    resolve_argnums_and_argnames,
    static_key_of,
    take_donated_buffers,
    warn_unusable_donations,
)
from minijax.jitting.compilation import (
    UNSPECIFIED,
    backends,
    cache_miss_hook,
    call_sharding_params,
    check_shardings,
    compile_cached,
    compile_context,
    sharding_of_leaf,
    trace_cache_of,
    trace_call,
)
from minijax.jitting.primitive import jit_p, program_sharding_hook
from minijax.jitting.stages import (
    Compiled,
    Lowered,
    Traced,
    Wrapped,
    check_compiler_options,
    float0_to_numpy,
)
from minijax.pytrees.api_util import (
    FlatCall,
    Loan,
    argument_names,
    holds_refs,
    returning_refs,
)
from minijax.pytrees.argument_checks import check_callable, read_refs, refs_in
from minijax.pytrees.registry import structure_differences
from minijax.pytrees.tree_util import tree_flatten
from minijax.rematerialization.caching import (
    all_caches,
    cache_for_object,
    trace_context,
    trace_context_switches,
    weakref_cache,
)
from minijax.typing import P, R

# Functions that are written down once, and run as programs from then on.


class JitOptions(NamedTuple):
    """How a function is jitted.

    Attributes:
      static, donate: the `ArgSelection` arguments that are static, and that are
        donated.
      labels: names of the positional parameters.
      params: parameters of `jit_p`.
      in_shardings, out_shardings: trees of shardings, from `check_shardings`.
    """

    static: ArgSelection = ArgSelection()
    donate: ArgSelection = ArgSelection()
    labels: tuple = ()
    params: dict = {}
    in_shardings: Any = UNSPECIFIED
    out_shardings: Any = UNSPECIFIED

    def sort(self, args, kwargs):
        """Return the varying arguments as a pair, and the static ones.

        The static ones are pairs of a name and a `StaticKey`.
        """
        if not (self.static.nums or self.static.names):
            return (args, kwargs), ()
        fixed = self.static.positions(len(args))
        varying = tuple([arg for i, arg in enumerate(args) if i not in fixed])
        named = {k: kwargs[k] for k in kwargs if k not in self.static.names}
        pairs = [(self.label(i), args[i]) for i in fixed]
        pairs += [(k, kwargs[k]) for k in sorted(kwargs) if k in self.static.names]
        return (varying, named), tuple([(k, static_key_of(k, x)) for k, x in pairs])

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


def _writing(program, build):
    """Return what builds a result, after it has written what a program changed."""
    refs, count = refs_in(program.captured), program.out_tree.num_leaves
    inputs = dict(zip(map(id, program.captured), program.closed.invars))
    pairs = zip(refs, program.closed.outvars[count:])
    changed = [inputs[id(ref)] is not final for ref, final in pairs]

    def write_and_build(outs):
        for ref, final, new in zip(refs, outs[count:], changed):
            if new:
                ref.write(final)
        return build(outs[:count])

    return write_and_build


class CacheEntry:
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
        self.donates, self.executable = any(given), None
        self.placement, self.places, self.moves = None, (), False
        self.empty = any(aval.dtype == float0 for aval in program.closed.out_avals)
        alone = program.out_tree.kind is None and not self.empty
        self._build = itemgetter(0) if alone else self._unflatten
        self.refs = refs_in(program.captured)
        if self.refs:
            self._build = _writing(program, self._build)

    def _unflatten(self, outs):
        return self.program.out_tree.unflatten(map(float0_to_numpy, outs))

    def run(self, leaves):
        """Return the result, a tree, for the leaves of the arguments."""
        captured = self.program.captured
        operands = (read_refs(captured) if self.refs else captured) + leaves
        if not isinstance(current_trace(), EvalTrace):
            return self._build(jit_p.bind(*operands, **self.params))
        if self.placement is None:
            self.resolve_placement(operands)
        if self.moves:
            operands = transfer_operands(operands, self.placement.device)
        if self.donates:
            check_donated_once(self.given, operands)
        if bind_listeners:
            outs = jit_p.bind(*operands, **self.params)
            outs = donate_operands(self.given, operands, outs) if self.donates else outs
        else:
            outs = self._evaluate(operands)
        return self._build(outs)

    def resolve_placement(self, operands, names=None):
        """Find out where the program runs.

        Args:
          operands: arrays and numbers.
          names: what messages call the arguments.

        Raises:
          ValueError: if operands that matter are committed to different devices.
        """
        labels = names and ["a value from outside"] * len(self.program.captured) + names
        self.places = tuple(map(placement_or_none, operands))
        self.placement = execution_placement(self.params, self.places, labels)
        devices = {place.mesh_placement.device for place in self.places if place}
        self.moves = not devices <= {self.placement.device}

    def _evaluate(self, operands):
        """Do what binding the call would do in the end."""
        check_leaked_tracers(jit_p, operands)
        warm = self.executable is not None
        if self.executable is None:
            params = self.params
            choices = params.get("backend"), params["name"], self.given, self.placement
            closed = program_sharding_hook.value(params["jaxpr"], params)
            self.executable = compile_cached(closed, *choices)
        try:
            if not self.donates:
                return self.executable(*operands)
            return self.executable(*take_donated_buffers(self.given, operands))
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


def placements_of_leaves(leaves, default):
    """Return the placement of each array, or None if it is `default` for all."""
    for leaf in leaves:
        if type(leaf) is ArrayImpl and leaf.placement is not default:
            return tuple(map(placement_or_none, leaves))
    return None


class LentTraced(Traced):
    """A function that was written down for references among its arguments."""

    def lower(self, *, lowering_platforms=None):
        """Return the next stage, a `Lowered`."""
        lowered = super().lower(lowering_platforms=lowering_platforms)
        return self._next(LentLowered, placement=lowered.placement)


class LentLowered(Lowered):
    """A program of the arrays that references hold; it returns new ones for them."""

    @property
    def out_info(self):
        """Shapes and dtypes of the result, without those of what references hold."""
        return super().out_info[0]

    def compile(self, compiler_options=None):
        """Return the last stage, a `Compiled`, which is called with references."""
        check_compiler_options(compiler_options)
        return self._next(LentCompiled)


class LentCompiled(Compiled):
    """A program that reads and writes references among its arguments."""

    @property
    def __name__(self):
        return self.fun_name

    @property
    def out_info(self):
        """Shapes and dtypes of the result, without those of what references hold."""
        return super().out_info[0]

    def __call__(self, /, *args, **kwargs):
        """Run the program, on references of the types it was made for."""
        loan = Loan(f"a call of {self.fun_name}", self, args, kwargs)
        return loan.call(super().__call__)


class Inspectable:
    """What can be asked of a jitted function besides its result."""

    @api_boundary
    def trace(self, /, *args, **kwargs):
        """Write the function down for these arguments, and return a `Traced`.

        Leaves of the arguments may be `ShapeDtypeStruct`.
        """
        if holds_refs((args, kwargs)):
            loan = Loan("jit", self._fun, args, kwargs)
            traced = _twin(self).trace(*loan.args, **loan.kwargs)
            return traced._next(LentTraced)
        call, statics = self._flat_call(args, kwargs, abstractify)
        program = trace_call(call, statics)
        if refs_in(program.captured):
            raise NotImplementedError(
                f"{program.name} uses references from outside, "
                f"{refs_in(program.captured)}; there is no program of it alone. Call "
                "it, or lower a function of what they hold that returns what they are "
                "to hold."
            )
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
            places=tuple(map(sharding_of_leaf, call.leaves)),
            shardings=tuple(call_sharding_params(self._options, call, program).items()),
        )

    @api_boundary
    def lower(self, /, *args, **kwargs):
        """Write the function down for these arguments, and return a `Lowered`."""
        return self.trace(*args, **kwargs).lower()

    @api_boundary
    def eval_shape(self, /, *args, **kwargs):
        """Return the shapes and dtypes of the result, a tree of `ShapeDtypeStruct`."""
        return self.trace(*args, **kwargs).out_info

    def clear_cache(self):
        """Forget the programs of this function."""
        self._lane.clear()
        trace_cache_of(self._kept_by).clear()

    def _cache_size(self):
        return len(self._lane.values)

    def __repr__(self):
        try:
            return f"<PjitFunction of {self._fun!r}>"
        except Exception:  # of a callable object's own text
            return "<PjitFunction>"

    def __reduce__(self):
        return type(self), (self._fun, self._options)


_lanes = weakref_cache()


def _may_be_kept(fun):
    try:
        weakref.ref(fun)
        hash(fun)
    except TypeError:
        return False
    return True


_twins: WeakKeyDictionary = WeakKeyDictionary()


def _runs_or_is_written():
    """Return whether a call runs or is written down, and is not transformed."""
    return isinstance(current_trace(), (EvalTrace, JaxprTrace))


def _call_with_refs(function, args, kwargs):
    """Call a jitted function some of whose arguments are references."""
    if not _runs_or_is_written():
        return function._fun(*args, **kwargs)
    return Loan("jit", function._fun, args, kwargs).call(_twin(function))


def _twin(function):
    """Return a jitted function that takes arrays for references, and returns them."""
    if function not in _twins:
        options = function._options
        if options.out_shardings is not UNSPECIFIED:
            results = options.out_shardings, UNSPECIFIED
            options = options._replace(out_shardings=results)
        _twins[function] = type(function)(returning_refs(function._fun), options)
    return _twins[function]


def _rules_hold_refs(jaxpr):
    """Return whether backward rules of a program may write to references."""
    return any(
        (eqn.primitive is custom_vjp_call_p and _holds(eqn.params["bwd"]))
        or any(map(_rules_hold_refs, jaxprs_in_params(eqn.params)))
        for eqn in jaxpr.eqns
    )


def _holds(rule):
    function = getattr(rule, "function", None)  # one that is mapped has none
    return function is not None and holds(function.in_tree)


def _needs_itself(prepared):
    """Return whether a call has to be one of the function, and not of its program."""
    inside = bool(prepared.refs) and not _runs_or_is_written()
    return inside and _rules_hold_refs(prepared.program.closed)


class JitFunction(Inspectable):
    """A function that is written down once for each kind of arguments.

    Args:
      fun: the function.
      options: its `JitOptions`.
    """

    def __init__(self, fun, options):
        update_wrapper(self, fun)
        self._fun, self._options = fun, options
        self._kept_by = fun if _may_be_kept(fun) else partial(fun)
        self._lane = cache_for_object(_lanes, self)

    def __call__(self, /, *args, **kwargs):
        try:
            context = call_context()
            if context.disabled:
                return self._fun(*args, **kwargs)
            varying, statics = self._options.sort(args, kwargs)
            leaves, structure = take_apart(*varying)
            avals = self._avals(leaves, args, kwargs)
            if avals is None:
                return _call_with_refs(self, args, kwargs)
            places = placements_of_leaves(leaves, context.placement)
            key = structure, avals, statics, context, places
            prepared = self._lane.values.get(key)
            if prepared is None:
                prepared = self._prepare(key, args, kwargs)
            if _needs_itself(prepared):
                return self._fun(*args, **kwargs)
            return self._run(prepared, leaves, args, kwargs)
        except Exception as error:
            format_for_user(error)
            raise

    def _run(self, prepared, leaves, args, kwargs):
        return prepared.run(leaves)

    def __get__(self, instance, owner=None):
        return self if instance is None else MethodType(self, instance)

    def _avals(self, leaves, args, kwargs):
        """Return the types of leaves; None if there are references among them."""
        try:
            return tuple([
                leaf.aval if type(leaf) is ArrayImpl else typeof(leaf)
                for leaf in leaves
            ])  # fmt: skip
        except (TypeError, ValueError):
            if refs_in(leaves):
                return None
            self._options.flat_call(self._kept_by, args, kwargs)  # raises with a name
            raise

    def _flat_call(self, args, kwargs, typeof=typeof):
        call = self._options.flat_call(self._kept_by, args, kwargs, typeof)
        _, statics = self._options.sort(args, kwargs)
        return call, statics

    def _prepare(self, key, args, kwargs):
        call, statics = self._flat_call(args, kwargs)
        program = trace_call(call, statics)
        donated = (False,) * len(program.captured) + self._options.donated(call)
        params = {"jaxpr": program.closed, "name": program.name}
        params |= self._options.params | call_sharding_params(
            self._options, call, program
        )
        given = donated
        if any(donated):
            params["donated_invars"] = donated
            given = aliasable_inputs(program.closed, donated, "keep_unused" in params)
            if isinstance(current_trace(), EvalTrace):
                warn_unusable_donations(program.closed, donated, given)
        prepared = CacheEntry(program, params, given)
        if isinstance(current_trace(), EvalTrace):
            operands = read_refs(program.captured) + call.leaves
            prepared.resolve_placement(operands, call.names())
        if not program.captured:
            self._lane.put(key, prepared)
        return prepared


# The class of jitted functions that `jit` makes.
jit_function_class = Hook(JitFunction)


eval_shape_rules[JitFunction] = JitFunction.eval_shape


# jit: a function as a program; and the switches of all jitted functions.

_DEPRECATED = (
    "backend and device argument on jit is deprecated. You can use "
    '`jax.device_put(..., jax.local_devices(backend="cpu")[0])` on the inputs to the '
    "jitted function to get the same behavior."
)
_no_function = object()


class _Choices(TypedDict, total=False):
    in_shardings: Any
    out_shardings: Any
    static_argnums: int | Sequence[int] | None
    static_argnames: str | Sequence[str] | None
    donate_argnums: int | Sequence[int] | None
    donate_argnames: str | Sequence[str] | None
    keep_unused: bool
    device: Device | None
    backend: str | None
    inline: bool
    compiler_options: dict[str, Any] | None


@overload
def jit(fun: Callable[P, R], /, **choices: Unpack[_Choices]) -> "Wrapped[P, R]": ...
@overload
def jit(
    **choices: Unpack[_Choices],
) -> Callable[[Callable[P, R]], "Wrapped[P, R]"]: ...
def jit(
    fun=_no_function,
    /,
    *,
    in_shardings=UNSPECIFIED,
    out_shardings=UNSPECIFIED,
    static_argnums=None,
    static_argnames=None,
    donate_argnums=None,
    donate_argnames=None,
    keep_unused=False,
    device=None,
    backend=None,
    inline=False,
    compiler_options=None,
):
    """Return a function that runs `fun` as a program.

    The first call with arguments of certain shapes, dtypes and structures writes the
    program down and compiles it; later calls with such arguments run what there is.
    `fun` has to be a function of its arguments alone: what it reads elsewhere is read
    when it is written down, and what it does besides is done then.

    Args:
      fun: a function of trees of arrays that returns a tree of arrays. Without it, a
        decorator is returned.
      in_shardings: where arguments are brought before the program runs: a sharding, or
        a tree of shardings and None that is a prefix of the tuple of positional
        arguments. With it, no argument can be given by name.
      out_shardings: where results are: the same, a prefix of the result.
      static_argnums, static_argnames: arguments that `fun` receives as they are, by
        position (an integer or several, negative ones from the end) and by name. They
        must have a hash, and each new value is a new program. If one of the two is
        given, the other follows from the signature.
      donate_argnums, donate_argnames: arguments that the caller gives up: if a result
        has the shape and dtype of such an array, the array is deleted.
      keep_unused: whether arguments that do not matter stay inputs of the program.
      device: a `Device` to which arguments are brought. Deprecated, as in JAX: use
        `device_put` on the arguments.
      backend: the name of what runs the program, such as ``"interpreter"``, or of a
        platform, such as ``"cpu"``.
      inline: whether a call vanishes in a program that it is written into.
      compiler_options: a dictionary of options of XLA, which change nothing here, or
        None.

    Returns:
      The function, with the methods ``trace``, ``lower``, ``eval_shape`` and
      ``clear_cache``.

    Raises:
      TypeError: if `fun` cannot be called, or argnums are no integers, or argnames no
        strings. Calls raise it for a leaf that is no array or scalar.
      ValueError: if there are no such arguments, or one is both static and donated, or
        if a function whose arguments have no known names is given donate_argnames.
        Calls raise it for a static argument without a hash.
      RuntimeError: from calls, if there is no such backend, and for a compiler option
        that is not of XLA.

    Reference: ``jax.jit``.
    """
    settings = {name: value for name, value in locals().items() if name != "fun"}
    check_compiler_options(compiler_options)
    if fun is _no_function:
        return partial(jit, **settings)
    check_callable(fun)
    parameters = parameters_or_none(fun)
    if parameters is None and donate_argnames is not None:
        raise ValueError(
            f"Getting the signature of function {fun} failed. Pass donate_argnums "
            "instead of donate_argnames."
        )
    static = resolve_argnums_and_argnames(
        "static", parameters, static_argnums, static_argnames
    )
    donate = resolve_argnums_and_argnames(
        "donate", parameters, donate_argnums, donate_argnames
    )
    _check_apart(static, donate)
    wanted = [
        check_shardings("in_shardings", in_shardings),
        check_shardings("out_shardings", out_shardings),
    ]
    device, backend = _place(device, backend, *wanted)
    given = {"keep_unused": keep_unused, "inline": inline, "backend": backend}
    given["device"] = device
    params = {name: value for name, value in given.items() if value}
    labels = tuple(positional_parameter_names(parameters or []))
    return jit_function_class.value(
        fun, JitOptions(static, donate, labels, params, *wanted)
    )


def _check_apart(static, donate):
    both = [*{*static.names} & {*donate.names}, *{*static.nums} & {*donate.nums}]
    if both:
        raise ValueError(
            f"An argument of a jitted function is static or donated, not both: {both}."
        )


def _place(device, backend, in_shardings, out_shardings):
    """Return a device and the name of a backend that runs programs, or None."""
    if device is not None:
        warnings.warn(_DEPRECATED, DeprecationWarning, stacklevel=3)
    named = {"in_shardings": in_shardings, "out_shardings": out_shardings}
    for option in [name for name in named if named[name] is not UNSPECIFIED]:
        if device is not None or backend in platforms:
            raise ValueError(
                f"If backend or device is specified on jit, then {option} should not "
                "be specified."
            )
    if device is not None and backend is not None:
        raise ValueError(
            "can't specify both a device and a backend for jit, got "
            f"{device=} and {backend=}"
        )
    if device is not None and not isinstance(device, Device):
        raise ValueError(f"jit takes a device of minijax.devices(), not {device!r}.")
    if backend in platforms or backend in device_factories:
        return devices(backend)[0], backend if backend in backends else None
    return device, backend


def disable_jit(disable: bool = True) -> AbstractContextManager[None]:
    """Return a context manager inside which functions run as Python, not as programs.

    Reference: ``jax.disable_jit``.
    """
    return config.override("jax_disable_jit", disable)


def explain_cache_misses(new_val: bool = True) -> AbstractContextManager[None]:
    """Return a context manager inside which each tracing logs its reason, a sentence.

    The logger is ``minijax.jitting.compilation``, the level WARNING.

    Reference: ``jax.explain_cache_misses``.
    """
    return config.override("jax_explain_cache_misses", new_val)


def live_arrays(platform: str | None = None) -> list[Array]:
    """Return the arrays of a platform that something still refers to.

    Python's garbage collector is asked for all its objects, so it takes milliseconds.
    Arrays whose memory was given up do not count.

    Args:
      platform: name of the platform, by default that of the default device.

    Reference: ``jax.live_arrays``.
    """
    here = {*devices(platform)}
    found = [x for x in gc.get_objects() if isinstance(x, ArrayImpl)]
    return [x for x in found if not x.is_deleted() and {*x.devices()} & here]


def clear_caches() -> None:
    """Forget all programs and all executables.

    Reference: ``jax.clear_caches``.
    """
    for cache in all_caches:
        for reference in cache.keyrefs():
            key = reference()
            if key is not None and (once := cache.get(key)):
                once.clear()


# Why a function is traced again, in one sentence.

_LOGGER = "minijax.jitting.compilation"
_traced = WeakKeyDictionary()  # from code to the names of functions that it made


def log_reason(call, key, once):
    """Log why the function of a call has to be traced, if the user wants to know.

    Raises:
      RuntimeError: if the switch ``jax_no_tracing`` is on.
    """
    if config.jax_no_tracing:
        raise RuntimeError(
            f"re-tracing function {call.fun_name} for `jit`, but 'no_tracing' is set"
        )
    if config.jax_explain_cache_misses:
        _log(reason_of(call, key, once))
    if config.jax_log_compiles:
        types = ", ".join(map(str, call.avals))
        _log(f"Compiling {call.fun_name} with global shapes and types [{types}].")


def _log(text):
    import logging  # not earlier: a fork takes logging's lock before ours

    logging.getLogger(_LOGGER).warning(text)


cache_miss_hook.value = log_reason


def reason_of(call, key, once):
    """Return, in one sentence, why the function of a call has to be traced.

    Args:
      call: a `FlatCall`.
      key: the `TraceKey` of the program that is wanted.
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
        *_switch_changes(trace_context_switches, key.switches, old.switches),
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
    weak = kinds["weak type"]
    return (
        f"of different input types: the {what} differs at {name}, now "
        f"{_aval(now, weak)} and before {_aval(before, weak)}{_ON_WEAK_TYPES * weak}"
    )


_ON_WEAK_TYPES = (
    "; https://docs.jax.dev/en/latest/type_promotion.html#weak-types says where weak "
    "types come from"
)


def _aval(aval, weak):
    return aval.str_short() + f"{{weak_type={aval.weak_type}}}" * weak


def _pairs(what, names, now, before):
    triples = zip(names, before, now)
    return [_changed(f"{what}{name}", a, b) for name, a, b in triples if a != b]


def _switch_changes(names, now, before):
    triples = zip(names, now, before)
    found = [f"{n}, now {a} and before {b}" for n, a, b in triples if a != b]
    return [f"the tracing context changed: {'; '.join(found)}"] if found else []


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
        for line in structure_differences(tree, value, exact=True, name=name):
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
            "this function object is new: there was another function defined on the "
            "same line, and each object has programs of its own"
        )
    return "it is called for the first time"
