# Made from chapters/24_machine.md by `make chapter`;
# edit the chapter, not this file.
"""Programs as functions of LLVM: schedules with their loops, on planned memory.

The function of a program is ``i32 @program(i8** memory, i8* arena, i8** context)``:
the addresses of its inputs and its results; memory for what is between; and a table
that starts with the address of the function for what Python has to do, and goes on
with those of constants. It returns 0, or 1 if Python has raised an error.
"""

from minijax.jitting.costs import nbytes
from minijax.kernels.backends import cost_of_launch, launched
from minijax.kernels.program_steps import Launch
from minijax.kernels.steps import StepKind, step_kinds
from minijax.llvm.types import pointer_to, type_in_memory
from minijax.llvm.writing import LLVMFunction
from minijax.machine.locations import Locations, calls
from minijax.vectors.kernels import kernel_function

# A temporary with at most so many bytes is a local variable of its function, as long
# as these take no more of the stack than that; a function called by it has half of it.
SMALL, STACK = 256, 2**15

# So many kernels are called by one function at most; LLVM is slow on long functions.
LONGEST = 200

# A function that is called in more places is not put in each of them.
OFTEN = 16

MEMCPY = "@llvm.memcpy.p0i8.p0i8.i64"


class ProgramText:
    """The text of a program, in the making.

    Args:
      plan: its `MemoryPlan`.
      target: the `Target` that it is meant for.

    Attributes:
      functions: list of texts.
      hosted: list of the steps that Python does.
    """

    def __init__(self, plan, target):
        self.locations, self.target = Locations(plan), target
        self.inputs = len(plan.schedule.inputs)
        self.functions, self.hosted = [], []
        self.kernels, self.needed = {}, {}
        self.uses = self.locations.uses(plan.steps)
        self.function("program", plan.steps, [], linkage="define")

    def function(self, name, steps, slots, stack=STACK, linkage="define internal"):
        """Add a function that does some steps; it is given the addresses of slots.

        Its variables take no more than `stack` bytes.
        """
        f = FunctionText(self, steps, slots, stack)
        write_steps(f, steps)
        self.needed |= f.needed
        params = "".join(f", i8* {f.addresses[slot]}" for slot in slots)
        head = f"i32 @{name}(i8** %memory, i8* %arena, i8** %context{params})"
        for name, size in f.shared.items():
            f.head.insert(0, f"  %{name} = alloca i8, i64 {size}, align 64")
        lines = [f"{linkage} {head} nounwind noinline {{", "entry:", *f.head, *f.lines]
        self.functions.append("\n".join([*lines, *f.end, "}"]))

    def kernel(self, kernel):
        """Return the name of a kernel's function; the same text is written once."""
        text = str(kernel)
        if text not in self.kernels:
            name = f"{kernel.label}_{len(self.kernels)}"
            made = kernel_function(kernel, name, self.target)
            self.needed |= made.needed
            self.functions.append(made.text.replace("define", "define internal", 1))
            self.kernels[text] = f"@{name}"
        return self.kernels[text]

    def __str__(self):
        pairs = self.needed.items()
        needed = [called_or_copied(*pair, self.functions) for pair in pairs]
        return "\n\n".join([*needed, *self.functions])


def called_or_copied(name, text, functions):
    """Return the text of a function; one that is called often is not copied."""
    often = sum(each.count(f"@{name}(") for each in functions) > OFTEN
    return text.replace(" alwaysinline", " noinline", 1) if often else text


class FunctionText(LLVMFunction):
    """The text of a function that does some steps, in the making.

    Attributes:
      program: the `ProgramText`.
      head: lines that come first.
      addresses: from slots to the names of their addresses.
      stack, room: how many bytes its variables may take, and may still take.
      shared: memory that steps use in turn, from names to sizes.
    """

    def __init__(self, program, steps, slots, stack=STACK):
        super().__init__()
        self.stack = self.room = stack
        self.shared = {}
        self.program, self.head = program, []
        self.addresses = {slot: self.name("s") for slot in slots}
        self.end = ["  ret i32 0"]
        self.places, self.first_of = program.locations.places, program.locations.first
        own = program.locations.uses(steps).items()
        alone = [slot for slot, count in own if count == program.uses[slot]]
        self.local = set(filter(self._may_be_local, alone))

    def _may_be_local(self, slot):
        arena = slot in self.places and self.places[slot].kind == "arena"
        return arena and nbytes(slot) <= SMALL

    def first(self, text, hint):
        """Write an instruction at the beginning; return the name of its result."""
        name = self.name(hint)
        self.head.append(f"  {name} = {text}")
        return name

    def variable(self, slot):
        """Return the address of a new local variable, of the size of a slot."""
        kind = f"[{nbytes(slot)} x i8]"
        whole = self.first(f"alloca {kind}, align 16", "l")
        return self.first(f"bitcast {kind}* {whole} to i8*", "l")

    def entry(self, table, number):
        """Return an address from a table, which is read at the beginning."""
        place = self.first(f"getelementptr i8*, i8** {table}, i64 {number}", "t")
        return self.first(f"load i8*, i8** {place}", "t")

    def address(self, slot):
        """Return the address of a slot."""
        slot = self.first_of.get(slot, slot)
        if slot not in self.addresses:
            if slot in self.local and not self.takes(nbytes(slot)):
                self.local.discard(slot)  # it stays in the arena
            if slot not in self.local:
                return self._placed(slot, *self.places[slot])
            self.addresses[slot] = self.variable(slot)
        return self.addresses[slot]

    def takes(self, size):
        """Return whether there is room for a variable, and note that it is taken."""
        size = max(size, 16)
        fits = size <= self.room
        self.room -= size * fits
        return fits

    def in_turn(self, name, size):
        """Return the address of memory that steps use one after the other."""
        self.shared[name] = max(self.shared.get(name, 0), size)
        return f"%{name}"

    def _placed(self, slot, kind, number):
        if kind == "arena":
            return self.offset("%arena", number)
        if kind == "constant":
            self.addresses[slot] = self.entry("%context", number + 1)
        else:
            number += self.program.inputs if kind == "output" else 0
            self.addresses[slot] = self.entry("%memory", number)
        return self.addresses[slot]

    def offset(self, address, distance):
        """Return an address some bytes after another."""
        return self.emit(f"getelementptr i8, i8* {address}, i64 {distance}", "p")

    def copy(self, to, source, slot):
        """Write what copies as many bytes as a slot has."""
        self.declare(f"declare void {MEMCPY}(i8*, i8*, i64, i1)")
        args = f"i8* {to}, i8* {source}, i64 {nbytes(slot)}, i1 false"
        self.line(f"call void {MEMCPY}({args})")

    def label(self, hint):
        """Return a new name for a block."""
        return self.name(hint)[1:]

    def go_on_if_fine(self, status):
        """Write the way out, where a call has returned an error."""
        fine, bad = self.label("fine"), self.emit(f"icmp ne i32 {status}, 0")
        self.line(f"br i1 {bad}, label %failed, label %{fine}")
        self.start(fine)
        self.end = ["  ret i32 0", "failed:", "  ret i32 1"]


def write_launch(f, step):
    """Write the call of a kernel."""
    name = f.program.kernel(step.kernel)
    pairs = zip(step.kernel.buffers, step.slots)
    args = [typed(f, f.address(slot), buffer.dtype) for buffer, slot in pairs]
    f.line(f"call void {name}({', '.join(args)})")


def typed(f, address, dtype):
    """Return an address as an argument, with its type."""
    kind = pointer_to(type_in_memory(dtype))
    if kind == "i8*":
        return f"i8* {address}"
    return f"{kind} {f.emit(f'bitcast i8* {address} to {kind}', 'p')}"


step_kinds[Launch] = StepKind(launched, cost_of_launch, write_launch)


def write_steps(f, steps):
    """Write steps; very many of them are distributed among functions."""
    parts = [steps] if sum(map(calls, steps)) <= LONGEST else parted(steps)
    for part in parts:
        if len(parts) > 1 and not (len(part) == 1 and part[0].schedules):
            write_elsewhere(f, part)
        else:
            for step in part:
                (step_kinds[type(step)].write or write_hosted)(f, step)


def parted(steps):
    """Return steps as lists, with as many calls in each as one function may have."""
    parts, count = [[]], 0
    for step in steps:
        count += calls(step)
        if count > LONGEST and parts[-1]:
            parts.append([])
            count = calls(step)
        parts[-1].append(step)
    return parts


def write_elsewhere(f, steps):
    """Write steps in a function of their own, and its call."""
    inner = FunctionText(f.program, steps, [], f.stack // 2)
    named = [s for s in f.program.locations.uses(steps) if s not in inner.local]
    handed = {slot for slot in f.addresses if slot not in f.places}
    shared = [slot for slot in named if slot in f.local or slot in handed]
    name = f"part{len(f.program.functions)}"
    args = "".join(f", i8* {f.address(slot)}" for slot in shared)
    f.program.function(name, steps, shared, f.stack // 2)
    args = f"i8** %memory, i8* %arena, i8** %context{args}"
    status = f.name("v")
    f.line(f"{status} = call i32 @{name}({args})")
    f.go_on_if_fine(status)


def write_hosted(f, step):
    """Write a call of Python, which is given the addresses of the step's slots."""
    number, addresses = len(f.program.hosted), [*map(f.address, hosted_slots(step))]
    f.program.hosted.append(step)
    addresses.append(f.in_turn("status", 4))
    status = f.first("bitcast i8* %status to i32*", "l")
    f.line(f"store i32 1, i32* {status}")
    whole = f.in_turn("table", 8 * len(addresses))
    table = f.first(f"bitcast i8* {whole} to i8**", "l")
    for place, pointer in enumerate(addresses):
        entry = f.emit(f"getelementptr i8*, i8** {table}, i64 {place}", "p")
        f.line(f"store i8* {pointer}, i8** {entry}")
    host = f.entry("%context", 0)
    function = f.first(f"bitcast i8* {host} to void (i64, i8**)*", "t")
    f.line(f"call void {function}(i64 {number}, i8** {table})")
    f.go_on_if_fine(f.emit(f"load i32, i32* {status}", "v"))


def hosted_slots(step):
    """Return the slots of a step that Python does, each once."""
    return list(dict.fromkeys([*step.reads, *step.writes]))
