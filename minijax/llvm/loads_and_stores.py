# Made from chapters/17_llvm_upper.md by `make chapter`;
# edit the chapter, not this file.
"""Vectors from memory and into it: in a row, backwards, spread out, behind masks."""

from minijax.arrays.dtypes import short_name
from minijax.kernels.kernel import Buffer
from minijax.kernels.scalar_ops import in_registers
from minijax.llvm.halves import half_function
from minijax.llvm.lanes import steps
from minijax.llvm.types import (
    listed,
    number_text,
    splat,
    type_in_memory,
    type_of,
    vector_type,
    width_of,
)


def write_load(f, buffer, place, guards, other):
    """Write a load; return the name of a scalar, or of a vector if it varies."""
    varies = any(f.along(p) for p in [place, *[guard.place for guard in guards]])
    lanes, kind = f.lanes if varies else 0, type_of(buffer.dtype)
    other = splat(kind, number_text(other), lanes)
    if buffer.size == 0:
        return other
    scalar, mask = f.inside(guards)
    if f.along(place):
        chosen = f.masked(mask, scalar and f.wide("i1", scalar, lanes))
        x = read(f, buffer, place, f.masked(chosen, f.living()))
    else:
        x = read_one(f, buffer, place, scalar, mask)
        chosen = f.masked(mask, scalar and f.wide("i1", scalar, lanes))
        x = f.wide(type_in_memory(buffer.dtype), x, lanes)
    x = from_memory(f, buffer.dtype, x, lanes)
    if not chosen:
        return x
    vector = vector_type(kind, lanes)
    choose = f"{vector_type('i1', lanes)} {chosen or scalar}"
    return f.emit(f"select {choose}, {vector} {x}, {vector} {other}")


def read(f, buffer, place, mask):
    """Write the load of an element for each lane that `mask` lets through."""
    kind, stride = type_in_memory(buffer.dtype), f.along(place)
    if stride == 1:
        return read_early(f, kind, f.address(buffer, place), mask)
    if stride == -1:
        first = place._replace(offset=place.offset - f.live + 1)
        mask = mask and flip(f, "i1", mask)
        return flip(f, kind, read_row(f, kind, f.address(buffer, first), mask))
    varies = mask if mask != f.living() else None
    if varies or not 1 < stride <= 4:
        return gather(f, kind, f.address(buffer, place), buffer, stride, varies)
    return read_comb(f, kind, f.address(buffer, place), stride)


def read_early(f, kind, address, mask):
    """Write the load of neighbours in a buffer where it is known which, and once."""
    depth = max(f.depths.get(name, 0) for name in (address, mask))
    key = "row", address, mask, f.lanes
    return f.written(key, depth, lambda: read_row(f, kind, address, mask))


def read_one(f, buffer, place, scalar, mask):
    """Write the load of one element; of the first, where no lane asks for one."""
    kind = type_in_memory(buffer.dtype)
    address = f.address(buffer, place)
    if mask:
        bools = vector_type("i1", f.lanes)
        mask = f.call("i1", f"llvm.vector.reduce.or.v{f.lanes}i1", (bools, mask))
        scalar = f.emit(f"and i1 {scalar}, {mask}") if scalar else mask
    if scalar:
        choice = f"{kind}* {address}, {kind}* %{buffer.name}"
        address = f.emit(f"select i1 {scalar}, {choice}", "p")
    return f.emit(f"load {kind}, {kind}* {address}", "e")


def gather(f, kind, start, buffer, stride, mask):
    """Write the load of elements one by one; a masked lane takes the buffer's first."""
    vector, x = vector_type(kind, f.lanes), "undef"
    for lane in range(f.live):
        text = f"getelementptr {kind}, {kind}* {start}, i64 {stride * lane}"
        here = f.emit(text, "p")
        if mask:
            bit = f.emit(f"extractelement <{f.lanes} x i1> {mask}, i32 {lane}", "g")
            choice = f"{kind}* {here}, {kind}* %{buffer.name}"
            here = f.emit(f"select i1 {bit}, {choice}", "p")
        element = f.emit(f"load {kind}, {kind}* {here}", "e")
        x = f.emit(f"insertelement {vector} {x}, {kind} {element}, i32 {lane}", "x")
    return x


def read_comb(f, kind, start, stride):
    """Write the load of all elements between some, of which those in between go."""
    lanes, live = f.lanes, f.live
    f.lanes, f.live = lanes * stride, (live - 1) * stride + 1
    vector, x = vector_type(kind, f.lanes), read_row(f, kind, start, f.living())
    f.lanes, f.live = lanes, live
    places = f"<{lanes} x i32> {steps('i32', lanes, stride)}"
    return f.emit(f"shufflevector {vector} {x}, {vector} undef, {places}", "x")


def read_row(f, kind, address, mask):
    """Write the load of neighbours."""
    vector, width = vector_type(kind, f.lanes), width_of(kind)
    pointer = f.emit(f"bitcast {kind}* {address} to {vector}*", "p")
    if not mask:
        return f.emit(f"load {vector}, {vector}* {pointer}, align {width}", "x")
    name = _suffix(kind, f.lanes)
    bools, other = (f"<{f.lanes} x i1>", mask), (vector, "zeroinitializer")
    where = (f"{vector}*", pointer), ("i32", width)
    return f.call(vector, f"llvm.masked.load.{name}.p0{name}", *where, bools, other)


def write_row(f, kind, address, x, mask):
    """Write the store of neighbours."""
    if mask and f.live == 1:
        return write_first(f, kind, address, x)
    vector, width = vector_type(kind, f.lanes), width_of(kind)
    pointer = f.emit(f"bitcast {kind}* {address} to {vector}*", "p")
    if not mask:
        return f.line(f"store {vector} {x}, {vector}* {pointer}, align {width}")
    name = _suffix(kind, f.lanes)
    where = (f"{vector}*", pointer), ("i32", width), (f"<{f.lanes} x i1>", mask)
    return f.call("void", f"llvm.masked.store.{name}.p0{name}", (vector, x), *where)


def write_first(f, kind, address, x):
    """Write the store of the number in the first lane.

    A mask of this lane alone will not do: on processors with AVX-512, LLVM 22.1 then
    stores the number as it was before it was narrowed, over what lies behind it.
    """
    x = f.emit(f"extractelement {vector_type(kind, f.lanes)} {x}, i32 0", "e")
    f.line(f"store {kind} {x}, {kind}* {address}")


def _suffix(kind, lanes):
    return f"v{lanes}{'f' if kind in ('float', 'double') else 'i'}{8 * width_of(kind)}"


def flip(f, kind, x):
    """Write a vector with the lanes that count in the opposite order."""
    vector = vector_type(kind, f.lanes)
    order = [*range(f.live - 1, -1, -1), *[f.lanes] * (f.lanes - f.live)]
    places = f"<{f.lanes} x i32> {listed('i32', order)}"
    pair = f"{vector} {x}, {vector} zeroinitializer"
    return f.emit(f"shufflevector {pair}, {places}", "x")


def write_store(f, buffer, place, x):
    """Write the store of a scalar, or of a vector along which the place moves."""
    kind, stride = type_in_memory(buffer.dtype), f.along(place)
    x = to_memory(f, buffer.dtype, x, f.lanes)
    if not f.lanes:
        f.line(f"store {kind} {x}, {kind}* {f.address(buffer, place)}")
    elif stride == 1:
        write_row(f, kind, f.address(buffer, place), x, f.living())
    elif stride == -1:
        first = place._replace(offset=place.offset - f.live + 1)
        write_row(f, kind, f.address(buffer, first), flip(f, kind, x), f.living())
    else:
        start, vector = f.address(buffer, place), vector_type(kind, f.lanes)
        for lane in range(f.live):
            element = f.emit(f"extractelement {vector} {x}, i32 {lane}", "e")
            here = f"getelementptr {kind}, {kind}* {start}, i64 {stride * lane}"
            f.line(f"store {kind} {element}, {kind}* {f.emit(here, 'p')}")


def from_memory(f, dtype, x, lanes):
    """Write what makes numbers of elements in memory; return their name."""
    if dtype.kind == "b":
        kind = vector_type("i8", lanes)
        return f.emit(f"icmp ne {kind} {x}, {splat('i8', '0', lanes)}")
    if dtype == in_registers(dtype):
        return x
    return _half(f, f"from_{short_name(dtype)}", x, lanes)


def to_memory(f, dtype, x, lanes):
    """Write what makes elements in memory of numbers; return their name."""
    if dtype.kind == "b":
        return f.emit(
            f"zext {vector_type('i1', lanes)} {x} to {vector_type('i8', lanes)}"
        )
    if dtype == in_registers(dtype):
        return x
    return _half(f, f"to_{short_name(dtype)}", x, lanes)


def _half(f, name, x, lanes):
    """Write the call of one of the conversions of narrow floats."""
    old, new = ("i16", "float") if name.startswith("from") else ("float", "i16")
    label, text = half_function(name, lanes)
    result = f.call(vector_type(new, lanes), label, (vector_type(old, lanes), x))
    f.needed[label] = text
    return result


def write_own(f, key, dtype, place, size, x, lanes):
    """Write the store of a scalar or of neighbours into memory of the function."""
    kind = type_in_memory(dtype)
    start = f.scratch(key, kind, size + lanes)
    address = f.address(Buffer(start.removeprefix("%"), dtype, size), place)
    x = to_memory(f, dtype, x, lanes)
    if lanes:
        write_row(f, kind, address, x, None)
    else:
        f.line(f"store {kind} {x}, {kind}* {address}")


def read_own(f, key, dtype, place, size, lanes):
    """Write the load of a scalar or of neighbours from memory of the function."""
    kind = type_in_memory(dtype)
    start = f.scratch(key, kind, size + lanes)
    address = f.address(Buffer(start.removeprefix("%"), dtype, size), place)
    if lanes:
        x = read_row(f, kind, address, None)
    else:
        x = f.emit(f"load {kind}, {kind}* {address}", "e")
    return from_memory(f, dtype, x, lanes)
