"""The text of a function that does some steps: addresses, variables, copies."""

# Made from chapters/21_machine_ground.md by `make chapter`;
# edit the chapter, not this file.

import re
from collections import Counter

from minijax.jitting.costs import nbytes
from minijax.llvm.types import pointer_to, type_in_memory
from minijax.llvm.writing import CALLED_ONLY, LLVMFunction
from minijax.machine.locations import calls

# A temporary with at most so many bytes is a local variable of its function, as long
# as these take no more of the stack than that; a function called by it has half of it.
SMALL, STACK = 256, 2**15

# So many kernels are called by one function at most; LLVM is slow on long functions.
LONGEST = 200

# The copies of elementary functions, and those of kernels, come to no more lines than
# that; `MORE` times as many where there are loops, or, for functions, long arrays.
INLINED, COPIED, MORE, LONG = 160, 750, 4, 2**15

# LLVM takes as long for a function that is empty as for so many lines.
FRAME = 20

CALLED = re.compile(r" call [^@\n]*@([\w.]+)\(")  # begins with letters to look for

MEMCPY = "@llvm.memcpy.p0i8.p0i8.i64"


class StepsText(LLVMFunction):
    """The text of a function that does some steps, in the making.

    Attributes:
      program: the `ProgramText`.
      head: lines that come first.
      addresses: from buffers to the names of their addresses.
      stack, room: how many bytes its variables may take, and may still take.
      shared: memory that steps use in turn, from names to sizes.
    """

    def __init__(self, program, steps, buffers, stack=STACK):
        super().__init__()
        self.stack = self.room = stack
        self.shared = {}
        self.program, self.head = program, []
        self.addresses = {buffer: self.name("s") for buffer in buffers}
        self.end = ["  ret i32 0"]
        self.places, self.first_of = program.locations.places, program.locations.first
        own = program.locations.uses(steps).items()
        alone = [buffer for buffer, count in own if count == program.uses[buffer]]
        self.local = set(filter(self._may_be_local, alone)) - program.kept

    def _may_be_local(self, buffer):
        arena = buffer in self.places and self.places[buffer].kind == "arena"
        return arena and nbytes(buffer) <= SMALL

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
        return name

    def variable(self, buffer):
        """Return the address of a new local variable, of the size of a buffer."""
        kind = f"[{nbytes(buffer)} x i8]"
        whole = self.first(f"alloca {kind}, align 16", "l")
        return self.first(f"bitcast {kind}* {whole} to i8*", "l")

    def entry(self, table, number):
        """Return an address from a table, which is read at the beginning."""
        place = self.first(f"getelementptr i8*, i8** {table}, i64 {number}", "t")
        return self.first(f"load i8*, i8** {place}", "t")

    def address(self, buffer):
        """Return the address of a buffer."""
        buffer = self.first_of.get(buffer, buffer)
        if buffer not in self.addresses:
            if buffer in self.local and not self.takes(nbytes(buffer)):
                self.local.discard(buffer)  # it stays in the arena
            if buffer not in self.local:
                return self._placed(buffer, *self.places[buffer])
            self.addresses[buffer] = self.variable(buffer)
        return self.addresses[buffer]

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

    def asked(self, what):
        """Return an entry of the context that is another one for each call."""
        asked = self.program.asked
        if what not in asked:
            asked.append(what)
        return self.entry("%context", 1 + self.program.constants + asked.index(what))

    def table(self, addresses):
        """Write addresses one after the other into memory; return where they are."""
        whole = self.in_turn("table", 8 * len(addresses))
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

    def go_on_if_fine(self, status):
        """Write the way out, where a call has returned an error."""
        fine, bad = self.label("fine"), self.emit(f"icmp ne i32 {status}, 0")
        self.line(f"br i1 {bad}, label %failed, label %{fine}")
        self.start(fine)
        self.end = ["  ret i32 0", "failed:", "  ret i32 1"]


def typed(f, address, dtype):
    """Return an address as an argument, with its type."""
    kind = pointer_to(type_in_memory(dtype))
    if kind == "i8*":
        return f"i8* {address}"
    return f"{kind} {f.emit(f'bitcast i8* {address} to {kind}', 'p')}"


def call_counts(functions):
    """Return how often functions are called by others, by their names."""
    return Counter(CALLED.findall("\n".join(functions)))


def called_or_copied(text, often):
    """Return the text of a function; one that is called often is not copied."""
    return text.replace(" alwaysinline", " noinline", 1) if often else text


def may_be_copied(text):
    """Return whether LLVM is to copy a function into those that call it."""
    return " alwaysinline" in text.partition("\n")[0]


def within_budget(functions, counts, budget):
    """Return texts of functions of which only the shortest are copied into callers."""
    left, found = budget, [*functions]
    for place in sorted(range(len(found)), key=lambda n: found[n].count("\n")):
        head, _, body = found[place].partition("\n")
        if may_be_copied(head):
            name, lines = head.partition("@")[2].partition("(")[0], body.count("\n")
            left -= lines * (counts[name] - 1) + max(lines - FRAME, 0) // 4
            found[place] = called_or_copied(found[place], left < 0)
    return found


def marked(functions):
    """Return the lines with calls for the last vectors of rows."""
    lines = [line for text in functions for line in text.split("\n")]
    return [line for line in lines if line.endswith(CALLED_ONLY)]


def without_marks(functions):
    """Return texts in which calls for the last vectors of rows are like all others."""
    return [text.replace(f"){CALLED_ONLY}\n", ")\n") for text in functions]


def inlined(needed, functions, counts, budget):
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
    less = call_counts(marked(functions))
    copies = {x: lines[x] * (counts[x] - less[x]) for x in lines}
    found = {**needed}
    for name in sorted(copies, key=copies.__getitem__):
        budget -= copies[name]
        found[name] = called_or_copied(needed[name], budget < 0)
    return [*found.values()], functions


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
    inner = StepsText(f.program, steps, [], f.stack // 2)
    named = [s for s in f.program.locations.uses(steps) if s not in inner.local]
    handed = {buffer for buffer in f.addresses if buffer not in f.places}
    shared = [buffer for buffer in named if buffer in f.local or buffer in handed]
    name = f"part{len(f.program.functions)}"
    args = "".join(f", i8* {f.address(buffer)}" for buffer in shared)
    f.program.function(name, steps, shared, f.stack // 2)
    call_elsewhere(f, name, args)


def call_elsewhere(f, name, more=""):
    """Write the call of a function that does some steps."""
    args, status = f"i8** %memory, i8* %arena, i8** %context{more}", f.name("v")
    f.line(f"{status} = call i32 @{name}({args})")
    f.go_on_if_fine(status)
