"""Vectors from memory and into it: in a row, backwards, spread out, behind masks."""

# Made from chapters/18_llvm_ground.md by `make chapter`;
# edit the chapter, not this file.

import functools

from minijax.arrays.dtypes import short_name
from minijax.kernels.parts import Parameter
from minijax.kernels.scalar_ops import in_registers
from minijax.llvm.halves import OWN_HALVES, half_function
from minijax.llvm.instructions import filled
from minijax.llvm.types import (
    number_text,
    pointer_to,
    splat,
    suffix,
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
    return f.choose(chosen, x, other, kind, lanes) if chosen else x


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
            scalar = f.all_of([scalar, fits])
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
        return flip(f, kind, read_row(f, kind, start, f.lanes, mask))
    varies = mask if mask != f.living() else None
    start = f.address(parameter, place, numbers)
    if varies or not 1 < stride <= 4:
        return gather(f, kind, start, parameter, stride, varies)
    return read_comb(f, kind, start, stride)


def read_early(f, kind, address, mask):
    """Write the load of neighbours in a parameter where it is known which, and once."""
    depth = max(f.depths.get(name, 0) for name in (address, mask))
    key = "row", address, mask, f.lanes
    return f.written(key, depth, lambda: read_row(f, kind, address, f.lanes, mask))


def read_one(f, parameter, address, scalar, mask):
    """Write the load of one element; of the first, where no lane asks for one."""
    kind = type_in_memory(parameter.dtype)
    scalar = f.all_of([scalar, mask and f.any_of(mask, f.lanes)])
    return f.load(kind, address_if(f, parameter, scalar, address))


def address_if(f, parameter, condition, address):
    """Write the choice of an address, or of that of the first element of all."""
    if not condition:
        return address
    kind = pointer_to(type_in_memory(parameter.dtype))
    return f.choose(condition, address, f"%{parameter.name}", kind)


def gather(f, kind, start, parameter, stride, mask, ahead=None):
    """Write the load of elements one by one; a masked lane takes the first of all."""
    x = "undef"
    for lane in range(f.live):
        here = lane_address(f, kind, start, stride, ahead, lane)
        bit = mask and f.element("i1", mask, f.lanes, lane)
        element = f.load(kind, address_if(f, parameter, bit, here))
        x = f.with_element(kind, x, f.lanes, lane, element)
    return x


def lane_address(f, kind, start, stride, ahead, lane):
    """Write the address of the element of a lane."""
    here = f.at(kind, start, stride * lane)
    return f.at(kind, here, f.element("i64", ahead, f.lanes, lane)) if ahead else here


def read_comb(f, kind, start, stride):
    """Write the load of all elements between some, of which those in between go."""
    lanes, live, wide = f.lanes, f.live, f.lanes * stride
    f.lanes, f.live = wide, (live - 1) * stride + 1
    x = read_row(f, kind, start, wide, f.living())
    f.lanes, f.live = lanes, live
    return f.shuffle(kind, x, "undef", range(0, wide, stride), wide)


def read_row(f, kind, address, lanes, mask=None):
    """Write the load of neighbours, or of a number for no lanes."""
    if not mask:
        return f.load(kind, address, lanes)
    pointer = f.cast(kind, address, vector_type(kind, lanes))
    return read_some(f, kind, pointer, lanes, mask)


def read_some(f, kind, pointer, lanes, mask):
    """Write the load of those neighbours that a mask lets through."""
    vector, name = vector_type(kind, lanes), suffix(kind, lanes)
    bools, other = (f"<{lanes} x i1>", mask), (vector, "zeroinitializer")
    where = (f"{vector}*", pointer), ("i32", width_of(kind))
    return f.call(vector, f"llvm.masked.load.{name}.p0{name}", *where, bools, other)


def write_row(f, kind, address, x, lanes, mask=None):
    """Write the store of neighbours, or of a number for no lanes."""
    if not mask:
        return f.store(kind, x, address, lanes)
    if f.live == 1:
        return write_first(f, kind, address, x)
    pointer = f.cast(kind, address, vector_type(kind, lanes))
    return write_some(f, kind, pointer, x, lanes, mask)


def write_some(f, kind, pointer, x, lanes, mask):
    """Write the store of those neighbours that a mask lets through."""
    vector, name = vector_type(kind, lanes), suffix(kind, lanes)
    where = (f"{vector}*", pointer), ("i32", width_of(kind))
    some = (vector, x), *where, (f"<{lanes} x i1>", mask)
    return f.call("void", f"llvm.masked.store.{name}.p0{name}", *some)


def write_first(f, kind, address, x):
    """Write the store of the number in the first lane.

    A mask of this lane alone will not do: on processors with AVX-512, LLVM 22.1 then
    stores the number as it was before it was narrowed, over what lies behind it.
    """
    f.store(kind, f.element(kind, x, f.lanes, 0), address)


def flip(f, kind, x):
    """Write a vector with the lanes that count in the opposite order."""
    order = [*range(f.live - 1, -1, -1), *[f.lanes] * (f.lanes - f.live)]
    return f.shuffle(kind, x, "zeroinitializer", order, f.lanes)


def write_store(f, parameter, place, x):
    """Write the store of a scalar, or of a vector along which the place moves."""
    kind, stride = type_in_memory(parameter.dtype), f.along(place)
    x = to_memory(f, parameter.dtype, x, f.lanes)
    if not f.lanes or stride == 1:
        write_row(f, kind, f.address(parameter, place), x, f.lanes, f.living())
    elif stride == -1:
        first = f.address(parameter, place._replace(offset=place.offset - f.live + 1))
        write_row(f, kind, first, flip(f, kind, x), f.lanes, f.living())
    else:
        start = f.address(parameter, place)
        for lane in range(f.live):
            element = f.element(kind, x, f.lanes, lane)
            f.store(kind, element, lane_address(f, kind, start, stride, None, lane))


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
    kind, number = type_in_memory(parameter.dtype), type_of(node.dtype)
    scalar, mask = within(f, update.at, update.terms)
    numbers, ahead = computed(f, update.at, update.terms)
    start, x = f.address(parameter, place, numbers), f.operand(node, f.lanes)
    mask = mask and f.masked(mask, scalar and f.wide("i1", scalar, f.lanes))

    def write(lane):
        here = lane_address(f, kind, start, f.along(place), ahead, lane)
        write_entry(f, store, here, f.element(number, x, f.lanes, lane), 0)

    for lane in range(f.live if parameter.size else 0):
        inside = f.element("i1", mask, f.lanes, lane) if mask else scalar
        write_if(f, inside, functools.partial(write, lane))


def write_if(f, condition, write):
    """Write what is done under a condition, or always if it is None."""
    return f.when(condition, write) if condition else write()


def write_entry(f, store, address, x, lanes):
    """Write how a number, or neighbours, enter what is at an address."""
    dtype, how = store.parameter.dtype, store.update.how
    kind, wide = type_in_memory(dtype), in_registers(dtype)
    mask = f.living() if lanes else None
    if how != "set":
        old = from_memory(f, dtype, read_row(f, kind, address, lanes, mask), lanes)
        x = f.operation(how, [old, x], wide, wide, lanes)
    write_row(f, kind, address, to_memory(f, dtype, x, lanes), lanes, mask)


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
    kind, address = _own(f, key, dtype, place, size + lanes)
    f.store(kind, to_memory(f, dtype, x, lanes), address, lanes)


def read_own(f, key, dtype, place, size, lanes):
    """Write the load of a scalar or of neighbours from memory of the function."""
    kind, address = _own(f, key, dtype, place, size + lanes)
    return from_memory(f, dtype, f.load(kind, address, lanes), lanes)


def _own(f, key, dtype, place, size):
    kind = type_in_memory(dtype)
    start = f.scratch(key, kind, size)
    return kind, f.address(Parameter(start.removeprefix("%"), dtype, size), place)
