"""The stages of a function: traced, lowered, compiled; cost analysis.

References: ``jax.stages.Compiled.cost_analysis``, ``memory_analysis``; the
conventions are those of XLA's ``HloCostAnalysis``, ``jax.stages``.
"""

# Made from chapters/12_jit_rest.md by `make chapter`;
# edit the chapter, not this file.
# Amended in chapters/36_replicas_rest.md: Pruned._executable (3cd9cfca).

import math
from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol, TypeVar

import numpy as np

from minijax import lax
from minijax.arrays.array import ArrayImpl, ShapedArray, typeof
from minijax.arrays.devices import Device, Placement
from minijax.arrays.dtypes import float0
from minijax.arrays.interchange import placement_or_none
from minijax.arrays.transfer import transfer_operands
from minijax.core import RuleTable, Tracer
from minijax.errors import JaxRuntimeError
from minijax.jaxprs.pretty_printer import jaxprs_in_params
from minijax.jaxprs.types import Hook
from minijax.jitting.arguments import (
    aliasable_inputs,
    check_donated_once,
    execution_placement,
    take_donated_buffers,
)
from minijax.jitting.compilation import (
    backend_name,
    backends,
    compile_cached,
    structs_of,
    text_formats,
)
from minijax.jitting.primitive import program_sharding_hook
from minijax.pytrees.registry import structure_differences
from minijax.pytrees.tree_util import PyTreeDef, tree_flatten
from minijax.rematerialization.caching import weakref_memoize
from minijax.rematerialization.jaxpr_transforms import (
    dce_all_outputs,
    prune_inputs,
    select_where,
)
from minijax.typing import P

# Cost analysis: the operations and bytes of a program, counted in its text.

FLOPS, TRANSCENDENTALS, BYTES_ACCESSED = "flops", "transcendentals", "bytes accessed"

# Elementwise functions that a processor computes by a series.
_transcendental = {
    lax.exp_p, lax.exp2_p, lax.expm1_p, lax.log_p, lax.log1p_p, lax.sin_p, lax.cos_p,
    lax.tan_p, lax.asin_p, lax.acos_p, lax.atan_p, lax.atan2_p, lax.sinh_p, lax.cosh_p,
    lax.tanh_p, lax.asinh_p, lax.acosh_p, lax.atanh_p, lax.sqrt_p, lax.rsqrt_p,
    lax.cbrt_p, lax.logistic_p, lax.erf_p, lax.erfc_p, lax.erf_inv_p, lax.lgamma_p,
    lax.digamma_p, lax.pow_p,
}  # fmt: skip

# Operations that move numbers and compute none.
_moves = {
    lax.broadcast_in_dim_p, lax.reshape_p, lax.transpose_p, lax.squeeze_p, lax.rev_p,
    lax.copy_p, lax.iota_p, lax.pad_p, lax.concatenate_p, lax.real_p,
    lax.imag_p, lax.complex_p,
}  # fmt: skip


def nbytes(aval):
    """Return the size of the arrays of an abstract value in bytes."""
    return aval.size * aval.dtype.itemsize


def _moved(eqn):
    atoms = [*eqn.invars, *eqn.outvars]
    return {BYTES_ACCESSED: sum(nbytes(atom.aval) for atom in atoms)}


def _results(eqn):
    return sum(var.aval.size for var in eqn.outvars)


def _ordinary(eqn):
    """What the programs in it cost, or else one operation for each result."""
    inner = jaxprs_in_params(eqn.params)
    if inner:
        return sum(map(cost_analysis, inner), Counter())
    return {FLOPS: _results(eqn)} | _moved(eqn)


# Rules ``rule(eqn)`` return the costs of an equation, a dictionary.
cost_rules = RuleTable("cost", default=_ordinary)
cost_rules.update(dict.fromkeys(_moves, _moved))

cost_rules.update(
    dict.fromkeys(
        _transcendental, lambda eqn: {TRANSCENDENTALS: _results(eqn)} | _moved(eqn)
    )
)


def _contraction(eqn):
    lhs = eqn.invars[0].aval
    (contracted, _), _ = eqn.params["dimension_numbers"]
    width = math.prod(lhs.shape[axis] for axis in contracted)
    return {FLOPS: 2 * width * _results(eqn)} | _moved(eqn)


def _reduction(eqn):
    return {FLOPS: eqn.invars[0].aval.size - _results(eqn)} | _moved(eqn)


def _sliced(eqn):
    return {BYTES_ACCESSED: 2 * nbytes(eqn.outvars[0].aval)}


def _power(eqn):
    steps = abs(eqn.params["y"])
    return {FLOPS: _results(eqn) * max(steps - 1, 1)} | _moved(eqn)


cost_rules[lax.dot_general_p] = _contraction
cost_rules[lax.slice_p] = _sliced
cost_rules[lax.integer_pow_p] = _power

cost_rules.update(
    (getattr(lax, f"reduce_{name}_p"), _reduction)
    for name in "sum prod max min and or xor".split()
)


def eqn_cost(eqn):
    """Return the costs of an equation, a dictionary."""
    return cost_rules[eqn.primitive](eqn)


def cost_analysis(jaxpr):
    """Return what a jaxpr costs, a `Counter`.

    Its keys are ``"flops"`` (arithmetic operations), ``"transcendentals"`` (elementary
    functions) and ``"bytes accessed"`` (operands read and results written, by each
    equation on its own).
    """
    total = Counter()
    for eqn in jaxpr.eqns:
        total.update(eqn_cost(eqn))
    return total


def peak_of_temporaries(jaxpr):
    """Return how many bytes of intermediate results are alive at once, at most.

    Arguments, constants and results of the program are not counted.
    """
    last = {atom: n for n, eqn in enumerate(jaxpr.eqns) for atom in eqn.invars}
    alive, peak, dying = 0, 0, Counter()
    for number, eqn in enumerate(jaxpr.eqns):
        for var in eqn.outvars:
            if var not in jaxpr.outvars:
                alive += nbytes(var.aval)
                dying[last.get(var, number)] += nbytes(var.aval)
        inner = map(peak_of_temporaries, jaxprs_in_params(eqn.params))
        peak = max(peak, alive + max(inner, default=0))
        alive -= dying[number]
    return peak


@dataclass(frozen=True)
class CompiledMemoryStats:
    """How many bytes a program needs, and what for.

    Reference: ``jax.stages.Compiled.memory_analysis``.
    """

    generated_code_size_in_bytes: int
    argument_size_in_bytes: int
    output_size_in_bytes: int
    alias_size_in_bytes: int
    temp_size_in_bytes: int
    host_generated_code_size_in_bytes: int = 0  # there is no second memory of a host
    host_argument_size_in_bytes: int = 0
    host_output_size_in_bytes: int = 0
    host_alias_size_in_bytes: int = 0
    host_temp_size_in_bytes: int = 0

    @property
    def peak_memory_in_bytes(self):
        """All of it, what arguments share with results counted once."""
        return (
            self.argument_size_in_bytes
            + self.output_size_in_bytes
            - self.alias_size_in_bytes
            + self.temp_size_in_bytes
        )


def memory_analysis(jaxpr, aliased, text):
    """Return the `CompiledMemoryStats` of a program.

    Args:
      jaxpr: a `Jaxpr`.
      aliased: for each input whether a result has its memory.
      text: the code that was generated.
    """
    sizes = list(map(nbytes, jaxpr.in_avals))
    return CompiledMemoryStats(
        generated_code_size_in_bytes=len(text.encode()),
        argument_size_in_bytes=sum(sizes),
        output_size_in_bytes=sum(map(nbytes, jaxpr.out_avals)),
        alias_size_in_bytes=sum(n for n, shared in zip(sizes, aliased) if shared),
        temp_size_in_bytes=peak_of_temporaries(jaxpr),
    )


# The stages between a function and its result: traced, lowered, compiled.


@dataclass(frozen=True)
class ArgInfo:
    """What a stage knows of an argument.

    Reference: ``jax.stages.ArgInfo``.
    """

    _aval: ShapedArray
    donated: bool

    shape = property(lambda self: self._aval.shape)
    dtype = property(lambda self: self._aval.dtype)


def float0_to_numpy(x):
    """Return a result as it is handed back: NumPy's array for one of dtype float0."""
    empty = isinstance(x, ArrayImpl) and x.dtype == float0
    return np.zeros(x.shape, float0) if empty else x


@dataclass(frozen=True, eq=False)
class StageInfo:
    """What all stages of one function know.

    Attributes:
      fun_name: the name of the function.
      names: what the user calls each leaf of the arguments, a list.
      in_tree, out_tree: the structures of ``(args, kwargs)`` and of the result.
      program: the `ClosedJaxpr` of the function.
      donated: for each leaf of the arguments whether it is donated.
      keep_unused: whether arguments that are not needed stay inputs.
      backend: the name of a backend, or None for the default.
      device: where the program runs, whatever the arguments say, or None.
      places: for each leaf of the arguments its placement, or None.
      shardings: the parameters ``in_shardings`` and ``out_shardings``, if given.
      placement: where the program runs, once it is lowered.
    """

    fun_name: str
    names: list
    in_tree: PyTreeDef
    out_tree: PyTreeDef
    program: object
    donated: tuple
    keep_unused: bool
    backend: str | None
    device: Device | None = None
    places: tuple = ()
    shardings: tuple = ()
    placement: Placement | None = None

    @property
    def in_avals(self):
        """The abstract values of the arguments, a tree like them."""
        return self.in_tree.unflatten(self.program.in_avals)

    @property
    def args_info(self):
        """An `ArgInfo` for each argument, in a tree like the arguments."""
        return self.in_tree.unflatten(map(ArgInfo, self.program.in_avals, self.donated))

    @property
    def out_info(self):
        """Shapes and dtypes of the result, a tree like it."""
        structs = structs_of(self.program.out_avals, self.shardings)
        return self.out_tree.unflatten(structs)

    @property
    def donate_argnums(self):
        """The numbers of the leaves that are donated."""
        return tuple(i for i, donated in enumerate(self.donated) if donated)

    def _next(self, kind, **changes):
        parts = {name: getattr(self, name) for name in StageInfo.__annotations__}
        return kind(**parts | changes)


class Traced(StageInfo):
    """A function that was written down for arguments of certain types.

    Reference: ``jax.stages.Traced``.
    """

    @property
    def jaxpr(self):
        """The program, a `ClosedJaxpr`."""
        return self.program

    @property
    def out_avals(self):
        """The abstract values of the result, a tree like it."""
        return self.out_tree.unflatten(self.program.out_avals)

    def lower(self, *, lowering_platforms=None):
        """Return the next stage, a `Lowered`.

        Args:
          lowering_platforms: names of platforms, or None; a program is the same for
            each, until it is compiled where its arguments are.

        Raises:
          ValueError: if arguments are committed to different devices.
        """
        params = {"jaxpr": self.program, "name": self.fun_name, "device": self.device}
        params |= {"keep_unused": self.keep_unused, **dict(self.shardings)}
        places = self.places or [None] * len(self.names)
        placement = execution_placement(params, places, self.names)
        return self._next(Lowered, placement=placement)


def dialects_of(backend):
    """Return the texts that only one backend can show, functions of executables."""
    return getattr(backends[backend], "dialects", {})


# How hard XLA tries, options that do not begin with xla_.
COMPILER_EFFORTS = {
    "exec_time_optimization_effort",
    "memory_fitting_effort",
    "memory_fitting_level",
    "optimization_level",
}


def check_compiler_options(options):
    """Raise a JaxRuntimeError for an option that XLA cannot have.

    Options of XLA change nothing here, so a program that sets them runs as it is.
    """
    for name in options or ():
        if not name.startswith("xla_") and name not in COMPILER_EFFORTS:
            raise JaxRuntimeError(
                f"compiler_options: No such compile option: {name!r}. Those of XLA, "
                "xla_..., are accepted, and change nothing."
            )


compiled_class = Hook(None)  # A class that takes the place of `Compiled`.


@weakref_memoize
def prune_unused_inputs(program, keep_unused):
    """Return a program without waste, and which inputs it has left; made once."""
    needed_part, needed = dce_all_outputs(program)
    kept = tuple(need or keep_unused for need in needed)
    return prune_inputs(needed_part, kept), kept


class Pruned(StageInfo):
    """A stage whose program has nothing in it that no result needs."""

    @cached_property
    def _pruned(self):
        return prune_unused_inputs(self.program, self.keep_unused)

    @cached_property
    def _given(self):
        """For each leaf of the arguments whether a result takes its memory."""
        return aliasable_inputs(self.program, self.donated, self.keep_unused)

    @cached_property
    def _shared(self):
        """The same for each input of the program without waste."""
        return tuple(select_where(self._pruned[1], self._given))

    @property
    def _backend(self):
        platform = self.placement and self.placement.device.platform
        return backend_name(self.backend, platform)

    def _executable(self, backend=None):
        backend = backend or self.backend
        choices = backend, self.fun_name, self._shared, self.placement
        [closed, used, *_], named = self._pruned, dict(self.shardings)
        if "in_shardings" in named:
            named["in_shardings"] = tuple(select_where(used, named["in_shardings"]))
        return compile_cached(program_sharding_hook.value(closed, named), *choices)

    def _text(self, dialect, debug_info=False):
        program, _ = self._pruned
        if dialect == "jaxpr":
            return program.pretty_print(source_info=debug_info)
        backend = self._backend
        own = dialects_of(backend)
        if dialect in own:
            return own[dialect](self._executable())
        if dialect in text_formats:
            return text_formats[dialect](program, self.fun_name, self._shared)
        if dialect in backends:
            return self._executable(dialect).text
        others = [name for name in backends if dialect in dialects_of(name)]
        also = f" With backend={others[-1]!r} it exists." if others else ""
        known = ", ".join(dict.fromkeys(["jaxpr", *own, *text_formats, *backends]))
        raise ValueError(
            f"unknown dialect: {dialect}. For {self.fun_name} on the backend "
            f"{backend!r} there are: {known}.{also}"
        )

    @property
    def out_info(self):
        """Shapes and dtypes of the result, a tree like it; weak types are gone."""
        avals = [aval.update(weak_type=False) for aval in self.program.out_avals]
        return self.out_tree.unflatten(structs_of(avals, self.shardings))

    def cost_analysis(self):
        """Return how many operations and bytes the program takes, a dictionary."""
        counts = cost_analysis(self._pruned[0].jaxpr)
        return {name: float(counts[name]) for name in counts}


_Result = TypeVar("_Result", covariant=True)


class Wrapped(Protocol[P, _Result]):
    """What `jit` returns, for a type checker: a function that can be inspected.

    Reference: ``jax.stages.Wrapped``.
    """

    def __call__(self, /, *args: P.args, **kwargs: P.kwargs) -> _Result:
        """Run the function as a program."""

    def trace(self, /, *args: Any, **kwargs: Any) -> Traced:
        """Write the function down."""

    def lower(self, /, *args: Any, **kwargs: Any) -> "Lowered":
        """Write the function down, for a compiler."""

    def eval_shape(self, /, *args: Any, **kwargs: Any) -> Any:
        """Return shapes and dtypes of the result."""

    def clear_cache(self) -> None:
        """Forget the programs."""


class _ProgramText(str):
    """A program in a dialect, which is its text, ``str(program)``."""

    def as_hlo_text(self):
        """Return the text; for ``"hlo"`` it is StableHLO, as its first line says."""
        return str(self)


class Lowered(Pruned):
    """A program that is ready for a compiler.

    Reference: ``jax.stages.Lowered``.
    """

    def as_text(self, dialect=None, *, debug_info=False):
        """Return the program as text.

        Args:
          dialect: ``"jaxpr"`` by default; one of those of the backend or of
            `text_formats`; or the name of a backend, for the code that it makes.
          debug_info: whether a jaxpr notes the source of each equation.

        Raises:
          ValueError: if there is no such dialect.
        """
        return self._text("jaxpr" if dialect is None else dialect, debug_info)

    def compiler_ir(self, dialect=None):
        """Return what a compiler is given.

        Args:
          dialect: by default, and for ``"jaxpr"``, a `ClosedJaxpr`; for others that
            `as_text` knows the text, with `as_hlo_text()`.

        Raises:
          ValueError: if there is no such dialect.
        """
        if dialect in (None, "jaxpr"):
            return self._pruned[0]
        return _ProgramText(self._text(dialect, False))

    def compile(self, compiler_options=None):
        """Return the last stage, a `Compiled`.

        Args:
          compiler_options: as those of `jit`.

        Raises:
          JaxRuntimeError: for an option that is not of XLA.
        """
        check_compiler_options(compiler_options)
        return self._next(compiled_class.value or Compiled)


class Compiled(Pruned):
    """A program that can be run, on arguments of the types it was made for.

    Reference: ``jax.stages.Compiled``.
    """

    def runtime_executable(self):
        """Return what the backend has made of the program."""
        return self._executable()

    def as_text(self, dialect=None):
        """Return the code that the backend has made, or another text of the program.

        Args:
          dialect: as for `Lowered.as_text`; None for the backend's code.
        """
        return self._executable().text if dialect is None else self._text(dialect)

    def profile(self, /, *args, **kwargs):
        """Run the program, step by step; return what shows how long each step took.

        The arguments are those of a call; nothing is donated.

        Raises:
          ValueError: if the backend does not tell.
        """
        executable = self._executable()
        if not hasattr(executable, "profile"):
            able = [name for name in backends if hasattr(backends[name], "profile")]
            says = f"The backend {self._backend!r} cannot profile {self.fun_name};"
            raise ValueError(f"{says} these can: {', '.join(able) or 'none'}.")
        leaves = self._leaves(args, kwargs)
        return executable.profile(*select_where(self._pruned[1], leaves))

    def memory_analysis(self):
        """Return the `CompiledMemoryStats` of the program."""
        executable = self._executable()
        if hasattr(executable, "memory_analysis"):
            return executable.memory_analysis()
        return memory_analysis(self._pruned[0].jaxpr, self._shared, executable.text)

    def cost_analysis(self):
        """Return how many operations and bytes the program takes, a dictionary."""
        executable = self._executable()
        if hasattr(executable, "cost_analysis"):
            return executable.cost_analysis()
        return super().cost_analysis()

    def __call__(self, /, *args, **kwargs):
        """Run the program.

        Args:
          *args, **kwargs: those arguments that are not static.

        Raises:
          TypeError: if their structure, shapes or dtypes are not those of the program,
            or if there is a tracer among them.
          ValueError: if one is committed to another device than that of the program.
        """
        leaves, given = self._leaves(args, kwargs), self._given
        check_donated_once(given, leaves)
        executable = self._executable()
        outs = executable(
            *select_where(self._pruned[1], take_donated_buffers(given, leaves))
        )
        return self.out_tree.unflatten(map(float0_to_numpy, outs))

    call = property(lambda self: self)

    def _leaves(self, args, kwargs):
        leaves, tree = tree_flatten((args, kwargs))
        if tree != self.in_tree:
            self._refuse_tree((args, kwargs))
        for name, expected, leaf in zip(self.names, self.program.in_avals, leaves):
            self._check(name, expected, leaf)
        self._check_places(list(map(placement_or_none, leaves)))
        return transfer_operands(leaves, self.placement.device)

    def _check_places(self, places):
        """Raise if an argument that matters is committed to another device."""
        here = self.placement
        wrong = [
            i for i, (place, used) in enumerate(zip(places, self._pruned[1]))
            if used and place and place.committed and place.devices != here.devices
        ]  # fmt: skip
        if wrong:
            avals = [aval.update(weak_type=False) for aval in self.program.in_avals]
            lines = [
                f"\nArgument {self.names[i]} with shape {avals[i]}:"
                f"\n  Passed sharding: {places[i].sharding}"
                f"\n  Required sharding: {here.sharding}"
                for i in wrong
            ]
            raise ValueError(
                "Computation was compiled for input shardings that disagree with the "
                "shardings of arguments passed to it. Here are the "
                f"{len(wrong)} mismatches:{''.join(lines)}"
            )

    @property
    def input_shardings(self):
        """The shardings of the arguments, a pair of a tuple and a dictionary."""
        leaves = [self.placement.sharding] * len(self.names)
        return self.in_tree.unflatten(leaves)

    @property
    def output_shardings(self):
        """The shardings of the results, a tree like them."""
        leaves = [self.placement.sharding] * len(self.program.out_avals)
        return self.out_tree.unflatten(leaves)

    def _refuse_tree(self, given):
        lines = structure_differences(
            self.in_tree, given, exact=True, name="(args, kwargs)"
        )
        raise TypeError(
            "Function compiled with input pytree does not match the input pytree it "
            f"was called with: {self.fun_name} was compiled for arguments of the "
            f"structure {self.in_tree}.\n  " + "\n  ".join(lines)
        )

    def _check(self, name, expected, leaf):
        if isinstance(leaf, Tracer):
            raise TypeError(
                "Cannot apply JAX transformations to a function lowered and compiled "
                f"for a particular signature. Detected argument {name} of "
                f"{self.fun_name}: {leaf!r}. Transform first, then compile."
            )
        given = typeof(leaf)
        if (given.shape, given.dtype) != (expected.shape, expected.dtype):
            raise TypeError(
                "Argument types differ from the types for which "
                f"{self.fun_name} was compiled. The mismatches are:\nArgument "
                f"'{name}' compiled with {expected.update(weak_type=False)} and called "
                f"with {given.update(weak_type=False)}"
            )


CompilerOptions = dict[str, str | bool]
