"""Radix sort in machine code: a stable order of unsigned words, digit by digit.

Reference: D. Knuth, *The Art of Computer Programming*, volume 3, section 5.2.5.
"""

# Made from chapters/29_sorting_ground.md by `make chapter`;
# edit the chapter, not this file.

from minijax.forgetting.remembering import made_once
from minijax.llvm.targets import TargetLibrary
from minijax.llvm.writing import LLVMFunction

BOXES, COUNTS_BYTES = 256, 1024
FEW = 24  # so many words are sorted by counting smaller ones


def write_box(f, word, x):
    """Write the number of a word's box: the digit at ``%shift``."""
    digit = f.emit(f"lshr {word} {x}, %shift")
    return f.index(word, f.emit(f"and {word} {digit}, {BOXES - 1}"))


def write_next(f, box):
    """Write the counting up of a box; return what its counter was."""
    count = f.read("i32", "%counts", box)
    f.put("i32", f.emit(f"add i32 {count}, 1"), "%counts", box)
    return f.index("i32", count)


def write_moves(f, word):
    """Write the walk that puts each word, and its old place, into its box."""

    def move(i):
        key, place = f.read(word, "%keys", i), f.read("i32", "%places", i)
        new = write_next(f, write_box(f, word, key))
        f.put(word, key, "%new_keys", new)
        f.put("i32", place, "%new_places", new)

    f.each("%n", move)


class SortText(LLVMFunction):
    """The text of a function on arrays of integers, in the making."""

    def read(self, kind, base, index):
        """Write the load of an element."""
        return self.load(kind, self.at(kind, base, index))

    def put(self, kind, x, base, index):
        """Write the store of an element."""
        self.store(kind, x, self.at(kind, base, index))

    def index(self, kind, x):
        """Write an unsigned integer as a place."""
        return x if kind == "i64" else self.emit(f"zext {kind} {x} to i64")

    def each(self, size, body):
        """Write a loop; `body` is a function of the index."""
        self.loop(size, [], lambda i, _: body(i) or [])


def bits_of(kind):
    """Return how many bits LLVM's type of an integer has."""
    return int(kind[1:])


def write_counts(f, word):
    """Write how many words go into each box."""
    f.each(BOXES, lambda box: f.put("i32", 0, "%counts", box))

    def count(i):
        write_next(f, write_box(f, word, f.read(word, "%keys", i)))

    f.each("%n", count)


def write_starts(f):
    """Write where each box starts, in place of how many words go into it."""

    def start(box, total):
        count = f.read("i32", "%counts", box)
        f.put("i32", total[0], "%counts", box)
        return [f.emit(f"add i32 {total[0]}, {count}")]

    f.loop(BOXES, [("i32", "0")], start)


def text_of(f, result, name, params, value=""):
    """Return the text of a function, whose body has been written."""
    head = f"define {result} @{name}({params}) nounwind noinline {{"
    return "\n".join([head, "entry:", *f.lines, f"  ret {result} {value}", "}"])


def pass_text(word):
    """Return the text of a pass; its result says whether anything has moved."""
    f = SortText()
    write_counts(f, word)
    box = write_box(f, word, f.read(word, "%keys", 0))
    most = f.index("i32", f.read("i32", "%counts", box))
    differ = f.emit(f"icmp ne i64 {most}, %n")
    f.when(differ, lambda: [write_starts(f), write_moves(f, word)])
    params = f"i64 %n, {word} %shift, {word}* %keys, i32* %places, {word}* %new_keys, "
    params += "i32* %new_places, i32* %counts"
    return text_of(f, "i1", "sort_pass", params, differ)


def write_passes(f, word, now, later, counts):
    """Write all passes of a word; the places end in ``%places``."""
    for shift in range(0, bits_of(word), 8):
        pairs = list(zip((f"{word}*", "i32*"), now, later))
        args = f"i64 %n, {word} {shift}, {word}* {now[0]}, i32* {now[1]}, "
        args += f"{word}* {later[0]}, i32* {later[1]}, i32* {counts}"
        moved = f.name()
        f.line(f"{moved} = call i1 @sort_pass({args})")
        choice = f"select i1 {moved}"
        now = [f.emit(f"{choice}, {kind} {b}, {kind} {a}") for kind, a, b in pairs]
        later = [f.emit(f"{choice}, {kind} {a}, {kind} {b}") for kind, a, b in pairs]
    elsewhere = f.emit(f"icmp ne i32* {now[1]}, %places")
    f.when(elsewhere, lambda: write_copy(f, now[1]))


def write_copy(f, places):
    """Write the copy of places to ``%places``."""
    f.each("%n", lambda i: f.put("i32", f.read("i32", places, i), "%places", i))


def write_few(f, word, keys, new_places):
    """Write the sort of few words: each goes behind those that are in front of it."""

    def rank(i):
        key = f.read(word, keys, i)

        def count(j, total):
            other = f.read(word, keys, j)
            less = f.emit(f"icmp ult {word} {other}, {key}")
            equal = f.emit(f"icmp eq {word} {other}, {key}")
            before = f.emit(f"and i1 {equal}, {f.emit(f'icmp ult i64 {j}, {i}')}")
            front = f.emit(f"zext i1 {f.emit(f'or i1 {less}, {before}')} to i64")
            return [f.emit(f"add i64 {total[0]}, {front}")]

        [place] = f.loop("%n", [("i64", "0")], count)
        f.put("i32", f.read("i32", "%places", i), new_places, place)

    f.each("%n", rank)
    write_copy(f, new_places)


def order_text(word):
    """Return the text of a function that rearranges places by the words there."""
    f, size = SortText(), bits_of(word) // 8
    counts = f.emit("bitcast i8* %space to i32*")
    start = f.emit(f"getelementptr i8, i8* %space, i64 {COUNTS_BYTES}")
    keys = f.emit(f"bitcast i8* {start} to {word}*")
    new_keys = f.emit(f"getelementptr {word}, {word}* {keys}, i64 %padded")
    end = f.emit(f"getelementptr {word}, {word}* {new_keys}, i64 %padded")
    new_places = f.emit(f"bitcast {word}* {end} to i32*")

    def gather(i):
        place = f.index("i32", f.read("i32", "%places", i))
        f.put(word, f.read(word, "%words", place), keys, i)

    f.each("%n", gather)
    few = f.emit(f"icmp ule i64 %n, {FEW}")
    many = f.emit(f"xor i1 {few}, true")
    f.when(few, lambda: write_few(f, word, keys, new_places))
    now, later = (keys, "%places"), (new_keys, new_places)
    f.when(many, lambda: write_passes(f, word, now, later, counts))
    params = f"i64 %n, i64 %padded, {word}* %words, i32* %places, i8* %space"
    return text_of(f, "void", f"sort_places_{size}", params)


def take_text(word):
    """Return the text of a function that moves elements to where places say."""
    f = SortText()

    def take(i):
        place = f.index("i32", f.read("i32", "%places", i))
        f.put(word, f.read(word, "%from", place), "%to", i)

    f.each("%n", take)
    params = f"i64 %n, {word}* %from, i32* %places, {word}* %to"
    return text_of(f, "void", f"sort_take_{bits_of(word) // 8}", params)


def workspace(n, size):
    """Return how many bytes `order_text` needs for n words of so many bytes."""
    return COUNTS_BYTES + padded(n) * (2 * size + 4)


def padded(n):
    """Return n, or a little more, so that what lies behind n words is aligned."""
    return -(-n // 64) * 64


@made_once
def sort_library(size, target):
    """Return the machine code for elements of some bytes; it stays for good."""
    word = f"i{8 * size}"
    texts = [take_text(word)]
    if size <= 8:
        texts += [pass_text(word), order_text(word)]
    return TargetLibrary("\n\n".join(texts), target)


def sort_address(name, size, target):
    """Return the address of a function: ``sort_places`` or ``sort_take``."""
    engine = sort_library(size, target).engine
    return engine.get_function_address(f"{name}_{size}")
