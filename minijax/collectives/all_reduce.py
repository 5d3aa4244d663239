"""All-reduce and the other exchanges, as steps in which replicas meet.

The five of them: fold (an allreduce), scatter, all, parts, one.

Reference: gradient bucketing of PyTorch's ``DistributedDataParallel``, and the ``all-
reduce-combiner`` of XLA.
"""

# Made from chapters/36_replicas_rest.md by `make chapter`;
# edit the chapter, not this file.

import os
from contextlib import suppress
from functools import partial, reduce
from typing import NamedTuple

import numpy as np

from minijax.arrays.dtypes import _on_or_off, config
from minijax.batching.collectives import (
    all_gather_p,
    all_to_all_p,
    axis_index_p,
    pmax_p,
    pmin_p,
    ppermute_p,
    psum_p,
    reduce_scatter_p,
)
from minijax.collectives.native_collectives import (
    NONTEMPORAL_COPY,
    bucketed_all_reduce,
    label_word,
    launch_team,
    native_all_gather,
    native_all_reduce,
    native_all_to_all,
    native_collective_permute,
    native_reduce_scatter,
    notify_workers,
    run_serially,
    team_worker_loop,
)
from minijax.cpu_backend.backend import intern_kernel
from minijax.dispatch.word_language import LowLevelLibrary, llvm_text
from minijax.jitting.stages import nbytes
from minijax.kernels.builder import (
    Buffer,
    KernelBuilder,
    UnsupportedKernel,
    contiguous_view,
    transpose_view,
)
from minijax.kernels.lowering import (
    Launch,
    StepKind,
    as_bytes,
    copy_cost,
    kernel_rules,
    step_kinds,
)
from minijax.llvm.compiler import add_symbol
from minijax.llvm.instructions import FunctionBuilder, llvm_memory_type, pointer_type
from minijax.llvm.targets import host_target
from minijax.rematerialization.caching import memoize
from minijax.sharding.manual_axes import collective_group, current_replica
from minijax.sharding.replicas import rendezvous_key
from minijax.threads.atomics import pause_text
from minijax.threads.parallel_loops import grain_unit, parallel_loop, range_function

# Exchange: a step in which replicas meet in machine code, and its rules.

LIBRARY_FUNCTIONS = (
    native_all_reduce, native_reduce_scatter, native_all_gather, native_all_to_all,
    native_collective_permute, bucketed_all_reduce, notify_workers, team_worker_loop,
    launch_team, run_serially,
)  # fmt: skip
# The function of each exchange, by its name in machine code.
NATIVE_COLLECTIVES = {
    "fold": "native_all_reduce", "scatter": "native_reduce_scatter",
    "all": "native_all_gather", "parts": "native_all_to_all",
    "one": "native_collective_permute",
}  # fmt: skip
GRAIN = 1024  # elements that are combined at a time


@memoize
def collectives_library():
    """Return the machine code of replicas, or None where there can be none."""
    with suppress(OSError):  # the text of its functions is not there
        text = pause_text(host_target().triple) + NONTEMPORAL_COPY
        return LowLevelLibrary(text + llvm_text(*LIBRARY_FUNCTIONS))
    return None


class Collective(NamedTuple):
    """A step: meet the replicas along some axes, and get something of all of them.

    Attributes:
      how: "fold", "scatter", "all", "parts", "one" or "index".
      names: of the axes, a tuple.
      x, out: the buffers of what is brought and of the result; `x` is None for "index".
      combine_op: the `Launch` that combines an element of a source with the result.
      sources: for "one", the number of the source for each replica, or -1.
      label, line: what is exchanged, and where the user has asked for it.
    """

    how: str
    names: tuple
    x: Buffer | None
    out: Buffer
    combine_op: Launch | None
    sources: tuple
    label: str
    line: str

    @property
    def programs(self):
        """The programs within the step: none."""
        return ()

    @property
    def reads(self):
        """The buffers that the step reads."""
        return [] if self.x is None else [self.x]

    @property
    def writes(self):
        """The buffers that the step writes to."""
        return [self.out]

    def __str__(self):
        names, what = "|".join(map(str, self.names)), self.how
        if self.combine_op:
            what += f" by {self.combine_op.kernel.name}"
        x = "" if self.x is None else f"{self.x} "
        return f"{self.out} = exchange {x}along {names}: {what}"


config.define("minijax_exchange", os.environ.get("MINIJAX_EXCHANGE", "1"), _on_or_off)


def _exchange(lowering, how, eqn, x, out, combining=None, sources=()):
    """Add the step; return the view of what it writes, of the type `out`."""
    names, result = collective_group(**eqn.params), lowering.allocate(out)
    aval, perm = eqn.invars[0].aval if x else out, eqn.params.get("perm")
    label = rendezvous_key(eqn.primitive, aval, names, perm)
    if combining:
        combining = _launch(combining, result.source)
    step = Collective(
        how, names, x, result.source, combining, sources, label, str(eqn.source or "")
    )
    lowering.steps.append(step)
    return result


def _launch(op, result):
    """Return the launch that combines a result with one more source."""
    shape = (result.size,)
    other = Buffer("source", result.dtype, result.size)
    k = KernelBuilder(op, shape)
    views = [contiguous_view(buffer, result.dtype, shape) for buffer in (result, other)]
    k.store(views[0], k.apply(op, *map(k.load, views)))
    launch = Launch(*k.kernel())
    if {*launch.buffers} != {result, other}:
        raise UnsupportedKernel(f"{op} of {result.dtype}")
    return launch


def _check(aval):
    """Raise `UnsupportedKernel` unless machine code exchanges arrays of a type."""
    if not config.minijax_exchange or collectives_library() is None:
        raise UnsupportedKernel("replicas meet in Python")
    if not nbytes(aval):
        raise UnsupportedKernel("nothing to exchange")


def _filled(lowering, view):
    """Return a buffer with the numbers of a view, row by row."""
    return lowering.in_own_buffer(view).source


def all_reduce_kernel_rule(op):
    """Return the kernel rule of a collective that combines by a scalar operation."""

    def rule(lowering, eqn, x):
        [aval] = [var.aval for var in eqn.outvars]
        _check(aval)
        _launch(op, Buffer("trial", aval.dtype, aval.size))
        source = _filled(lowering, x)
        return [_exchange(lowering, "fold", eqn, source, aval, op)]

    return rule


def _settled(lowering, view, axis, tiled, aval):
    """Return a view whose axis 0 is put at `axis`, or joined with what is there."""
    order = [*range(1, len(view.shape))]
    order.insert(axis, 0)
    view = transpose_view(view, order)
    return lowering.reshaped(view, aval.shape) if tiled else view


def _divided(lowering, view, axis, count, tiled):
    """Return a buffer with an array whose `axis`, in so many parts, is in front."""
    shape = list(view.shape)
    if tiled:
        shape[axis : axis + 1] = [count, shape[axis] // count]
        view = lowering.reshaped(view, shape)
    order = [axis, *[i for i in range(len(shape)) if i != axis]]
    view = transpose_view(view, order)
    return _filled(lowering, view), view.shape


def _gather(lowering, eqn, x):
    [aval], params = [var.aval for var in eqn.outvars], eqn.params
    _check(aval)
    source = _filled(lowering, x)
    stacked = aval.update(shape=(params["axis_size"], *x.shape))
    view = _exchange(lowering, "all", eqn, source, stacked)
    place, tiled = params["all_gather_dimension"], params["tiled"]
    return [_settled(lowering, view, place, tiled, aval)]


def _scatter(lowering, eqn, x):
    [aval], params = [var.aval for var in eqn.outvars], eqn.params
    _check(aval)
    _launch("add", Buffer("trial", aval.dtype, aval.size))
    place, tiled = params["scatter_dimension"], params["tiled"]
    source, _ = _divided(lowering, x, place, params["axis_size"], tiled)
    return [_exchange(lowering, "scatter", eqn, source, aval, "add")]


def _all_to_all(lowering, eqn, x):
    [aval], params = [var.aval for var in eqn.outvars], eqn.params
    _check(aval)
    tiled, count = params["tiled"], params["axis_size"]
    source, shape = _divided(lowering, x, params["split_axis"], count, tiled)
    rows = aval.update(shape=shape)
    view = _exchange(lowering, "parts", eqn, source, rows, sources=(count,))
    return [_settled(lowering, view, params["concat_axis"], tiled, aval)]


def _permute(lowering, eqn, x):
    [aval] = [var.aval for var in eqn.outvars]
    _check(aval)
    sources = {destination: source for source, destination in eqn.params["perm"]}
    table = [sources.get(i, -1) for i in range(max(sources, default=-1) + 1)]
    source = _filled(lowering, x)
    return [_exchange(lowering, "one", eqn, source, aval, sources=tuple(table))]


def _index(lowering, eqn):
    [aval] = [var.aval for var in eqn.outvars]
    _check(aval)
    return [_exchange(lowering, "index", eqn, None, aval)]


kernel_rules[all_gather_p], kernel_rules[reduce_scatter_p] = _gather, _scatter
kernel_rules[all_to_all_p], kernel_rules[ppermute_p] = _all_to_all, _permute
kernel_rules[axis_index_p] = _index


def exchanged_in_python(program, step):
    """Return a function of the memory that does the step at a `Rendezvous`."""

    def run(memory):
        replica = current_replica(step.names[0])
        meeting = replica.run.meeting(replica.rank, step.names)
        if step.how == "index":
            index = meeting.members.index(replica.rank)
            memory[step.out] = as_bytes(np.asarray(index, step.out.dtype))
            return
        x = memory[step.x].view(step.x.dtype)
        combine = partial(COLLECTIVE_COMBINATIONS[step.how], step)
        found = meeting.exchange(replica.rank, step.label, x, combine)
        memory[step.out] = as_bytes(np.array(found))

    return run


def combining_function(f, launch):
    """Return the name of the function that combines elements from one to another."""
    program, kernel = f.program, launch.kernel
    text = f"{kernel} to combine"
    if text not in program.kernels:
        loop = parallel_loop(kernel, program.target)
        name = f"combine_{len(program.kernels)}"
        program.kernels[text] = name, grain_unit(loop) if loop else None
        if loop:
            unit = grain_unit(loop)
            made = range_function(kernel, f"{name}_part", program.target, unit)
            program.needed |= made.needed
            inner = made.text.replace("define", "define internal", 1)
            program.functions.append(inner)
            callee, more = f"@{name}_part", ", i64 %lo, i64 %hi"
        else:
            callee, more = intern_kernel(program, kernel), ""
        t, args = FunctionBuilder(), []
        for parameter, buffer in zip(kernel.parameters, launch.buffers):
            place = "%other" if buffer.name == "source" else "%result"
            kind = pointer_type(llvm_memory_type(parameter.dtype))
            args.append(f"{kind} {t.emit(f'inttoptr i64 {place} to {kind}', 'p')}")
        t.line(f"call void {callee}({', '.join(args)}{more})")
        head = f"define internal i64 @{name}(i64 %result, i64 %other, i64 %lo, i64 %hi)"
        lines = [f"{head} nounwind {{", "entry:", *t.lines, "  ret i64 0", "}"]
        program.functions.append("\n".join(lines))
    return program.kernels[text]


def emit_collective(f, step):
    """Write the call of an exchange."""
    entry, out = f.asked(step.names), f.address(step.out)
    entry = f.emit(f"ptrtoint i8* {entry} to i64")
    if step.how == "index":
        place = f.emit(f"add i64 {entry}, 8")
        place = f.emit(f"inttoptr i64 {place} to i64*", "p")
        number = f.emit(f"load i64, i64* {place}")
        number = f.emit(f"trunc i64 {number} to i32")
        out = f.emit(f"bitcast i8* {out} to i32*", "p")
        return f.line(f"store i32 {number}, i32* {out}")
    label = label_word(step)
    ends = [f.emit(f"ptrtoint i8* {x} to i64") for x in (f.address(step.x), out)]
    args = [entry, *ends, *COLLECTIVE_SIZES[step.how](f, step), label]
    emit_fallible_call(f, NATIVE_COLLECTIVES[step.how], args)


def emit_fallible_call(f, name, args):
    """Write the call of a function of the library, which may fail."""
    add_symbol(f"minijax_{name}", collectives_library().place(name))
    f.declare(f"declare i64 @minijax_{name}({', '.join(['i64'] * len(args))})")
    words = ", ".join(f"i64 {arg}" for arg in args)
    status = f.name("v")
    f.line(f"{status} = call i64 @minijax_{name}({words})")
    f.branch_if_ok(f.emit(f"trunc i64 {status} to i32"))


def _sizes_of_fold(f, step):
    name, unit = combining_function(f, step.combine_op)
    size = step.out.size
    grain = size if unit is None else -(-GRAIN // unit) * unit
    function = f"ptrtoint (i64 (i64, i64, i64, i64)* @{name} to i64)"
    return [size, step.out.dtype.itemsize, function, grain]


def _table_of_sources(f, step):
    words = [len(step.sources), *step.sources]
    name, kind = f"@sources{len(f.program.functions)}", f"[{len(words)} x i64]"
    listed = ", ".join(f"i64 {x}" for x in words)
    f.program.functions.append(f"{name} = internal constant {kind} [{listed}]")
    return [nbytes(step.x), f"ptrtoint ({kind}* {name} to i64)"]


COLLECTIVE_SIZES = {
    "fold": _sizes_of_fold,
    "scatter": _sizes_of_fold,
    "all": lambda f, step: [nbytes(step.x)],
    "parts": lambda f, step: [nbytes(step.x) // step.sources[0]],
    "one": _table_of_sources,
}

NUMPY_COMBINERS = {"add": np.add, "max": np.maximum, "min": np.minimum}


def _fold(step, xs):
    return [reduce(NUMPY_COMBINERS[step.combine_op.kernel.name], xs)] * len(xs)


def _sources(step, xs):
    table = (*step.sources, *[-1] * (len(xs) - len(step.sources)))
    return [np.zeros_like(xs[0]) if i < 0 else xs[i] for i in table]


COLLECTIVE_COMBINATIONS: dict = {
    "fold": _fold,
    "scatter": lambda step, xs: np.split(_fold(step, xs)[0], len(xs)),
    "all": lambda step, xs: [np.concatenate(xs)] * len(xs),
    "parts": lambda step, xs: [
        np.concatenate(x) for x in zip(*[np.split(x, len(xs)) for x in xs])
    ],
    "one": _sources,
}


step_kinds[Collective] = StepKind(exchanged_in_python, copy_cost, emit_collective)


# Joint exchanges: sums, maxima and minima of several arrays at one meeting.


class BucketedAllReduce(NamedTuple):
    """A step: fold several arrays with the replicas along some axes, at one meeting.

    Attributes:
      parts: the `Collective` of each array; all are folds along the same axes.
    """

    parts: tuple

    @property
    def programs(self):
        """The programs within the step: none."""
        return ()

    @property
    def reads(self):
        """The buffers that the step reads."""
        return list(dict.fromkeys(part.x for part in self.parts))

    @property
    def writes(self):
        """The buffers that the step writes to."""
        return [part.out for part in self.parts]

    @property
    def names(self):
        """Who meets: the same for all parts."""
        return self.parts[0].names

    @property
    def line(self):
        """Where the user has asked for the first of them."""
        return self.parts[0].line

    @property
    def label(self):
        """What is exchanged."""
        return "; ".join(part.label for part in self.parts)

    def __str__(self):
        outs, xs = (" ".join(map(str, each)) for each in (self.writes, self.reads))
        how = ", ".join(dict.fromkeys(p.combine_op.kernel.name for p in self.parts))
        names = "|".join(map(str, self.names))
        return f"{outs} = exchange {xs} along {names}: fold by {how}, together"


COLLECTIVE_STEPS = Collective, BucketedAllReduce


def bucketing_kernel_rule(rule):
    """Return a kernel rule whose exchange joins one before it, where it can."""

    def joined(lowering, eqn, x):
        results = rule(lowering, eqn, x)
        lowering.steps[:] = _with_partner(lowering.steps)
        return results

    return joined


def _with_partner(steps):
    """Return steps whose last one, a fold, has taken in the last meeting before it."""
    *before, last = steps
    read = {*last.reads}
    for i, step in reversed([*enumerate(before)]):
        if type(step) in COLLECTIVE_STEPS:
            parts = step.parts if type(step) is BucketedAllReduce else (step,)
            fits = parts[0].how == "fold" and step.names == last.names
            if fits and not read & {*step.writes}:
                joint = BucketedAllReduce((*parts, last))
                return [*before[:i], *before[i + 1 :], joint]
            return steps
        if step.programs:  # there may be a meeting in it
            return steps
        read |= {*step.reads}
    return steps


def bucketed_all_reduce_runner(program, step):
    """Return a function of the memory that does the step at a `Rendezvous`."""

    def combine(rows):
        columns = zip(step.parts, zip(*rows))
        return [*zip(*[COLLECTIVE_COMBINATIONS["fold"](*column) for column in columns])]

    def run(memory):
        replica = current_replica(step.names[0])
        meeting = replica.run.meeting(replica.rank, step.names)
        xs = [memory[part.x].view(part.x.dtype) for part in step.parts]
        found = meeting.exchange(replica.rank, step.label, xs, combine)
        for part, x in zip(step.parts, found):
            memory[part.out] = as_bytes(np.array(x))

    return run


def emit_bucketed_all_reduce(f, step):
    """Write the table of the arrays, and the call of their exchange."""
    entry = f.emit(f"ptrtoint i8* {f.asked(step.names)} to i64")
    count = len(step.parts)
    table = f.emit_sequence("rows", 48 * count)
    rows = f.first(f"bitcast i8* {table} to i64*", "l")
    for i, part in enumerate(step.parts):
        ends = [f"ptrtoint i8* {f.address(x)} to i64" for x in (part.x, part.out)]
        for j, x in enumerate([*map(f.emit, ends), *COLLECTIVE_SIZES["fold"](f, part)]):
            place = f.emit(f"getelementptr i64, i64* {rows}, i64 {6 * i + j}", "p")
            f.line(f"store i64 {x}, i64* {place}")
    start = f.emit(f"ptrtoint i64* {rows} to i64")
    label = label_word(step)
    emit_fallible_call(f, "bucketed_all_reduce", [entry, start, count, label])


_folds = zip(
    (psum_p, pmax_p, pmin_p), map(all_reduce_kernel_rule, ("add", "max", "min"))
)
kernel_rules.update(
    {primitive: bucketing_kernel_rule(rule) for primitive, rule in _folds}
)
step_kinds[BucketedAllReduce] = StepKind(
    bucketed_all_reduce_runner, copy_cost, emit_bucketed_all_reduce
)
