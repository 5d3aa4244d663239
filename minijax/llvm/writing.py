"""The text of one function of LLVM, in the making.

Reference: the LLVM Language Reference, https://llvm.org/docs/LangRef.html.
"""

# Made from chapters/18_llvm_ground.md by `make chapter`;
# edit the chapter, not this file.

from typing import NamedTuple

from minijax.llvm.instructions import OPERANDS, operation
from minijax.llvm.types import listed, pointer_to, splat, vector_type, width_of


class Scope(NamedTuple):
    """The text of a loop's body, in the making, and what was computed in it."""

    lines: list
    memo: dict


CALLED_ONLY = " noinline"  # of a call: the function is not copied to that place


class LLVMFunction:
    """The text of one function in the making, in which loops are open.

    Attributes:
      lines: those of the innermost loop that is open.
      block: the label of the block that is being written.
      scopes: the function's `Scope`, then those of the open loops.
      depth: the number of the scope that is written to.
      depths: from names to the depth where they are known.
      needed: what the text needs besides: from names to texts of functions.
      halves: whether the processor converts numbers of 16 bits.
    """

    halves = False

    def __init__(self):
        self.block, self.count = "entry", 0
        self.scopes, self.depths, self.needed = [Scope([], {})], {}, {}
        self.at_depth(0)

    def at_depth(self, depth):
        """Write to the scope at this depth from now on."""
        self.depth, self.lines = depth, self.scopes[depth].lines

    def name(self, hint="v"):
        """Return a new name; it has a dot, which those of parameters do not have."""
        self.count += 1
        return f"%{hint}.{self.count}"

    def line(self, text):
        """Write an instruction."""
        self.lines.append(f"  {text}")

    def emit(self, text, hint="v"):
        """Write an instruction, and return the name of its result."""
        name = self.name(hint)
        self.line(f"{name} = {text}")
        self.depths[name] = self.depth
        return name

    def declare(self, text):
        """Say that a function is called, by its declaration."""
        self.needed.setdefault(text.partition("@")[2].partition("(")[0], text)

    def start(self, label):
        """Begin a block."""
        self.lines.append(f"{label}:")
        self.block = label

    def instructions(self, template, args):
        """Write instructions with operands filled in; return the last result's name."""
        names = dict(zip(OPERANDS, args))
        for step in template.split("; "):
            name, _, text = step.rpartition(" = ")
            if text.startswith("call "):
                self.declare(declaration(text))
            names[name] = self.emit(text.format_map(names))
        return names[""]

    def operation(self, op, args, dtype, result, lanes=0, flags=""):
        """Write a scalar operation, or one on vectors; return the result's name."""
        steps = operation(op, dtype, result, lanes, flags, self.halves)
        return self.instructions(steps, args)

    def once(self, key, depth, *texts):
        """Write instructions in a scope, once; return the name of the last result.

        In a text, ``{}`` stands for the result before.
        """
        return self.written(key, depth, lambda: self._chain(texts))

    def _chain(self, texts):
        name = ""
        for text in texts:
            name = self.emit(text.format(name))
        return name

    def written(self, key, depth, write):
        """Call a function that writes to a scope, once; return what it has returned."""
        memo, here = self.scopes[depth].memo, self.depth
        if key not in memo:
            self.at_depth(depth)
            memo[key] = write()
            self.at_depth(here)
        return memo[key]

    def call(self, result, name, *args, own=False, how=""):
        """Write a call; `result` is its type, and `args` are pairs of type and name.

        A function that is the module's `own` is not declared. `how` is what LLVM is
        told of this call.
        """
        if not own:
            kinds = ", ".join(kind for kind, _ in args)
            self.needed[name] = f"declare {result} @{name}({kinds})"
        operands = ", ".join(f"{kind} {arg}" for kind, arg in args)
        text = f"call {result} @{name}({operands}){how}"
        return self.line(text) if result == "void" else self.emit(text)

    def wide(self, kind, name, lanes):
        """Return a scalar as a vector, made where the scalar is known."""
        if not lanes or not name.startswith("%"):
            return splat(kind, name, lanes)
        vector, zeros = vector_type(kind, lanes), f"<{lanes} x i32> zeroinitializer"
        first = f"insertelement {vector} undef, {kind} {name}, i32 0"
        every = f"shufflevector {vector} {{}}, {vector} undef, {zeros}"
        return self.once((first, lanes), self.depths[name], first, every)

    def choose(self, which, x, y, kind="i64", lanes=0):
        """Write the choice of one of two values, in each of so many lanes."""
        bools, kind = vector_type("i1", lanes), vector_type(kind, lanes)
        return self.emit(f"select {bools} {which}, {kind} {x}, {kind} {y}")

    def any_of(self, mask, lanes):
        """Write whether a mask lets any of its lanes through."""
        bools = vector_type("i1", lanes)
        return self.call("i1", f"llvm.vector.reduce.or.v{lanes}i1", (bools, mask))

    def element(self, kind, x, lanes, lane):
        """Write the number in one lane of a vector."""
        return self.emit(f"extractelement {vector_type(kind, lanes)} {x}, i32 {lane}")

    def with_element(self, kind, x, lanes, lane, number):
        """Write a vector with another number in one lane."""
        vector = f"{vector_type(kind, lanes)} {x}"
        return self.emit(f"insertelement {vector}, {kind} {number}, i32 {lane}")

    def shuffle(self, kind, x, y, order, lanes):
        """Write the vector of numbers of two vectors of so many, by their places."""
        vector, places = vector_type(kind, lanes), listed("i32", order)
        mask = f"<{len(order)} x i32> {places}"
        return self.emit(f"shufflevector {vector} {x}, {vector} {y}, {mask}")

    def at(self, kind, base, *places):
        """Write the address that is so many numbers behind another one."""
        for place in places:
            address = f"{pointer_to(kind)} {base}, i64 {place}"
            base = self.emit(f"getelementptr {kind}, {address}", "p")
        return base

    def cast(self, old, address, new):
        """Write an address of one type as that of another."""
        kinds = pointer_to(old), pointer_to(new)
        return self.emit(f"bitcast {kinds[0]} {address} to {kinds[1]}", "p")

    def load(self, kind, address, lanes=0):
        """Write the load of a number, or of so many that lie one after the other."""
        place = self._place(kind, address, lanes)
        return self.emit(f"load {vector_type(kind, lanes)}, {place}", "x")

    def store(self, kind, x, address, lanes=0):
        """Write the store of a number, or of a vector's, one after the other."""
        place = self._place(kind, address, lanes)
        self.line(f"store {vector_type(kind, lanes)} {x}, {place}")

    def _place(self, kind, address, lanes):
        if not lanes:
            return f"{pointer_to(kind)} {address}"
        vector = vector_type(kind, lanes)
        where = self.cast(kind, address, vector)
        return f"{pointer_to(vector)} {where}, align {width_of(kind)}"

    def turns(self, first, step, count, carried, body):
        """Write a loop; return the names of its last values.

        Args:
          first: the first index, an int; the others follow by `step`.
          step: an int.
          count: how many turns there are; none and one make no loop.
          carried: pairs of LLVM's type and the first value.
          body: a function that writes the body; it is given the index, an int or a
            name, and the names of the carried values, and returns those of the next.
        """
        if count < 2:
            values = [value for _, value in carried]
            return body(first, values) if count else values
        return self.loop(first + step * count, carried, body, first, step)

    def loop(self, limit, carried, body, first=0, step=1):
        """Write a loop of one turn at least; return the names of its last values.

        Args:
          limit: an int or a name; the index is below it.
          carried, body, first, step: as for `turns`; the index is a name.
        """
        number = self.count = self.count + 1
        index, names = f"%i{number}", [self.name("c") for _ in carried]
        entry, self.block = self.block, f"loop{number}"
        self._open([index, *names])
        results = body(index, names)
        following = self.emit(f"add nuw nsw i64 {index}, {step}", "n")
        more = self.emit(f"icmp ult i64 {following}, {limit}", "b")
        self.line(f"br i1 {more}, label %loop{number}, label %done{number}")
        rows = [(index, "i64", first, following)]
        rows += [(name, *pair, x) for name, pair, x in zip(names, carried, results)]
        self._put_loop(number, entry, rows)
        self.depths |= dict.fromkeys(results, self.depth)
        return results

    def when(self, condition, write, values=()):
        """Write what is done under a condition only; return what becomes of values.

        Args:
          condition: the name of a bool.
          write: a function that writes it, and returns the names of new values.
          values: pairs of LLVM's type and the value where it is not done.
        """
        number, before = self.count + 1, self.block
        self.count = number
        self._open([])
        self.block = f"then{number}"
        found = write()
        self.line(f"br label %after{number}")
        last, inside = self.block, self.scopes.pop().lines
        self.at_depth(self.depth - 1)
        self.line(f"br i1 {condition}, label %then{number}, label %after{number}")
        self.start(f"then{number}")
        self.lines.extend(inside)
        self.start(f"after{number}")
        return [
            self.emit(f"phi {kind} [ {x}, %{last} ], [ {value}, %{before} ]")
            for (kind, value), x in zip(values, found if values else ())
        ]

    def definition(self, name, params, attributes, result=None, linkage="internal "):
        """Return the text of the function.

        Args:
          name, attributes, linkage: in LLVM's words.
          params: pairs of type and name.
          result: a pair of type and name, if it returns something.
        """
        kind, value = result or ("void", "")
        listed = ", ".join(f"{kind} {param}" for kind, param in params)
        head = f"define {linkage}{kind} @{name}({listed}) {attributes} {{"
        end = f"  ret {kind} {value}".rstrip()
        return "\n".join([head, "entry:", *self.lines, end, "}"])

    def _put_loop(self, number, entry, rows):
        """End a loop, and put its text into that of the scope around it."""
        last, inside = self.block, self.scopes.pop().lines
        self.at_depth(self.depth - 1)
        self.line(f"br label %loop{number}")
        self.start(f"loop{number}")
        for name, kind, first, following in rows:
            pairs = f"[ {first}, %{entry} ], [ {following}, %{last} ]"
            self.line(f"{name} = phi {kind} {pairs}")
        self.lines.extend(inside)
        self.start(f"done{number}")

    def _open(self, names):
        self.scopes.append(Scope([], {}))
        self.at_depth(self.depth + 1)
        self.depths |= dict.fromkeys(names, self.depth)


def declaration(call):
    """Return the declaration of the function that an instruction calls."""
    head, _, args = call.removeprefix("call ").removesuffix(")").partition("(")
    types = [arg.rpartition(" ")[0] for arg in args.split(", ")]
    return f"declare {head}({', '.join(types)})"
