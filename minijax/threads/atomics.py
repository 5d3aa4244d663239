"""Operations on words that several threads see at once.

In machine code each of them is atomic, and all threads see them in one order; as
Python, they take turns.

Reference: the LLVM Atomic Instructions and Concurrency Guide,
https://llvm.org/docs/Atomics.html.
"""

# Made from chapters/27_threads_ground.md by `make chapter`;
# edit the chapter, not this file.

import threading

from minijax.calls.words import BUILT_IN, word
from minijax.llvm.writing import LLVMFunction, declaration

_turn = threading.RLock()


def added(address, number):
    """Add a number to a word; return what was there before."""
    with _turn:
        before = word[address]
        word[address] = before + number
        return before


def seen(address):
    """Return a word, and with it all that was written before it was put there."""
    with _turn:
        return word[address]


def put(address, value):
    """Write a word, behind all that was written before; return what was there."""
    with _turn:
        before, word[address] = word[address], value
        return before


def swapped(address, old, new):
    """Write a word if an old one is there; return whether it was."""
    with _turn:
        same = word[address] == old
        word[address] = new if same else word[address]
        return int(same)


def quotient(x, y):
    """Return x / y, rounded up; `x` is not negative, and `y` is positive."""
    return -(-x // y)


def pause():
    """Tell the processor that we wait."""
    return 0


POINTER = "p = inttoptr i64 {x} to i64*; "
PAIR = "cmpxchg i64* {p}, i64 {y}, i64 {z} seq_cst seq_cst"

# What they are in machine code.
BUILT_IN |= {
    added: POINTER + "atomicrmw add i64* {p}, i64 {y} seq_cst",
    seen: POINTER + "load atomic i64, i64* {p} seq_cst, align 8",
    put: POINTER + "atomicrmw xchg i64* {p}, i64 {y} seq_cst",
    swapped: f"{POINTER}pair = {PAIR}; "
    "same = extractvalue {{ i64, i1 }} {pair}, 1; zext i1 {same} to i64",
    pause: "call i64 @pause()",
    quotient: "more = sub i64 {y}, 1; sum = add i64 {x}, {more}; udiv i64 {sum}, {y}",
}

# How a processor is told that we wait: a call, where LLVM has a function for it.
PAUSES = {
    ("x86_64", "amd64"): "void @llvm.x86.sse2.pause()",
    ("aarch64", "arm64"): "void @llvm.aarch64.hint(i32 1)",
}


def pause_text(triple):
    """Return the text of `pause` for a system."""
    f = LLVMFunction()
    for names, call_of_c in PAUSES.items():
        if triple.startswith(names):
            f.line(f"call {call_of_c}")
            f.declare(declaration(f"call {call_of_c}"))
    lines = "\n".join(["define internal i64 @pause() {", *f.lines, "  ret i64 0", "}"])
    return "\n".join([lines, *f.needed.values(), ""])
