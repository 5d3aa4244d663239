# Made from chapters/26_threads.md by `make chapter`;
# edit the chapter, not this file.
"""Operations on words that several threads see at once.

In machine code each of them is atomic, and all threads see them in one order; as
Python, they take turns.

Reference: the LLVM Atomic Instructions and Concurrency Guide,
https://llvm.org/docs/Atomics.html.
"""

import threading

from minijax.calls.words import word

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
    """Write a word, behind all that was written before."""
    with _turn:
        word[address] = value
        return 0


def swapped(address, old, new):
    """Write a word if an old one is there; return whether it was."""
    with _turn:
        same = word[address] == old
        word[address] = new if same else word[address]
        return int(same)


def quotient(x, y):
    """Return x / y, rounded up."""
    return -(-x // y)


def pause():
    """Tell the processor that we wait."""
    return 0


_INLINE = "nounwind alwaysinline {"

# What stands for these functions in machine code.
ATOMICS = f"""define internal i64 @added(i64 %address, i64 %number) {_INLINE}
  %p = inttoptr i64 %address to i64*
  %before = atomicrmw add i64* %p, i64 %number seq_cst
  ret i64 %before
}}
define internal i64 @seen(i64 %address) {_INLINE}
  %p = inttoptr i64 %address to i64*
  %x = load atomic i64, i64* %p seq_cst, align 8
  ret i64 %x
}}
define internal i64 @put(i64 %address, i64 %value) {_INLINE}
  %p = inttoptr i64 %address to i64*
  store atomic i64 %value, i64* %p seq_cst, align 8
  ret i64 0
}}
define internal i64 @swapped(i64 %address, i64 %old, i64 %new) {_INLINE}
  %p = inttoptr i64 %address to i64*
  %pair = cmpxchg i64* %p, i64 %old, i64 %new seq_cst seq_cst
  %same = extractvalue {{ i64, i1 }} %pair, 1
  %word = zext i1 %same to i64
  ret i64 %word
}}
define internal i64 @quotient(i64 %x, i64 %y) {_INLINE}
  %more = sub i64 %y, 1
  %sum = add i64 %x, %more
  %z = udiv i64 %sum, %y
  ret i64 %z
}}
define internal i64 @pause() {_INLINE}
  PAUSE
  ret i64 0
}}
"""

# How a processor is told that we wait: a call, where LLVM has a function for it.
PAUSES = {
    ("x86_64", "amd64"): "void @llvm.x86.sse2.pause()",
    ("aarch64", "arm64"): "void @llvm.aarch64.hint(i32 1)",
}


def atomics_text(triple):
    """Return the text of the functions for a system."""
    for names, pause in PAUSES.items():
        if triple.startswith(names):
            declared = f"declare {pause}".replace("i32 1", "i32")
            return ATOMICS.replace("PAUSE", f"call {pause}") + f"{declared}\n"
    return ATOMICS.replace("  PAUSE\n", "")
