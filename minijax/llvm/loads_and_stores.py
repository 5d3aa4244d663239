# Made from chapters/18_llvm_ground.md by `make chapter`;
# edit the chapter, not this file.
"""Vectors from memory and into it: in a row, backwards, spread out, behind masks."""

import functools

from minijax.arrays.dtypes import short_name
from minijax.kernels.parts import Parameter
from minijax.kernels.scalar_ops import in_registers
from minijax.llvm.halves import OWN_HALVES, half_function
from minijax.llvm.instructions import filled
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


def write_load(f, parameter, place, guards, other, terms=(), args=()):
    """Write a load; return the name of a scalar, or of a vector if it varies.

    Args:
      f: the text of the kernel.
      parameter, place, guards, other, terms: as in a `Load`.
      args: the nodes of the terms' numbers.
    """
    varies = any(f.along(p) for p in [place, *[guard.place for guard in guards]])
    lanes = f.lanes if varies or any(map(f.lanes_of, args)) else 0
    kind = type_of(parameter.dtype)
    other = splat(kind, number_text(other), lanes)
    if parameter.size == 0:
        return other
    scalar, mask = within(f, args, terms, *f.inside(guards))
    numbers, ahead = computed(f, args, terms)
    if f.along(place) or ahead:
        chosen = f.masked(mask, scalar and f.wide("i1", scalar, lanes))
        x = read(f, parameter, place, f.masked(chosen, f.living()), numbers, ahead)
    else:
        x = read_one(f, parameter, f.address(parameter, place, numbers), scalar, mask)
        chosen = f.masked(mask, scalar and f.wide("i1", scalar, lanes))
        x = f.wide(type_in_memory(parameter.dtype), x, lanes)
    x = from_memory(f, parameter.dtype, x, lanes)
    if not chosen:
        return x
    vector = vector_type(kind, lanes)
    choose = f"{vector_type('i1', lanes)} {chosen or scalar}"
    return f.emit(f"select {choose}, {vector} {x}, {vector} {other}")


def within(f, numbers, terms, scalar=None, mask=None):
    """Write whether computed numbers keep the limits of their terms.

    Args:
      f: the text of the kernel.
      numbers: nodes.
      terms: tuple of `Term`.
      scalar, mask: what there is to say besides, or None.

    Returns:
      A bool and a mask, None for what does not occur.
    """
    for number, term in zip(numbers, terms):
        lanes = f.lanes_of(number)
        limit = splat("i64", str(term.limit), lanes)
        kind, name = vector_type("i64", lanes), f.names[number]
        fits = f.emit(f"icmp ult {kind} {name}, {limit}", "g")
        if lanes:
            mask = f.masked(mask, fits)
        else:
            scalar = f.emit(f"and i1 {scalar}, {fits}", "g") if scalar else fits
    return scalar, mask


def computed(f, numbers, terms):
    """Return the computed terms of all lanes, and the name of those of each, or None.

    The first are pairs of a name and a factor.
    """
    pairs = [(number, term.stride) for number, term in zip(numbers, terms)]
    alike = [(f.names[x], stride) for x, stride in pairs if not f.lanes_of(x)]
    kind, total = vector_type("i64", f.lanes), None
    for number, stride in [pair for pair in pairs if f.lanes_of(pair[0])]:
        factor = splat("i64", str(stride), f.lanes)
        x = f.emit(f"mul {kind} {f.names[number]}, {factor}")
        total = f.emit(f"add {kind} {total}, {x}") if total else x
    return alike, total


def read(f, parameter, place, mask, numbers=(), ahead=None):
    """Write the load of an element for each lane that `mask` lets through.

    Args:
      f: the text of the kernel.
      parameter: what is read.
      place: an `Affine`.
      mask: a mask, or None.
      numbers: computed terms of the place, as for `split`.
      ahead: the name of numbers, one for each lane, which are added to the place.
    """
    kind, stride = type_in_memory(parameter.dtype), f.along(place)
    if ahead:
        start = f.address(parameter, place, numbers)
        return gather(f, kind, start, parameter, stride, mask, ahead)
    if stride == 1:
        return read_early(f, kind, f.address(parameter, place, numbers), mask)
    if stride == -1:
        first = place._replace(offset=place.offset - f.live + 1)
        mask = mask and flip(f, "i1", mask)
        start = f.address(parameter, first, numbers)
        return flip(f, kind, read_row(f, kind, start, mask))
    varies = mask if mask != f.living() else None
    start = f.address(parameter, place, numbers)
    if varies or not 1 < stride <= 4:
        return gather(f, kind, start, parameter, stride, varies)
    return read_comb(f, kind, start, stride)


def read_early(f, kind, address, mask):
    """Write the load of neighbours in a parameter where it is known which, and once."""
    depth = max(f.depths.get(name, 0) for name in (address, mask))
    key = "row", address, mask, f.lanes
    return f.written(key, depth, lambda: read_row(f, kind, address, mask))


def read_one(f, parameter, address, scalar, mask):
    """Write the load of one element; of the first, where no lane asks for one."""
    kind = type_in_memory(parameter.dtype)
    if mask:
        bools = vector_type("i1", f.lanes)
        mask = f.call("i1", f"llvm.vector.reduce.or.v{f.lanes}i1", (bools, mask))
        scalar = f.emit(f"and i1 {scalar}, {mask}") if scalar else mask
    if scalar:
        choice = f"{kind}* {address}, {kind}* %{parameter.name}"
        address = f.emit(f"select i1 {scalar}, {choice}", "p")
    return f.emit(f"load {kind}, {kind}* {address}", "e")


def gather(f, kind, start, parameter, stride, mask, ahead=None):
    """Write the load of elements one by one; a masked lane takes the first of all."""
    vector, x = vector_type(kind, f.lanes), "undef"
    for lane in range(f.live):
        here = lane_address(f, kind, start, stride, ahead, lane)
        if mask:
            bit = f.emit(f"extractelement <{f.lanes} x i1> {mask}, i32 {lane}", "g")
            choice = f"{kind}* {here}, {kind}* %{parameter.name}"
            here = f.emit(f"select i1 {bit}, {choice}", "p")
        element = f.emit(f"load {kind}, {kind}* {here}", "e")
        x = f.emit(f"insertelement {vector} {x}, {kind} {element}, i32 {lane}", "x")
    return x


def lane_address(f, kind, start, stride, ahead, lane):
    """Write the address of the element of a lane."""
    here = f.emit(f"getelementptr {kind}, {kind}* {start}, i64 {stride * lane}", "p")
    if not ahead:
        return here
    far = f.emit(f"extractelement <{f.lanes} x i64> {ahead}, i32 {lane}", "o")
    return f.emit(f"getelementptr {kind}, {kind}* {here}, i64 {far}", "p")


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
    return read_some(f, kind, pointer, f.lanes, mask)


def read_some(f, kind, pointer, lanes, mask):
    """Write the load of those neighbours that a mask lets through."""
    vector, name = vector_type(kind, lanes), _suffix(kind, lanes)
    bools, other = (f"<{lanes} x i1>", mask), (vector, "zeroinitializer")
    where = (f"{vector}*", pointer), ("i32", width_of(kind))
    return f.call(vector, f"llvm.masked.load.{name}.p0{name}", *where, bools, other)


def write_row(f, kind, address, x, mask):
    """Write the store of neighbours."""
    if mask and f.live == 1:
        return write_first(f, kind, address, x)
    vector, width = vector_type(kind, f.lanes), width_of(kind)
    pointer = f.emit(f"bitcast {kind}* {address} to {vector}*", "p")
    if not mask:
        return f.line(f"store {vector} {x}, {vector}* {pointer}, align {width}")
    return write_some(f, kind, pointer, x, f.lanes, mask)


def write_some(f, kind, pointer, x, lanes, mask):
    """Write the store of those neighbours that a mask lets through."""
    vector, name = vector_type(kind, lanes), _suffix(kind, lanes)
    where = (f"{vector}*", pointer), ("i32", width_of(kind))
    some = (vector, x), *where, (f"<{lanes} x i1>", mask)
    return f.call("void", f"llvm.masked.store.{name}.p0{name}", *some)


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


def write_store(f, parameter, place, x):
    """Write the store of a scalar, or of a vector along which the place moves."""
    kind, stride = type_in_memory(parameter.dtype), f.along(place)
    x = to_memory(f, parameter.dtype, x, f.lanes)
    if not f.lanes:
        f.line(f"store {kind} {x}, {kind}* {f.address(parameter, place)}")
    elif stride == 1:
        write_row(f, kind, f.address(parameter, place), x, f.living())
    elif stride == -1:
        first = place._replace(offset=place.offset - f.live + 1)
        write_row(f, kind, f.address(parameter, first), flip(f, kind, x), f.living())
    else:
        start, vector = f.address(parameter, place), vector_type(kind, f.lanes)
        for lane in range(f.live):
            element = f.emit(f"extractelement {vector} {x}, i32 {lane}", "e")
            here = f"getelementptr {kind}, {kind}* {start}, i64 {stride * lane}"
            f.line(f"store {kind} {element}, {kind}* {f.emit(here, 'p')}")


def write_update(f, store):
    """Write a store at computed places; what is outside of a limit is dropped."""
    parameter, place, node, update = store
    if f.lanes and (f.along(place) != 1 or any(map(f.lanes_of, update.at))):
        return write_each(f, store)
    inside, _ = within(f, update.at, update.terms)
    numbers, _ = computed(f, update.at, update.terms)

    def write():
        address = f.address(parameter, place, numbers)
        write_entry(f, store, address, f.operand(node, f.lanes), f.lanes)

    if parameter.size:
        write_if(f, inside, write)


def write_each(f, store):
    """Write a store at computed places, one lane after the other."""
    parameter, place, node, update = store
    kind = type_in_memory(parameter.dtype)
    vector = vector_type(type_of(node.dtype), f.lanes)
    scalar, mask = within(f, update.at, update.terms)
    numbers, ahead = computed(f, update.at, update.terms)
    start, x = f.address(parameter, place, numbers), f.operand(node, f.lanes)
    mask = mask and f.masked(mask, scalar and f.wide("i1", scalar, f.lanes))

    def write(lane):
        here = lane_address(f, kind, start, f.along(place), ahead, lane)
        element = f.emit(f"extractelement {vector} {x}, i32 {lane}", "e")
        write_entry(f, store, here, element, 0)

    for lane in range(f.live if parameter.size else 0):
        bit = f"extractelement <{f.lanes} x i1> {mask}, i32 {lane}"
        inside = f.emit(bit, "g") if mask else scalar
        write_if(f, inside, functools.partial(write, lane))


def write_if(f, condition, write):
    """Write what is done under a condition, or always if it is None."""
    return f.when(condition, write) if condition else write()


def write_entry(f, store, address, x, lanes):
    """Write how a number, or neighbours, enter what is at an address."""
    dtype, how = store.parameter.dtype, store.update.how
    kind, wide = type_in_memory(dtype), in_registers(dtype)
    if how != "set":
        load = f"load {kind}, {kind}* {address}"
        old = read_row(f, kind, address, f.living()) if lanes else f.emit(load, "e")
        pair = [from_memory(f, dtype, old, lanes), x]
        x = f.operation(how, pair, wide, wide, lanes)
    x = to_memory(f, dtype, x, lanes)
    if lanes:
        write_row(f, kind, address, x, f.living())
    else:
        f.line(f"store {kind} {x}, {kind}* {address}")


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
    """Write one of the conversions of narrow floats, or the call of its function."""
    if f.halves and name in OWN_HALVES:
        return f.instructions(filled(OWN_HALVES[name], lanes), [x])
    old, new = ("i16", "float") if name.startswith("from") else ("float", "i16")
    label, text = half_function(name, lanes)
    result = f.call(vector_type(new, lanes), label, (vector_type(old, lanes), x))
    f.needed[label] = text
    return result


def write_own(f, key, dtype, place, size, x, lanes):
    """Write the store of a scalar or of neighbours into memory of the function."""
    kind = type_in_memory(dtype)
    start = f.scratch(key, kind, size + lanes)
    address = f.address(Parameter(start.removeprefix("%"), dtype, size), place)
    x = to_memory(f, dtype, x, lanes)
    if lanes:
        write_row(f, kind, address, x, None)
    else:
        f.line(f"store {kind} {x}, {kind}* {address}")


def read_own(f, key, dtype, place, size, lanes):
    """Write the load of a scalar or of neighbours from memory of the function."""
    kind = type_in_memory(dtype)
    start = f.scratch(key, kind, size + lanes)
    address = f.address(Parameter(start.removeprefix("%"), dtype, size), place)
    if lanes:
        x = read_row(f, kind, address, None)
    else:
        x = f.emit(f"load {kind}, {kind}* {address}", "e")
    return from_memory(f, dtype, x, lanes)
