"""Programs as functions of LLVM: steps, loops, host steps, and executables.

The function of a program is ``i32 @program(i8** memory, i8* arena, i8** context)``:
the addresses of its inputs and its results; memory for what is between; and a table
that starts with the address of the function for what Python has to do, and goes on
with those of constants. It returns 0, or 1 if Python has raised an error.

A nested program has as `inputs` and `outputs` buffers whose memory the step hands in
when it runs it; the outputs are distinct, and written inside. What it reads otherwise,
and does not write itself, it has captured from the program around it.
"""

# Made from chapters/21_machine_ground.md by `make chapter`;
# edit the chapter, not this file.
# Amended in chapters/21_machine_rest.md: Locations._add (1acac483).

import ctypes
import functools
import re
import sys
import threading
from collections import Counter
from functools import partial
from typing import NamedTuple

import numpy as np

from minijax.arrays.array import asbuffer
from minijax.jaxprs.types import Hook
from minijax.jitting.stages import BYTES_ACCESSED, FLOPS, TRANSCENDENTALS, nbytes
from minijax.kernels.builder import Buffer, KernelBuilder, contiguous_view
from minijax.kernels.lowering import (
    BufferAllocations,
    Launch,
    LoweredProgram,
    StepKind,
    is_contiguous,
    kernel_rules,
    program_cost,
    step_kinds,
)
from minijax.llvm.compiler import object_code
from minijax.llvm.instructions import (
    NOINLINE,
    FunctionBuilder,
    llvm_memory_type,
    pointer_type,
)
from minijax.llvm.targets import TargetLibrary, refusal
from minijax.memory.aliasing import BufferLocation
from minijax.memory.allocator import as_aligned, donated_buffer, pooled_empty
from minijax.memory.buffer_assignment import captured_buffers, memory_stats
from minijax.scans.scan import scan_p
from minijax.scans.step import split_list_by_sizes

# Where the steps of a program find their buffers: one answer for all nested plans.


def walk_steps(steps):
    """Yield steps, and all those within them."""
    return LoweredProgram([], [], [], steps).walk()


MAX_CONSTANT_ADDRESSES = (
    3  # buffers of a call; LLVM is slow where many addresses are known at once
)


def call_count(step):
    """Return how many calls it takes to do a step; one of many buffers is as many."""
    simple = [inner for inner in walk_steps([step]) if not inner.programs]
    return sum(
        [max(1, len({*x.reads, *x.writes}) // MAX_CONSTANT_ADDRESSES) for x in simple]
    )


class Locations:
    """Where a program finds its buffers.

    Args:
      plan: a `MemoryPlan`.

    Attributes:
      places: from buffers to places; those in the arena count from its beginning, also
        for programs within steps.
      first: from buffers that are written over others to the first one there.
      workspaces: from the ids of steps to offsets in the arena.
    """

    def __init__(self, plan):
        self.places, self.first, self.workspaces = {}, {}, {}
        self._add(plan, 0)
        over = dict(self.first)  # in any order of steps; a chain is one place
        for new in over:
            while self.first[new] in over:
                self.first[new] = over[self.first[new]]

    def _add(self, plan, start):
        for buffer, (kind, number) in plan.places.items():
            if kind == "state":
                if buffer is not plan.program.inputs[number]:
                    self.first[buffer] = plan.program.inputs[number]
                continue
            number += start if kind == "arena" else 0
            self.places[buffer] = BufferLocation(kind, number)
        for pairs in plan.in_place.values():
            self.first.update((new, old) for old, new in pairs)
        for number, offset in plan.workspaces.items():
            self.workspaces[id(plan.steps[number])] = start + offset
        for number, plans in plan.nested.items():
            for each in plans:
                self._add(each, start + plan.blocks.get(number, 0))

    def uses(self, steps):
        """Return how often steps name each buffer, or one that is written over it."""
        named = [buffer for s in walk_steps(steps) for buffer in (*s.reads, *s.writes)]
        return Counter(self.first.get(buffer, buffer) for buffer in named)


# The text of a function that does some steps: addresses, variables, copies.

# A temporary with at most so many bytes is a local variable of its function, as long
# as these take no more of the stack than that; a function called by it has half of it.
SMALL_LOCAL_BYTES, MAX_STACK_BYTES = 256, 2**15

# So many kernels are called by one function at most; LLVM is slow on long functions.
MAX_CALLS_PER_FUNCTION = 200

# The copies of elementary functions, and those of kernels, come to no more lines than
# the first number; than the second where there are loops, or, for functions, long
# arrays.
MAX_INLINED_FUNCTION_LINES, MAX_INLINED_KERNEL_LINES = (160, 640), (200, 3000)
LONG_ARRAY_ELEMENTS = 2**15

# LLVM takes as long for a function that is empty as for so many lines.
FRAME = 20

CALL_PATTERN = re.compile(
    r" call [^@\n]*@([\w.]+)\("
)  # begins with letters to look for

MEMCPY = "@llvm.memcpy.p0i8.p0i8.i64"


class StepsEmitter(FunctionBuilder):
    """The text of a function that does some steps, in the making.

    Attributes:
      program: the `ProgramEmitter`.
      head: lines that come first.
      addresses: from buffers to the names of their addresses.
      stack, room: how many bytes its variables may take, and may still take.
      shared: memory that steps use in turn, from names to sizes.
      fixed: names that are known from the beginning.
      entries: from pairs of a table and a number to the address that was read there.
      casts: from pairs of a fixed address and a type to its name with that type.
    """

    def __init__(self, program, steps, buffers, stack=MAX_STACK_BYTES):
        super().__init__()
        self.stack = self.room = stack
        self.shared, self.entries, self.casts = {}, {}, {}
        self.program, self.head = program, []
        self.addresses = {buffer: self.name("s") for buffer in buffers}
        self.fixed = {*self.addresses.values()}
        self.end = ["  ret i32 0"]
        self.places, self.first_of = program.locations.places, program.locations.first
        own = program.locations.uses(steps).items()
        alone = [buffer for buffer, count in own if count == program.uses[buffer]]
        self.local = set(filter(self._may_be_local, alone)) - program.kept

    def _may_be_local(self, buffer):
        arena = buffer in self.places and self.places[buffer].kind == "arena"
        return arena and nbytes(buffer) <= SMALL_LOCAL_BYTES

    def parameters(self, buffers):
        """Return the parameters of the function, with the addresses of buffers."""
        given = "".join(f", i8* {self.addresses[buffer]}" for buffer in buffers)
        return f"i8** %memory, i8* %arena, i8** %context{given}"

    def variables(self):
        """Return the lines for the memory that steps use in turn."""
        sizes = [*self.shared.items()][::-1]
        return [f"  %{name} = alloca i8, i64 {size}, align 64" for name, size in sizes]

    def first(self, text, hint):
        """Write an instruction at the beginning; return the name of its result."""
        name = self.name(hint)
        self.head.append(f"  {name} = {text}")
        self.fixed.add(name)
        return name

    def variable(self, buffer):
        """Return the address of a new local variable, of the size of a buffer."""
        kind = f"[{nbytes(buffer)} x i8]"
        whole = self.first(f"alloca {kind}, align 16", "l")
        return self.first(f"bitcast {kind}* {whole} to i8*", "l")

    def entry(self, table, number):
        """Return an address from a table, which is read at the beginning, once."""
        if (table, number) not in self.entries:
            place = self.first(f"getelementptr i8*, i8** {table}, i64 {number}", "t")
            self.entries[table, number] = self.first(f"load i8*, i8** {place}", "t")
        return self.entries[table, number]

    def address(self, buffer):
        """Return the address of a buffer."""
        buffer = self.first_of.get(buffer, buffer)
        if buffer not in self.addresses:
            if buffer in self.local and not self.charge_stack(nbytes(buffer)):
                self.local.discard(buffer)  # it stays in the arena
            if buffer not in self.local:
                return self._placed(buffer, *self.places[buffer])
            self.addresses[buffer] = self.variable(buffer)
        return self.addresses[buffer]

    def charge_stack(self, size):
        """Return whether there is room for a variable, and note that it is taken."""
        size = max(size, 16)
        fits = size <= self.room
        self.room -= size * fits
        return fits

    def emit_sequence(self, name, size):
        """Return the address of memory that steps use one after the other."""
        self.shared[name] = max(self.shared.get(name, 0), size)
        return f"%{name}"

    def asked(self, what):
        """Return an entry of the context that is another one for each call."""
        asked = self.program.asked
        if what not in asked:
            asked.append(what)
        return self.entry("%context", 1 + self.program.constants + asked.index(what))

    def table(self, addresses):
        """Write addresses one after the other into memory; return where they are."""
        whole = self.emit_sequence("table", 8 * len(addresses))
        table = self.first(f"bitcast i8* {whole} to i8**", "l")
        for number, each in enumerate(addresses):
            entry = self.emit(f"getelementptr i8*, i8** {table}, i64 {number}", "p")
            self.line(f"store i8* {each}, i8** {entry}")
        return table

    def _placed(self, buffer, kind, number):
        if kind == "arena":
            return self.offset("%arena", number)
        if kind == "constant":
            self.addresses[buffer] = self.entry("%context", number + 1)
        else:
            number += self.program.inputs if kind == "output" else 0
            self.addresses[buffer] = self.entry("%memory", number)
        return self.addresses[buffer]

    def offset(self, address, distance):
        """Return an address some bytes after another."""
        return self.emit(f"getelementptr i8, i8* {address}, i64 {distance}", "p")

    def copy(self, to, source, buffer):
        """Write what copies as many bytes as a buffer has."""
        self.declare(f"declare void {MEMCPY}(i8*, i8*, i64, i1)")
        args = f"i8* {to}, i8* {source}, i64 {nbytes(buffer)}, i1 false"
        self.line(f"call void {MEMCPY}({args})")

    def label(self, hint):
        """Return a new name for a block."""
        return self.name(hint)[1:]

    def branch_if_ok(self, status):
        """Write the way out, where a call has returned an error."""
        fine, bad = self.label("fine"), self.emit(f"icmp ne i32 {status}, 0")
        self.line(f"br i1 {bad}, label %failed, label %{fine}")
        self.start(fine)
        self.end = ["  ret i32 0", "failed:", "  ret i32 1"]


def buffer_argument(f, buffer, dtype):
    """Return the address of a buffer as an argument, with its type.

    An address that is known from the beginning is given each type once.
    """
    address, kind = f.address(buffer), pointer_type(llvm_memory_type(dtype))
    if kind == "i8*" or address not in f.fixed:
        return typed_argument(f, address, dtype)
    if (address, kind) not in f.casts:
        f.casts[address, kind] = f.first(f"bitcast i8* {address} to {kind}", "p")
    return f"{kind} {f.casts[address, kind]}"


def typed_argument(f, address, dtype):
    """Return an address as an argument, with its type."""
    kind = pointer_type(llvm_memory_type(dtype))
    if kind == "i8*":
        return f"i8* {address}"
    return f"{kind} {f.emit(f'bitcast i8* {address} to {kind}', 'p')}"


def call_counts(functions):
    """Return how often functions are called by others, by their names."""
    return Counter(CALL_PATTERN.findall("\n".join(functions)))


def called_or_copied(text, often):
    """Return the text of a function; one that is called often is not copied."""
    return text.replace(" alwaysinline", " noinline", 1) if often else text


def may_be_copied(text):
    """Return whether LLVM is to copy a function into those that call it."""
    return " alwaysinline" in text.partition("\n")[0]


def inline_candidates(functions, counts, budget):
    """Return texts of functions of which only the shortest are copied into callers."""
    left, found = budget, [*functions]
    for place in sorted(range(len(found)), key=lambda n: found[n].count("\n")):
        head, _, body = found[place].partition("\n")
        if may_be_copied(head):
            name, lines = head.partition("@")[2].partition("(")[0], body.count("\n")
            left -= lines * (counts[name] - 1) + max(lines - FRAME, 0) // 4
            found[place] = called_or_copied(found[place], left < 0)
    return found


def mark_tail_calls(functions):
    """Return the lines with calls for the last vectors of rows."""
    lines = [line for text in functions for line in text.split("\n")]
    return [line for line in lines if line.endswith(NOINLINE)]


def without_marks(functions):
    """Return texts in which calls for the last vectors of rows are like all others."""
    return [text.replace(f"){NOINLINE}\n", ")\n") for text in functions]


def inline_functions(needed, functions, counts, budget):
    """Return the texts of elementary functions and of those that call them.

    Args:
      needed: from names to texts of functions that are called.
      functions: the texts of those that call them.
      counts: how often each is called.
      budget: how many lines all copies may come to.
    """
    lines = {x: text.count("\n") for x, text in needed.items() if may_be_copied(text)}
    if sum([lines[x] * (counts[x] - 1) for x in lines]) <= budget:
        return [*needed.values()], without_marks(functions)
    less = call_counts(mark_tail_calls(functions))
    copies = {x: lines[x] * (counts[x] - less[x]) for x in lines}
    found = {**needed}
    for name in sorted(copies, key=copies.__getitem__):
        budget -= copies[name]
        found[name] = called_or_copied(needed[name], budget < 0)
    return [*found.values()], functions


def split_by_call_count(steps):
    """Return steps as lists, with as many calls in each as one function may have."""
    parts, count = [[]], 0
    for step in steps:
        count += call_count(step)
        if count > MAX_CALLS_PER_FUNCTION and parts[-1]:
            parts.append([])
            count = call_count(step)
        parts[-1].append(step)
    return parts


def emit_outlined(f, steps):
    """Write steps in a function of their own, and its call."""
    inner = StepsEmitter(f.program, steps, [], f.stack // 2)
    named = [s for s in f.program.locations.uses(steps) if s not in inner.local]
    handed = {buffer for buffer in f.addresses if buffer not in f.places}
    shared = [buffer for buffer in named if buffer in f.local or buffer in handed]
    name = f"part{len(f.program.functions)}"
    args = "".join(f", i8* {f.address(buffer)}" for buffer in shared)
    f.program.function(name, steps, shared, f.stack // 2)
    emit_outlined_call(f, name, args)


def emit_outlined_call(f, name, more=""):
    """Write the call of a function that does some steps."""
    args, status = f"i8** %memory, i8* %arena, i8** %context{more}", f.name("v")
    f.line(f"{status} = call i32 @{name}({args})")
    f.branch_if_ok(status)


# Steps that Python does for a program that is machine code.


def emit_host_call(f, step):
    """Write a call of Python, which is given the addresses of the step's buffers."""
    number = len(f.program.hosted)
    addresses = [*map(f.address, host_call_buffers(step))]
    f.program.hosted.append(step)
    addresses.append(f.emit_sequence("status", 4))
    status = f.first("bitcast i8* %status to i32*", "l")
    f.line(f"store i32 1, i32* {status}")
    table = f.table(addresses)
    host = f.entry("%context", 0)
    function = f.first(f"bitcast i8* {host} to void (i64, i8**)*", "t")
    f.line(f"call void {function}(i64 {number}, i8** {table})")
    f.branch_if_ok(f.emit(f"load i32, i32* {status}", "v"))


def host_call_buffers(step):
    """Return the buffers of a step that Python does, each once."""
    return list(dict.fromkeys([*step.reads, *step.writes]))


HOST = ctypes.CFUNCTYPE(None, ctypes.c_int64, ctypes.POINTER(ctypes.c_void_p))
STATUS_BYTES = ctypes.sizeof(ctypes.c_int32)


class HostCallbacks:
    """Does steps when machine code asks for it, and keeps the errors.

    Args:
      steps: the list of steps.

    Attributes:
      address: of what machine code calls, with the number of a step and a table of the
        addresses of its buffers and of its status; None if there are no steps.
    """

    functions: dict = {}

    def __init__(self, steps):
        self.steps, self.errors = [(step, self.prepare(step)) for step in steps], {}
        self.function, self.address = None, None
        if steps:
            self.function = HOST(answering(self.steps, self.errors))
            self.address = ctypes.cast(self.function, ctypes.c_void_p).value

    def prepare(self, step):
        """Return a function of the memory that does a step."""
        return step_kinds[type(step)].run(self, step)

    def raise_error(self):
        """Raise the error that this thread has met.

        One that came before the first line of a step, Python has shown, and not kept.
        """
        raise self.errors.pop(threading.get_ident(), KeyboardInterrupt())


def answering(steps, errors):
    """Return a function that does a step, and makes its status 0 if that went well.

    It holds no `HostCallbacks`, so that a program is gone when no variable holds it.
    """

    def answer(number, addresses):
        step, run = steps[number]
        buffers = host_call_buffers(step)
        try:
            places = dict(zip(buffers, addresses))
            memory = BufferAllocations(
                {x: copy_buffer_bytes(x, places[x]) for x in step.reads}
            )
            run(memory)
            for x in step.writes:
                ctypes.memmove(places[x], memory[x].ctypes.data, nbytes(x))
            ctypes.memset(addresses[len(buffers)], 0, STATUS_BYTES)
        except BaseException as error:
            errors[threading.get_ident()] = error
            ctypes.memset(addresses[len(buffers)], 1, STATUS_BYTES)

    return answer


def copy_buffer_bytes(buffer, address):
    """Return a copy of the bytes of a buffer, also of more than an int of C counts."""
    count = nbytes(buffer)
    if not count:
        return np.zeros(0, np.uint8)
    return np.array((ctypes.c_uint8 * count).from_address(address))


# Programs as functions of LLVM: lists of steps with their loops, on planned memory.

# What cuts a program where its replicas meet: a function of its steps that returns a
# list of parts, of which each second one is a meeting again; or [], if none may be cut.
split_at_collectives: Hook = Hook(lambda steps: [])
JUST_CALLS = "noinline optnone"  # of functions in which LLVM has nothing to improve


class ProgramEmitter:
    """The text of a program, in the making.

    Args:
      plan: its `MemoryPlan`.
      target: the `Target` that it is meant for.

    Attributes:
      functions: list of texts.
      hosted: list of the steps that Python does.
      asked: list of what its context holds behind the constants, for each call.
      parts: names of functions that do what `split_at_collectives` returns.
      kept: buffers that are no variables, as several of these functions need them.
      has_loops: whether there are programs in its steps.
      is_long: whether there are such, or long arrays to read or write.
    """

    def __init__(self, plan, target):
        self.locations, self.target = Locations(plan), target
        self.inputs = len(plan.program.inputs)
        self.constants = len(plan.program.constants)
        self.functions, self.hosted, self.asked = [], [], []
        self.has_loops = any(step.programs for step in plan.steps)
        buffers = [b for step in plan.steps for b in (*step.reads, *step.writes)]
        sizes = [buffer.size for buffer in buffers]
        self.is_long = self.has_loops or max(sizes, default=0) >= LONG_ARRAY_ELEMENTS
        self.kernels, self.needed = {}, {}
        self.uses = self.locations.uses(plan.steps)
        parts = split_at_collectives.value(plan.steps)
        self.parts, self.kept = [f"turn{i}" for i in range(len(parts))], set()
        if len(parts) > 1:
            self.write_parts(parts)
        else:
            self.function("program", plan.steps, [], linkage="")
            self.parts = ["program"] * len(parts)

    def write_parts(self, parts):
        """Add a function for each part, and one that calls every second one."""
        met = [step for part in parts[1::2] for step in part]
        ends = [buffer for step in met for buffer in (*step.reads, *step.writes)]
        self.kept = {self.locations.first.get(buffer, buffer) for buffer in ends}
        for i, part in enumerate(parts):
            how = JUST_CALLS if i % 2 else "noinline"
            self.function(self.parts[i], part, [], linkage="", how=how)
        f = StepsEmitter(self, [], [])
        for name in self.parts[::2]:
            emit_outlined_call(f, name)
        self.add("program", f, [], "", JUST_CALLS)

    def function(
        self,
        name,
        steps,
        buffers,
        stack=MAX_STACK_BYTES,
        linkage="internal ",
        how="noinline",
    ):
        """Add a function that does some steps; it is given the addresses of buffers.

        Its variables take no more than `stack` bytes.
        """
        f = StepsEmitter(self, steps, buffers, stack)
        emit_program_steps(f, steps)
        self.add(name, f, buffers, linkage, how)

    def add(self, name, f, buffers, linkage, how):
        """Add a function whose lines are written."""
        self.needed |= f.needed
        parameters = f"({f.parameters(buffers)}) nounwind {how} {{"
        head = f"define {linkage}i32 @{name}{parameters}"
        lines = [head, "entry:", *f.variables(), *f.head, *f.lines, *f.end, "}"]
        self.functions.append("\n".join(lines))

    def __str__(self):
        counts = call_counts(self.functions)
        lines = MAX_INLINED_FUNCTION_LINES[self.is_long]
        needed, functions = inline_functions(self.needed, self.functions, counts, lines)
        lines = MAX_INLINED_KERNEL_LINES[self.has_loops]
        functions = inline_candidates(functions, counts, lines)
        return "\n\n".join([*needed, *functions])


def emit_program_steps(f, steps):
    """Write steps; very many of them are distributed among functions."""
    parts = (
        [steps]
        if sum(map(call_count, steps)) <= MAX_CALLS_PER_FUNCTION
        else split_by_call_count(steps)
    )
    for part in parts:
        if len(parts) > 1 and not (len(part) == 1 and part[0].programs):
            emit_outlined(f, part)
        else:
            for step in part:
                (step_kinds[type(step)].write or emit_host_call)(f, step)


# Loops as steps: a step with a program in it, how it is run, and what it costs.


def nested_runner(program, inner):
    """Return a function of the memory that runs a nested program once.

    What it writes besides its outputs is gone when it runs again.
    """
    steps = [program.prepare(step) for step in inner.steps]
    written = {buffer for step in inner.steps for buffer in step.writes}

    def run(memory):
        for buffer in written:
            memory.pop(buffer, None)
        for step in steps:
            step(memory)
        return [memory[buffer] for buffer in inner.outputs]

    return run


def scan_runner(program, step):
    """Return a function of the memory that runs a program a number of times."""
    body, count = nested_runner(program, step.body), len(step.init)
    states, rows = step.body.inputs[:count], step.body.inputs[count:]
    numbers = range(step.length)[:: -1 if step.reverse else 1]

    def run(memory):
        memory.update(zip(states, [memory[buffer] for buffer in step.init]))
        for number in numbers:
            for x, row in zip(step.xs, rows):
                memory[row] = _row_of(memory[x], number, step.length)
            found = body(memory)
            memory.update(zip(states, found))
            for y, row in zip(step.ys, found[count:]):
                _row_of(memory[y], number, step.length)[:] = row
        memory.update(zip(step.results, [memory[buffer] for buffer in states]))

    return run


def _row_of(data, number, length):
    size = len(data) // length
    return data[number * size : (number + 1) * size]


def cost_of_repeat(step):
    """Return the costs of a loop: as often those of its body."""
    costs = program_cost(step.body)
    return Counter({name: step.length * count for name, count in costs.items()})


def text_of_repeat(step):
    """Return a loop as text: its first line, and the steps of its body."""
    order = " backwards" if step.reverse else ""
    head = f"{buffer_names([*step.results, *step.ys])} = repeat {step.length}{order} "
    return nested_text(head + buffer_names([*step.init, *step.xs]), step.programs)


def nested_text(head, programs):
    """Return the text of a step with programs in it."""
    return "\n".join([head, *map(_body, programs)])


def _body(program):
    ends = [" ".join(map(str, each)) for each in (program.inputs, program.outputs)]
    lines = [f"in {ends[0]}", *map(str, program.steps), f"out {ends[1]}"]
    return "    " + "\n".join(lines).replace("\n", "\n    ")


def buffer_names(buffers):
    """Return the names of buffers, as text."""
    return " ".join(buffer.name for buffer in buffers)


class ScanStep(NamedTuple):
    """A step: run a program a number of times.

    Attributes:
      length: how often.
      reverse: whether rows are taken from the last one to the first.
      body: the `LoweredProgram` of one time, from states and rows of xs to next states
        and rows of ys.
      init: list of the buffers of the states at first; the step overwrites them.
      results: list of the buffers of the states in the end.
      xs, ys: lists of the buffers whose rows are read, and written.
    """

    length: int
    reverse: bool
    body: LoweredProgram
    init: list
    results: list
    xs: list
    ys: list

    @property
    def programs(self):
        """The programs in the step."""
        return (self.body,)

    @property
    def reads(self):
        """The buffers that the step reads."""
        return [*self.init, *self.xs, *captured_buffers(self.body)]

    @property
    def writes(self):
        """The buffers that the step writes to."""
        return [*self.init, *self.results, *self.ys]

    def with_programs(self, new):  # the step with another body
        return self._replace(body=new[0])

    def __str__(self):
        return text_of_repeat(self)


step_kinds[ScanStep] = StepKind(scan_runner, cost_of_repeat)


# Kernel rules of loops: steps with programs in them.


def lower_nested(lowering, inputs, write):
    """Return the `LoweredProgram` of the steps that a function adds.

    Args:
      lowering: the `LoweringContext`.
      inputs: views of buffers whose memory will be handed in.
      write: a function that adds steps, and returns the views of their results.
    """
    around, lowering.steps = lowering.steps, []
    outputs = []
    for view in write():
        written = {buffer for step in lowering.steps for buffer in step.writes}
        if view.source not in written.difference(outputs) or not is_contiguous(view):
            view = lowering.copy(view)
        outputs.append(view.source)
    steps, lowering.steps = lowering.steps, around
    return LoweredProgram(source_buffers(inputs), outputs, [], steps)


def source_buffers(views):
    """Return the buffers of views that fill them."""
    return [view.source for view in views]


def new_buffers(lowering, avals):
    """Return new views, each with a buffer to itself."""
    return [lowering.allocate(aval) for aval in avals]


def carry_views(lowering, carry, avals):
    """Return views of the first states, in buffers of the loop's own, and of states."""
    return list(map(lowering.copy, carry)), new_buffers(lowering, avals)


def row_view(lowering, array, aval):
    """Return the view of a row of an array, and the buffer of the array.

    None replaces the buffer if all rows are one, which no iteration looks for.
    """
    if not isinstance(array.source, Buffer) or not array.strides[0]:
        return array.replace(array.shape[1:], array.strides[1:]), None
    row = lowering.allocate(aval)
    return row, lowering.in_own_buffer(array).source


def lower_scan(lowering, eqn, *operands):
    """Lower a loop with a known number of iterations."""
    params, program = eqn.params, eqn.params["jaxpr"]
    sizes = params["num_consts"], params["num_carry"]
    consts, carry, xs = split_list_by_sizes(operands, *sizes)
    _, state_avals, row_avals = split_list_by_sizes(program.in_avals, *sizes)
    starts, states = carry_views(lowering, carry, state_avals)
    pairs = list(map(partial(row_view, lowering), xs, row_avals))
    moving = {row: buffer for row, buffer in pairs if buffer is not None}
    inside = [*consts, *states, *[row for row, _ in pairs]]
    write = partial(lowering.program, program, inside)
    body = lower_nested(lowering, [*states, *moving], write)
    outs = new_buffers(lowering, [var.aval for var in eqn.outvars])
    results, ys = split_list_by_sizes(source_buffers(outs), len(starts))
    ends = source_buffers(starts), results, [*moving.values()], ys
    lowering.steps.append(ScanStep(params["length"], params["reverse"], body, *ends))
    return outs


kernel_rules[scan_p] = lower_scan


# Executables: tables of addresses, results of their own, costs, other callers.

PROGRAM_SIGNATURE = ctypes.CFUNCTYPE(ctypes.c_int32, *[ctypes.c_void_p] * 3)


HEADER = object.__basicsize__  # bytes in front of what NumPy knows of an array


def data_pointer(array):
    """Return the address of an array's first element.

    NumPy keeps it behind the header of each object; to ask for it takes ten times as
    long as to look there.
    """
    if not LOOKS:
        return array.ctypes.data
    return ctypes.c_void_p.from_address(id(array) + HEADER).value


def _looks():
    """Return whether addresses are where they are expected."""
    example = np.zeros(1)
    if sys.implementation.name != "cpython":
        return False
    found = ctypes.c_void_p.from_address(id(example) + HEADER).value
    return found == example.ctypes.data


LOOKS = _looks()


def pointer_table(addresses):
    """Return addresses as a table for machine code."""
    addresses = list(addresses)
    return table_of(len(addresses))(*addresses)


@functools.cache
def table_of(count):
    """Return the type of a table; each is made once, as it would be a cycle."""
    return ctypes.c_void_p * count


# What is done to the steps of a `LoweredProgram` before they get memory.
step_passes: Hook = Hook(lambda program: program)


def unalias_outputs(program):
    """Return a program that writes all results, each to a buffer of its own."""
    given = {*program.inputs, *(buffer for buffer, _ in program.constants)}
    steps, outputs = [*program.steps], []
    for buffer in program.outputs:
        if buffer in given and nbytes(buffer):
            copy = Buffer(f"{buffer.name}_{len(outputs)}", buffer.dtype, buffer.size)
            steps.append(copied(buffer, copy))
            buffer = copy
        outputs.append(buffer)
        given.add(buffer)
    return program._replace(outputs=outputs, steps=steps)


def copied(buffer, copy):
    """Return the step that copies one buffer to another."""
    k = KernelBuilder("copy", (buffer.size,))
    x = k.load(contiguous_view(buffer, buffer.dtype, (buffer.size,)))
    k.store(contiguous_view(copy, buffer.dtype, (buffer.size,)), x)
    return Launch(*k.kernel())


def input_buffers(plan, args):
    """Return NumPy arrays for the arguments; those given away may be written to."""
    pairs = zip(args, plan.donated)
    return [as_aligned(donated_buffer(x) if ours else asbuffer(x)) for x, ours in pairs]


def output_buffers(plan, avals, inputs):
    """Return NumPy arrays for the results, new ones or those of arguments."""
    places = [plan.places[buffer] for buffer in plan.program.outputs]
    return [
        inputs[place.number].reshape(aval.shape)
        if place.kind == "input"
        else pooled_empty(aval.shape, aval.dtype)
        for place, aval in zip(places, avals)
    ]


# What makes a profile of a program: a function of an `Executable`.
profiler = Hook(None)

# A loop that decides itself when it ends is taken to run so many nanoseconds.
A_LONG_TIME = 10**6


class EntryPoint(NamedTuple):
    """A program for callers that are no Python.

    Attributes:
      address: of its function.
      arena_bytes: how much memory each call has to bring.
      context: address of the table that the function is given.
      nanoseconds: about how long it takes.
      sources: for each result the number of the input whose memory it takes, or None.
      cuts: the `ShardLayout` of a program of arrays in parts, or None.
    """

    address: int
    arena_bytes: int
    context: int
    nanoseconds: int
    sources: tuple
    cuts: "ShardLayout | None" = None


class ShardLayout(NamedTuple):
    """How inputs and results of a program are cut; their buffers are tuples.

    A row of addresses for each part is given to the program, the first row in front;
    each further one lies before the one that it follows.

    Attributes:
      count: the number of parts.
      in_shards, out_shards: the types of parts.
      out_avals, out_placements: what the results are, and where.
      owner: what holds the context.
    """

    count: int
    in_shards: list
    out_shards: list
    out_avals: list
    out_placements: list
    owner: object


class Executable:
    """What can be asked of a program that is one function of machine code.

    Attributes:
      lowered, plan: its `LoweredProgram` and its `MemoryPlan`.
      text, target: what LLVM is given, and the `Target` that it is meant for.
      library: its machine code.
      address, function: of the machine code: a number, and what Python calls.
      entry: its `EntryPoint`, or None.
      asked, parts: those of its `ProgramEmitter`.
      host, context: the `HostCallbacks`, and the table that is the same from call to
        call.
    """

    donates, placement = True, None
    platforms = ("cpu",)

    def load(self, text):
        """Make machine code of the program's text, and what each call gives it.

        Args:
          text: its `ProgramEmitter`.
        """
        self.text, self.asked, self.parts = str(text), text.asked, text.parts
        self.host = HostCallbacks(text.hosted)
        self.library = TargetLibrary(self.text, self.target)
        self.address = self.library.engine.get_function_address("program")
        foreign = refusal(self.target)
        self.function = foreign or PROGRAM_SIGNATURE(self.address)
        self.context = context_of(self)
        self.entry = None if foreign else callable_elsewhere(self)

    def entry_at(self, places):
        """Return the `EntryPoint` for arguments at some placements, or None."""
        return self.entry

    def context_of_call(self):
        """Return the context of one call: that of all calls, if it asks for no more."""
        return context_factory.value(self) if self.asked else self.context

    def cost_analysis(self):
        """Return how many operations and bytes the program takes, a dictionary."""
        counts = program_cost(self.lowered)
        return {
            name: float(counts[name])
            for name in (FLOPS, TRANSCENDENTALS, BYTES_ACCESSED)
        }

    def memory_analysis(self):
        """Return the `CompiledMemoryStats`."""
        return memory_stats(self.plan, object_code(self.library))

    def profile(self, *args):
        """Run the steps one by one; return the `Profile`, which shows their times."""
        profile = profiler.value(self)
        profile(*args)
        return profile


def context_of(program):
    """Return the table that is the same from call to call; keep what it points to."""
    constants = [asbuffer(x) for _, x in program.lowered.constants]
    program.constants = list(map(np.ascontiguousarray, constants))
    return pointer_table([program.host.address, *map(data_pointer, program.constants)])


# What returns the context of one call, for a program that asks for more than constants.
context_factory = Hook(context_of)


def callable_elsewhere(program):
    """Return what a caller needs to know that is no Python, or None."""
    ends = [*program.lowered.inputs, *program.lowered.outputs]
    without_bytes = any(buffer.dtype.itemsize == 0 for buffer in ends)
    if program.host.steps or program.asked or without_bytes:
        return None
    context = ctypes.addressof(program.context)
    time = estimate_nanoseconds(program.lowered)
    places = [program.plan.places[buffer] for buffer in program.lowered.outputs]
    sources = tuple([x.number if x.kind == "input" else None for x in places])
    return EntryPoint(program.address, program.plan.arena, context, time, sources)


def estimate_nanoseconds(program):
    """Return about how long a `LoweredProgram` takes on one core."""
    costs = program_cost(program)
    work = costs[FLOPS] + 10 * costs[TRANSCENDENTALS]
    late = any(getattr(step, "is_unbounded", False) for step in program.walk())
    return int(costs[BYTES_ACCESSED] / 10 + work / 4 + A_LONG_TIME * late)
