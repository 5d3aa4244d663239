"""Random functions of words: machine code against Python with words of 64 bits.

    python -m tests.word_programs --seed 0 --count 5000

Python's integers do not wrap, so the text that Python runs has a call around each
operation, which does. Results and the bytes of a buffer have to be the same. Then each
function gets one construct that is not of the language, at some place: it has to be
refused, with a line.
"""

import ast
import ctypes
import itertools
import linecache
import sys
from types import SimpleNamespace

import numpy as np

from minijax.dispatch.word_language import (
    LowLevelLibrary,
    call_pointer,
    i64,
    llvm_text,
    u8,
    u32,
)
from tests.commands import options_of, reported

BYTES = 64
WORDS = [0, 1, -1, 2, 7, -8, 255, 2**31, -(2**31) - 1, 2**62, 2**63 - 1, -(2**63) + 1]
_numbers = itertools.count()


def wrapped(number):
    """Return the word that an integer of Python wraps around to."""
    return (number + 2**63) % 2**64 - 2**63


def helper(a, b):
    """A function that others call."""
    if a > b:
        return a - b
    return b * 3


def surroundings():
    """Return the names that functions of words find in their module."""
    double = ctypes.PYFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(lambda x: wrapped(2 * x))
    address = ctypes.cast(double, ctypes.c_void_p).value
    return {
        "word": i64, "half": u32, "byte": u8, "call": call_pointer, "helper": helper,
        "LIMIT": 5, "DOUBLE": address, "Place": SimpleNamespace(second=8),
        "TEXT": "5", "listed": [1, 2], "_held": double,
    }  # fmt: skip


# Constructs that are not of the language. Each would compile with something left out.
EXPRESSIONS = [
    "a < b < c", "a == b != c", "not a", "~a", "+a", "-(not b)", "a and b", "a or 3",
    "a if b else c", "a // 3", "a % 3", "a ^ b", "a ** 2", "a / b", "a @ b",
    "1 << a", "a >> b", "a << 64", "a >> -1", "1 << LIMIT + 60", "a is b", "a in b",
    "helper(a, b=1)", "helper(a, *b)", "helper(a, **b)", "helper(a)",
    "helper(a, b, c)", "helper(a)(b)", "call()", "len(a)", "abs(a)", "max(a, b)",
    "unknown", "TEXT", "helper", "word", "Place", "Place.missing", "a.real",
    "Place.second.real", "listed[0]", "word[a:b]", "word[a, b]", "word[a][b]",
    "half", "'text'", "b'text'", "1.5", "2j", "None", "...", "f'{a}'", "[a]",
    "(a, b)", "{a}", "{a: b}", "9223372036854775808", "36893488147419103233",
    "(a := b)", "lambda: a", "[i for i in b]", "(i for i in b)", "late",
]  # fmt: skip
STATEMENTS = [
    "x = y = a", "x, y = a, b", "x: int = a", "x: int", "del x", "pass", "assert a",
    "global LIMIT", "import sys", "from sys import path", "raise a", "return",
    "x //= 2", "x ^= 1", "x **= 2", "x <<= a", "x >>= 64", "listed[0] = a",
    "Place.second = a", "TEXT += 1", "LIMIT += 1", "[x] = a",
    "helper = a\nx = helper(a, b)",
    "*x, y = a", "yield a", "a.b = 1", "word = a\nx = word[a]", "word[a:b] = 1",
    "while a < b < c:\n    return 1", "while x > 0:\n    x -= 1\nelse:\n    x = 3",
    "while x > 3:\n    break", "while x > 3:\n    continue",
    "for i in a:\n    x = i", "with a:\n    x = 1", "def g():\n    return 1",
    "class G:\n    g = 1", "try:\n    x = 1\nfinally:\n    x = 2",
    "match a:\n    case 1:\n        x = 2", "if a:\n    late = 1\nx = late",
    "while a < 3:\n    late = 1\n    a += 1\nx = late", "late += 1",
]  # fmt: skip
HEADS = [
    "def f(m, a, b, c=1):", "def f(m, a, b, *c):", "def f(m, a, b, **c):",
    "def f(m, a, b, *, c):", "def f(m, a, b, /, c):", "def f(m, a: int, b, c):",
    "def f(m, a, b, c) -> int:", "@staticmethod\ndef f(m, a, b, c):",
]  # fmt: skip


class Author:
    """Writes a random function of words.

    Args:
      rng: where chance comes from.

    Attributes:
      known: the variables that have a value.
      foreign: a construct that is not of the language, to be put somewhere, or None.
    """

    def __init__(self, rng):
        self.rng, self.known, self.loops = rng, ["a", "b", "c"], 0

    def pick(self, *choices):
        return choices[self.rng.integers(len(choices))]

    def expression(self, depth):
        """Return the text of a word."""
        if depth < 1 or self.rng.random() < 0.15:
            number = self.pick(*WORDS)
            plain = str(number) if number >= 0 else f"(-{-number})"
            return self.pick(plain, *self.known, *self.known, "LIMIT", "Place.second")
        x, y = self.expression(depth - 1), self.expression(depth - 2)
        symbol = self.pick(*"+-*&|", "<", "<=", ">", ">=", "==", "!=")
        shift = f"({x} {self.pick('<<', '>>')} {self.rng.integers(64)})"
        pair = f"({x} {symbol} {y})"
        place, called = self.place(depth - 1), f"helper({x}, {y})"
        rare = self.pick(f"call(DOUBLE, {x})", place, called)
        return self.pick(pair, pair, pair, pair, shift, f"(-{x})", place, rare)

    def place(self, depth):
        """Return the text of an element of memory."""
        name, width = self.pick(("word", 8), ("half", 4), ("byte", 1))
        last = BYTES // width - 1
        return f"{name}[m + {width} * ({self.expression(depth)} & {last})]"

    def condition(self, depth):
        """Return the text of a condition."""
        if depth and self.rng.random() < 0.4:
            x, y = self.condition(depth - 1), self.condition(depth - 1)
            return self.pick(f"({x} and {y})", f"({x} or {y})", f"(not {x})")
        return self.expression(2)

    def statements(self, depth):
        """Return the lines of some statements."""
        lines = []
        for _ in range(self.rng.integers(1, 4)):
            lines += self.statement(depth)
        return lines

    def statement(self, depth):
        """Return the lines of a statement."""
        kind, x = self.rng.integers(8 if depth else 4), self.expression(3)
        if kind < 2:
            name = self.pick("a", "b", "c", "x", "y", "entry", "then", "v")
            self.known += [name] * (name not in self.known)
            return [f"{name} = {x}"]
        if kind == 2:
            target = self.pick(*self.known, self.place(1))
            symbol = self.pick(*"+-*&|")
            return [f"{target} {symbol}= {x}"]
        if kind == 3:
            return [self.pick(f"{self.place(2)} = {x}", f"{self.place(1)} = {x}", x)]
        if kind == 4:
            return self.loop(depth)
        if kind == 5 and self.rng.random() < 0.3:
            return [f"if {self.condition(1)}:", f"    return {x}"]
        return self.branches(depth)

    def loop(self, depth):
        self.loops += 1
        turn, before = f"turn{self.loops}", [*self.known]
        test = f"{turn} < {self.rng.integers(5)}"
        extra = self.pick("", f" and {self.condition(1)}")
        body = self.statements(depth - 1)
        self.known = before
        inside = [f"{turn} += 1", *body]
        return [f"{turn} = 0", f"while {test}{extra}:", *indented(inside)]

    def branches(self, depth):
        before = [*self.known]
        lines = [f"if {self.condition(2)}:", *indented(self.statements(depth - 1))]
        then, self.known = self.known, [*before]
        if self.rng.random() < 0.4:
            lines += [f"elif {self.condition(1)}:"]
            lines += indented(self.statements(depth - 1))
            then = [name for name in then if name in self.known]
            self.known = [*before]
        if self.rng.random() < 0.6:
            lines += ["else:", *indented(self.statements(depth - 1))]
        self.known = [name for name in self.known if name in then]
        return lines

    def function(self):
        """Return the lines of a function but for its head."""
        lines = self.statements(3)
        end = self.expression(3)
        both = self.rng.random() < 0.2
        end = ["if a < b:", "    return a", "else:", f"    return {end}"] if both else [
            f"return {end}"
        ]  # fmt: skip
        return ['"""Some words."""', *lines, *end]


def indented(lines):
    return [f"    {line}" for line in lines]


HEAD = "def f(m, a, b, c):"


class Wrapping(ast.NodeTransformer):
    """Puts a call around each operation of a text, which wraps its result."""

    def visit_BinOp(self, node):
        name = ast.Name("wrapped", ast.Load())
        return ast.Call(name, [self.generic_visit(node)], [])

    visit_UnaryOp = visit_BinOp

    def visit_AugAssign(self, node):
        self.generic_visit(node)
        load = ast.parse(ast.unparse(node.target), mode="eval").body
        load = Wrapping().visit(load) if isinstance(load, ast.Subscript) else load
        value = self.visit(ast.BinOp(load, node.op, node.value))
        return ast.Assign([node.target], value)


def as_python(text):
    """Return the function of a text, with words that wrap around."""
    tree = ast.fix_missing_locations(Wrapping().visit(ast.parse(text)))
    names = surroundings() | {"wrapped": wrapped, "helper": wrapped_helper}
    exec(compile(tree, "wrapped", "exec"), names)
    return names["f"]


def wrapped_helper(a, b):
    return wrapped(a - b if a > b else b * 3)


def as_words(text, names, name="f"):
    """Return the function of a text, which is one of a file for those who look."""
    file = f"<words {next(_numbers)}>"
    linecache.cache[file] = len(text), None, text.splitlines(True), file
    exec(compile(text, file, "exec"), names)
    return names[name]


def run(function, numbers, args):
    """Return what a function makes of a buffer and arguments, and the buffer then."""
    buffer = np.frombuffer(numbers, np.uint8).copy()
    found = function(buffer.ctypes.data, *args)
    return int(found), buffer.tobytes()


def machine(text):
    """Return the machine code of a text, as a function."""
    names = surroundings()
    library = LowLevelLibrary(llvm_text(as_words(text, names)))
    kind = ctypes.CFUNCTYPE(*[ctypes.c_int64] * 5)
    found = kind(library.place("f"))
    found.held = library, names
    return found


def drawn(seed):
    """Return the lines of the function of a seed, but for the head."""
    return Author(np.random.default_rng(seed)).function()


def disagreement(seed):
    """Return how machine code and Python differ for the function of a seed, or None."""
    rng = np.random.default_rng([seed, 1])
    text = "\n".join([HEAD, *indented(drawn(seed)), ""])
    compiled, python = machine(text), as_python(text)
    for _ in range(4):
        numbers = rng.bytes(BYTES)
        args = [int(x) for x in rng.choice(np.array(WORDS), 3)]
        ours, expected = (run(each, numbers, args) for each in (compiled, python))
        if ours != expected:
            return f"seed {seed}: {ours[0]} for {args}, but wanted {expected}\n{text}"
    return None


def foreign(seed):
    """Return the text of the function of a seed with one foreign construct."""
    rng, lines = np.random.default_rng([seed, 2]), drawn(seed)
    kind = rng.integers(8)
    head = HEAD
    if kind == 0:
        head = HEADS[rng.integers(len(HEADS))]
    elif kind == 1:
        lines = [f"x = {lines.pop().replace('return ', '')}"]  # and no way out
    else:
        place = int(rng.integers(1, len(lines)))
        while lines[place].lstrip().startswith(("else", "elif")):
            place -= 1
        indent = " " * (len(lines[place]) - len(lines[place].lstrip()))
        x = EXPRESSIONS[rng.integers(len(EXPRESSIONS))]
        alone = STATEMENTS[rng.integers(len(STATEMENTS))].splitlines()
        around = f"z = {x}", f"if {x}:\n    z = 1", f"word[{x}] = 1", f"z = ({x}) + 1"
        around += f"z = -({x})", f"z = word[{x}]", f"z = helper(1, {x})", f"return {x}"
        some = around[rng.integers(len(around))].splitlines()
        if x in CONDITIONS:
            some = [f"z = {x}"]
        new = alone if kind < 5 else some
        lines[place:place] = [f"{indent}{line}" for line in new]
    return "\n".join([head, *indented(lines), ""])


CONDITIONS = {"not a", "a and b", "a or 3", "-(not b)"}  # which may stand in an `if`


def accepted(seed):
    """Return the text of a function with a foreign construct that is compiled."""
    text = foreign(seed)
    try:
        function = as_words(text, surroundings())
        written = llvm_text(getattr(function, "__func__", function))
    except SyntaxError as error:
        return None if error.lineno else f"seed {seed}: no line in {error}\n{text}"
    except Exception as error:
        return f"seed {seed}: {error!r}\n{text}"
    return f"seed {seed}: this is compiled\n{text}{written}"


def problems(seed):
    """Return what is wrong with the functions of a seed, a list."""
    return [text for text in (disagreement(seed), accepted(seed)) if text]


def main():
    """Run from the command line."""
    options = options_of(__doc__, seed=0, count=5000)
    seeds = range(options.seed, options.seed + options.count)
    faults = [text for seed in seeds for text in problems(seed)]
    return reported(f"{options.count} functions, and as many with a foreign", faults)


if __name__ == "__main__":
    sys.exit(main())
