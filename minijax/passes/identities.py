# Made from chapters/18_passes.md by `make chapter`;
# edit the chapter, not this file.
"""What is equal to what in the algebra of numbers as machines have them.

A *term* is a variable, which is a letter; a number; or a tuple of the name of a
primitive and its operands, which are terms.
"""

from typing import NamedTuple


class Identity(NamedTuple):
    """A term, and a simpler one that is the same, bit by bit.

    Attributes:
      left, right: the terms.
      kinds: letters of the kinds of dtypes for which they are the same: b(ool),
        i(nteger), u(nsigned), h(alf), f(loat), c(omplex).
      note: why not for others.
    """

    left: tuple
    right: object
    kinds: str
    note: str = ""

    def __str__(self):
        return f"{spell_term(self.left)} = {spell_term(self.right)}"


SYMBOLS = {
    "add": "+", "add_any": "+", "sub": "-", "mul": "*", "div": "/", "and": "&",
    "or": "|", "xor": "^", "eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">",
    "ge": ">=",
}  # fmt: skip


def spell_term(term, inside=False):
    """Return a term as one would write it; in brackets if it is part of another."""
    if not isinstance(term, tuple):
        return str(term)
    name, *args = term
    if name in SYMBOLS:
        text = f" {SYMBOLS[name]} ".join(spell_term(arg, True) for arg in args)
        return f"({text})" if inside else text
    if name in ("neg", "not"):
        return f"{'-' if name == 'neg' else '~'}{spell_term(args[0], True)}"
    return f"{name}({', '.join(map(spell_term, args))})"


REAL, NUMBER, ANY = "iuhf", "iuhfc", "biuhfc"
_zero = "-0.0 + 0.0 is 0.0"
_two = "a complex number has two zeros, and -0.0 + 0j only one with a sign"
_lost = "NaN, and the infinities, have to stay; 0 has a sign"
_parts = "the parts of an infinite number become NaN"
_nan = "NaN is not equal to itself"
_round = "each operation rounds"
identities = [
    Identity(("add", "x", 0), "x", "iu", _zero),
    Identity(("add", "x", -0.0), "x", "iuhf", _two),
    Identity(("add_any", "x", 0), "x", "biu", _zero),
    Identity(("add_any", "x", -0.0), "x", "biuhf", _two),
    Identity(("add", "x", ("neg", "y")), ("sub", "x", "y"), NUMBER),
    Identity(("add_any", "x", ("neg", "y")), ("sub", "x", "y"), NUMBER),
    Identity(("sub", "x", 0), "x", NUMBER),
    Identity(("sub", "x", ("neg", "y")), ("add", "x", "y"), NUMBER),
    Identity(("sub", 0, "x"), ("neg", "x"), "iu", "0.0 - 0.0 is 0.0, not -0.0"),
    Identity(("sub", -0.0, "x"), ("neg", "x"), "iuhf", _two),
    Identity(("sub", "x", "x"), 0, "iu", _lost),
    Identity(("neg", ("neg", "x")), "x", NUMBER),
    Identity(("neg", ("sub", "x", "y")), ("sub", "y", "x"), "iu", "-(x - x) is -0.0"),
    Identity(("sub", ("add", "x", "y"), "y"), "x", "iu", _round),
    Identity(("add", ("sub", "x", "y"), "y"), "x", "iu", _round),
    Identity(("mul", "x", 1), "x", REAL, _parts),
    Identity(("mul", "x", -1), ("neg", "x"), REAL, _parts),
    Identity(("mul", "x", 0), 0, "iu", _lost),
    Identity(("mul", ("neg", "x"), ("neg", "y")), ("mul", "x", "y"), NUMBER),
    Identity(("div", "x", 1), "x", REAL, _parts),
    Identity(("div", "x", -1), ("neg", "x"), "ihf", "2 / 255 in unsigned numbers"),
    Identity(("div", ("neg", "x"), ("neg", "y")), ("div", "x", "y"), "hf", "rounding"),
    Identity(("div", "x", "x"), 1, "", "0 / 0"),
    Identity(("div", ("mul", "x", "y"), "y"), "x", "", _round),
    Identity(("square", ("neg", "x")), ("square", "x"), NUMBER),
    Identity(("abs", ("neg", "x")), ("abs", "x"), "ihfc"),
    Identity(("abs", ("abs", "x")), ("abs", "x"), "ihfc"),
    Identity(("mul", ("sqrt", "x"), ("sqrt", "x")), "x", "", _round),
    Identity(("exp", ("log", "x")), "x", "", "negative numbers, and rounding"),
    Identity(("log", ("exp", "x")), "x", "", "the exponential overflows"),
    Identity(("max", "x", "x"), "x", ANY),
    Identity(("min", "x", "x"), "x", ANY),
    Identity(("and", "x", "x"), "x", "biu"),
    Identity(("and", "x", -1), "x", "biu"),
    Identity(("and", "x", 0), 0, "biu"),
    Identity(("or", "x", "x"), "x", "biu"),
    Identity(("or", "x", 0), "x", "biu"),
    Identity(("or", "x", -1), -1, "biu"),
    Identity(("xor", "x", "x"), 0, "biu"),
    Identity(("xor", "x", 0), "x", "biu"),
    Identity(("xor", "x", -1), ("not", "x"), "biu"),
    Identity(("not", ("not", "x")), "x", "biu"),
    Identity(("not", ("eq", "x", "y")), ("ne", "x", "y"), ANY),
    Identity(("not", ("ne", "x", "y")), ("eq", "x", "y"), ANY),
    Identity(("not", ("lt", "x", "y")), ("ge", "x", "y"), "biu", _nan),
    Identity(("not", ("gt", "x", "y")), ("le", "x", "y"), "biu", _nan),
    Identity(("not", ("le", "x", "y")), ("gt", "x", "y"), "biu", _nan),
    Identity(("not", ("ge", "x", "y")), ("lt", "x", "y"), "biu", _nan),
    Identity(("eq", "x", "x"), -1, "biu", _nan),
    Identity(("ne", "x", "x"), 0, "biu", _nan),
    Identity(("lt", "x", "x"), 0, "biuhf"),
    Identity(("gt", "x", "x"), 0, "biuhf"),
    Identity(("le", "x", "x"), -1, "biu", _nan),
    Identity(("ge", "x", "x"), -1, "biu", _nan),
    Identity(("eq", "p", -1), "p", "b"),
    Identity(("eq", "p", 0), ("not", "p"), "b"),
    Identity(("ne", "p", 0), "p", "b"),
    Identity(("ne", "p", -1), ("not", "p"), "b"),
    Identity(("select_n", "w", "x", "x"), "x", "biu"),
    Identity(("select_n", 0, "x", "y"), "x", ANY),
    Identity(("select_n", 1, "x", "y"), "y", ANY),
    Identity(("select_n", ("not", "p"), "x", "y"), ("select_n", "p", "y", "x"), "b"),
    Identity(("real", ("complex", "x", "y")), "x", "f"),
    Identity(("imag", ("complex", "x", "y")), "y", "f"),
    Identity(("complex", ("real", "x"), ("imag", "x")), "x", "c"),
    Identity(("conj", ("conj", "x")), "x", "c"),
]
