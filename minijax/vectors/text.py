# Made from chapters/22_vectors.md by `make chapter`;
# edit the chapter, not this file.
"""The text of LLVM with vectors: types, constants, and operations on many lanes.

Reference: the LLVM Language Reference, https://llvm.org/docs/LangRef.html.
"""

import functools
import re
from typing import NamedTuple

from minijax.kernels.llvm_text import HALVES, LLVMFunction, write_operation


def vector_type(kind, lanes):
    """Return the type of so many numbers of a type; the type itself for 0 lanes."""
    return f"<{lanes} x {kind}>" if lanes else kind


def splat(kind, literal, lanes):
    """Return the constant that has the same number in each lane."""
    if not lanes:
        return literal
    one = f"<1 x {kind}> <{kind} {literal}>, <1 x {kind}> undef"
    return f"shufflevector ({one}, <{lanes} x i32> zeroinitializer)"


def listed(kind, numbers):
    """Return the constant that has these numbers in its lanes."""
    return f"<{', '.join(f'{kind} {number}' for number in numbers)}>"


_TYPE = re.compile(r"(?<!\.)\b(?:i1|i8|i16|i32|i64|float|double)\b(?! false)")
_LITERAL = re.compile(r"(?<= )(-?\d+(?:\.\d+)?(?:e[+-]\d+)?|0x[0-9A-F]{16})(?=,|$)")
_SUFFIX = re.compile(r"\.([fi]\d+)(?=[.(])")
_ROUNDED = re.compile(r"\b(fadd|fsub|fmul) ")


def widened(instruction, lanes):
    """Return an instruction on scalars as one on vectors.

    A number in it has the type in front of it, or else that of the first operand.
    """
    pieces = _LITERAL.split(instruction)
    kinds = [_TYPE.findall(text) for text in pieces[::2]]
    pieces[::2] = [_TYPE.sub(rf"<{lanes} x \g<0>>", text) for text in pieces[::2]]
    pieces[::2] = [_SUFFIX.sub(rf".v{lanes}\1", text) for text in pieces[::2]]
    for place in range(1, len(pieces), 2):
        typed = pieces[place - 1].endswith("> ")
        kind = kinds[place // 2][-1] if typed else kinds[0][0]
        pieces[place] = splat(kind, pieces[place], lanes)
    return "".join(pieces)


class Template(NamedTuple):
    """Instructions with places for operands, and texts of functions that they call."""

    text: str
    needed: dict


@functools.cache
def operation(op, arity, dtype, result, lanes, flags=""):
    """Return the `Template` of a scalar operation on vectors.

    Chapter 17's writer writes it for scalars; here it is made wide.
    """
    f, needed = LLVMFunction(), {}
    last = write_operation(f, op, [f"%x{k}" for k in range(arity)], dtype, result)
    steps = [line.strip() for line in f.lines]
    if lanes:
        steps = [widened(step, lanes) for step in steps]
    steps = [_ROUNDED.sub(rf"\1 {flags}", step) for step in steps]
    for place, step in enumerate(steps):
        if " = call " in step:
            steps[place], more = _linked(step, lanes)
            needed |= more
    if steps:
        last = steps.pop().partition(" = ")[2]
    text = "; ".join([*[step.removeprefix("%") for step in steps], last])
    text = re.sub(r"%x(\d+)", r"{\1}", text)
    return Template(re.sub(r"%(\w+)", r"{\1}", text), needed)


def _linked(step, lanes):
    """Return a call of the right function, and that function by its name."""
    name = step.partition("@")[2].partition("(")[0]
    if name in HALVES_BY_NAME:
        wide, text = wide_function(name, lanes)
        return step.replace(f"@{name}(", f"@{wide}("), {wide: text}
    return step, {name: declaration_of(step.partition(" = ")[2])}


def declaration_of(call):
    """Return the declaration of the function that an instruction calls."""
    head, _, args = call.removeprefix("call ").removesuffix(")").partition("(")
    types = [arg.rpartition(" ")[0] for arg in args.split(", ")]
    return f"declare {head}({', '.join(types)})"


HALVES_BY_NAME = {head.partition("@")[2]: text for head, text in HALVES.items()}


@functools.cache
def wide_function(name, lanes):
    """Return the name and the text of one of the elementary functions, made wide."""
    text = HALVES_BY_NAME[name]
    if not lanes:
        return name, text
    lines = [line.partition(" ;")[0] for line in text.splitlines()]
    lines[:-1] = [widened(line, lanes) for line in lines[:-1]]
    wide = f"{name}_v{lanes}"
    return wide, "\n".join(lines).replace(f"@{name}(", f"@{wide}(")


class Scope(NamedTuple):
    """The text of a loop's body, in the making, and what was computed in it."""

    lines: list
    memo: dict


class VectorText(LLVMFunction):
    """The text of one function in the making, in which loops are open.

    Attributes:
      scopes: the function's `Scope`, then those of the open loops.
      depth: the number of the scope that is written to.
      depths: from names to the depth where they are known.
      needed: what the text needs besides: from names to texts of functions.
    """

    def __init__(self):
        super().__init__()
        self.scopes, self.depths, self.needed = [Scope([], {})], {}, {}
        self.at(0)

    def at(self, depth):
        """Write to the scope at this depth from now on."""
        self.depth, self.lines = depth, self.scopes[depth].lines

    def name(self, hint="v"):
        """Return a new name; it has a dot, which those of buffers do not have."""
        self.count += 1
        return f"%{hint}.{self.count}"

    def emit(self, text, hint="v"):
        """Write an instruction, and return the name of its result."""
        name = self.name(hint)
        self.line(f"{name} = {text}")
        self.depths[name] = self.depth
        return name

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
            self.at(depth)
            memo[key] = write()
            self.at(here)
        return memo[key]

    def call(self, result, name, *args):
        """Write a call; `result` is its type, and `args` are pairs of type and name."""
        kinds = ", ".join(kind for kind, _ in args)
        self.needed[name] = f"declare {result} @{name}({kinds})"
        operands = ", ".join(f"{kind} {arg}" for kind, arg in args)
        text = f"call {result} @{name}({operands})"
        return self.line(text) if result == "void" else self.emit(text)

    def operation(self, op, args, dtype, result, lanes, flags=""):
        """Write a scalar operation on vectors; return the name of the result."""
        template = operation(op, len(args), dtype, result, lanes, flags)
        self.needed |= template.needed
        return self.instructions(template.text, args)

    def wide(self, kind, name, lanes):
        """Return a scalar as a vector, made where the scalar is known."""
        if not lanes or not name.startswith("%"):
            return splat(kind, name, lanes)
        vector, zeros = vector_type(kind, lanes), f"<{lanes} x i32> zeroinitializer"
        first = f"insertelement {vector} undef, {kind} {name}, i32 0"
        every = f"shufflevector {vector} {{}}, {vector} undef, {zeros}"
        return self.once((first, lanes), self.depths[name], first, every)

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
        number = self.count = self.count + 1
        index, names = f"%i{number}", [self.name("c") for _ in carried]
        entry, self.block = self.block, f"loop{number}"
        self._open([index, *names])
        results = body(index, names)
        following = self.emit(f"add nuw nsw i64 {index}, {step}", "n")
        more = self.emit(f"icmp ult i64 {following}, {first + step * count}", "b")
        self.line(f"br i1 {more}, label %loop{number}, label %done{number}")
        rows = [(index, "i64", first, following)]
        rows += [(name, *pair, x) for name, pair, x in zip(names, carried, results)]
        self._put_loop(number, entry, rows)
        self.depths |= dict.fromkeys(results, self.depth)
        return results

    def _put_loop(self, number, entry, rows):
        """End a loop, and put its text into that of the scope around it."""
        last, inside = self.block, self.scopes.pop().lines
        self.at(self.depth - 1)
        self.line(f"br label %loop{number}")
        self.start(f"loop{number}")
        for name, kind, first, following in rows:
            pairs = f"[ {first}, %{entry} ], [ {following}, %{last} ]"
            self.line(f"{name} = phi {kind} {pairs}")
        self.lines.extend(inside)
        self.start(f"done{number}")

    def _open(self, names):
        self.scopes.append(Scope([], {}))
        self.at(self.depth + 1)
        self.depths |= dict.fromkeys(names, self.depth)
