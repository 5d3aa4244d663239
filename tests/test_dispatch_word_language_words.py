"""The language of words: as Python, and as machine code, it does the same."""

import ast
import ctypes
import random
from types import SimpleNamespace

import numpy as np
import pytest

from minijax.dispatch.word_language import (
    LowLevelLibrary,
    alloca,
    call_pointer,
    f64_to_f32_bits,
    i64,
    llvm_text,
    syntax_tree,
    u8,
    u32,
)
from tests import word_programs
from tests.commands import blocks

LIMIT = 5


def compiled(*functions):
    library = LowLevelLibrary(llvm_text(*functions))
    name, arity = functions[-1].__name__, functions[-1].__code__.co_argcount
    kind = ctypes.CFUNCTYPE(*[ctypes.c_int64] * (1 + arity))
    found = kind(library.place(name))
    found.library = library
    return found


def arithmetic(a, b):
    """Every operation on numbers."""
    c = (a + b) * (a - b) | (a & b)
    c += (a << 3) + (b >> 2)
    return c * -1 + (a < b) + 2 * (a <= b) + 4 * (a == b) + 8 * (a != b) + 16 * (a > b)


def conditions(a, b):
    if a < b and not (a == 3 or b == LIMIT):
        return 1
    elif (a >= b or a == 2) and b != 0:
        if a:
            return 2
    else:
        b = 7
    return b


def loops(a, b):
    total = 0
    while a > 0 and total < 1000:
        i = 0
        while i < b:
            total += i * a
            i += 1
        a -= 1
    return total


def twice(a):
    return 2 * a


def calls(a, b):
    if a <= 0:
        return twice(b)
    return calls(a - 1, b + twice(a))


def memory(a, b):
    place = alloca(2)
    i64[place] = a
    i64[place + 8] = 0
    u32[place + 8] = b
    u32[place + 12] = 1
    u8[place] = 255
    return i64[place] + i64[place + 8] + u32[place + 8] + u8[place + 1]


def changed(a, b):
    """Parameters, some of which change."""
    if a > b:
        a = b
    return 3 * a + b


PROGRAMS = [
    (changed,),
    (arithmetic,),
    (conditions,),
    (loops,),
    (twice, calls),
    (memory,),
]


@pytest.mark.parametrize("functions", PROGRAMS, ids=lambda fs: fs[-1].__name__)
def test_python_and_machine_code_agree(functions):
    machine, python = compiled(*functions), functions[-1]
    chance = random.Random(0)
    for a in range(-3, 8):
        for b in (*range(8), chance.randrange(2**20)):
            assert machine(a, b) == python(a, b), (a, b)


def test_functions_of_c():
    def through(address, x):
        return call_pointer(address, x)

    function = ctypes.PYFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(lambda x: x * 3)
    address = ctypes.cast(function, ctypes.c_void_p).value
    assert compiled(through)(address, 14) == through(address, 14) == 42


@pytest.mark.parametrize("x", [0.1, -2.5, 0.0, -0.0, 1e300, 5e-324, np.inf, np.nan])
def test_narrow_floats(x):
    def narrowed(bits):
        return f64_to_f32_bits(bits)

    bits = int(np.array(x).view(np.int64))
    with np.errstate(over="ignore"):
        expected = int(np.array(x).astype(np.float32).view(np.uint32))
    assert compiled(narrowed)(bits) == expected == narrowed(bits)


def test_functions_without_text():
    namespace = {}
    exec("def f(x):\n    return x", namespace)
    with pytest.raises(OSError, match="text"):
        llvm_text(namespace["f"])


def test_functions_that_can_be_called_from_outside():
    inside = llvm_text(calls)
    outside = llvm_text(twice, calls)
    assert "define internal i64 @twice" in inside and "define i64 @calls" in inside
    assert "internal" not in outside
    assert LowLevelLibrary(outside).place("twice")


def test_another_thread_parses_meanwhile(monkeypatch):
    """What Python 3.11 says then is no fault of the text."""
    parse, calls = ast.parse, []

    def disturbed(text):
        calls.append(text)
        if len(calls) < 3:
            raise SystemError("AST constructor recursion depth mismatch")
        return parse(text)

    monkeypatch.setattr(ast, "parse", disturbed)
    assert ast.dump(syntax_tree("x = 1")) == ast.dump(parse("x = 1"))
    assert len(calls) == 3
    with pytest.raises(SyntaxError):
        syntax_tree("x =")


Place = SimpleNamespace(second=8)


def second(table):
    return i64[table + Place.second]


def of_second(table):
    return second(table) + 1


def test_places_in_tables_have_names():
    numbers = np.array([3, 40], np.int64)
    assert of_second(numbers.ctypes.data) == 41
    assert compiled(of_second)(numbers.ctypes.data) == 41


def test_what_a_function_calls_is_found():
    text = llvm_text(of_second)
    assert "define i64 @of_second" in text
    assert text.count("define internal i64 @second") == 1


@pytest.mark.parametrize("seed", blocks(3, 60))
def test_random_functions(seed):
    """Machine code wraps around as words do; what is not of the language is refused."""
    each = range(25 * seed, 25 * seed + 25)
    assert not [text for number in each for text in word_programs.problems(number)]


@pytest.mark.parametrize("line", word_programs.EXPRESSIONS)
def test_what_is_refused(line):
    text = f"def f(a, b):\n    c = {line}\n    late = 1\n    return late\n"
    function = word_programs.as_words(text, word_programs.surroundings())
    with pytest.raises(SyntaxError) as caught:
        llvm_text(function)
    assert caught.value.lineno == 2 and "(in f)" in str(caught.value)


def two_at_a_time(a):
    i64[moved(a)] += 1
    return i64[a]


def moved(a):
    i64[a] = i64[a] + 8
    return i64[a]


def test_an_address_is_computed_once():
    for function in (two_at_a_time, compiled(two_at_a_time)):
        numbers = np.zeros(4, np.int64)
        numbers[0] = numbers.ctypes.data
        function(numbers.ctypes.data)
        assert [*numbers - [numbers.ctypes.data, 0, 0, 0]] == [8, 1, 0, 0]


def test_two_functions_of_one_name():
    first, second = (namesake(number) for number in (2, 3))
    with pytest.raises(SyntaxError, match="another function has this name"):
        llvm_text(first, second)


def namesake(number):
    """Return one of several functions that all have one name."""
    text = f"def same(a):\n    return {number} * a\n"
    return word_programs.as_words(text, {}, "same")
