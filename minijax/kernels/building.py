"""Writing kernels: from views of arrays to loads, operations and stores."""

# Made from chapters/17_kernels_rest.md by `make chapter`;
# edit the chapter, not this file.

import functools
from typing import NamedTuple

from minijax._registry import Registry
from minijax.arrays.checks import to_complex, to_real
from minijax.arrays.complex_numbers import parts_of_quotient, parts_of_square
from minijax.kernels.kernel import Kernel, Node, apply, constant, fold, index, load
from minijax.kernels.parts import Affine, Parameter, Store, Term, Update
from minijax.kernels.scalar_ops import in_registers, scalar_ops
from minijax.kernels.views import Buffer, collapse, everywhere, running


class NoKernel(Exception):
    """There is no kernel for these dtypes."""


class Pair(NamedTuple):
    """A complex number in a kernel: two nodes."""

    real: Node
    imag: Node

    @property
    def dtype(self):
        """Of the complex number."""
        return to_complex(self.real.dtype)


# Dtypes of what is no number, and integers of their size, as which kernels move them.
carriers: dict = Registry()


class NodeWriter:
    """Writes nodes, one after the other.

    ``k.exp(x)`` adds the node of a scalar operation: `x` is a node, a `Pair` for a
    complex number, or a number, which takes the dtype of the node beside it.
    """

    def __init__(self):
        self.nodes = []

    def __getattr__(self, op):
        if op not in scalar_ops and op not in complex_rules:
            raise AttributeError(f"There is no scalar operation {op!r}.")
        return functools.partial(self.apply, op)

    def write(self, node):
        """Put a node behind the others, and return it."""
        self.nodes.append(node)
        return node

    def apply(self, op, *args):
        """Add the node of a scalar operation."""
        kinds = {*map(type, args)}
        if not kinds <= {Node, Pair}:
            args = self.nodes_of(args)
        if Pair not in kinds:
            return self.write(apply(op, *args))
        if op not in complex_rules:
            raise NoKernel(f"{op} of complex numbers")
        return complex_rules[op](self, *args)

    def nodes_of(self, args):
        """Return operands, and nodes for the numbers among them."""
        like = [arg for arg in args if isinstance(arg, Node | Pair)][-1]
        return [x if isinstance(x, Node | Pair) else self.number(x, like) for x in args]

    def number(self, value, like):
        """Add the node of a number that is like another one."""
        return self.constant(value, like.dtype)

    def constant(self, value, dtype):
        """Add the node of a number of a dtype."""
        if dtype.kind == "c":
            parts = value.real, value.imag
            return Pair(*[self.constant(part, to_real(dtype)) for part in parts])
        return self.write(constant(value, dtype))

    def convert(self, x, dtype):
        """Add the node of a number in another dtype, if it is another."""
        if dtype.kind == "c":
            part = to_real(dtype)
            pair = x if isinstance(x, Pair) else (x, self.constant(0, part))
            return Pair(*[self.convert(each, part) for each in pair])
        x = x.real if isinstance(x, Pair) else x
        same = x.dtype == in_registers(dtype)
        return x if same else self.write(apply("convert", x, dtype=dtype))

    def square(self, x):
        """Add the node of the square of a number."""
        if isinstance(x, Pair):
            return Pair(*parts_of_square(self, *x))
        return self.mul(x, x)

    def bitcast(self, x, dtype):
        """Add the node of the same bits, read as another dtype."""
        return self.write(apply("bitcast", x, dtype=dtype))


class KernelBuilder(NodeWriter):
    """Writes a kernel.

    Args:
      name: of the kernel.
      sizes: of its axes.
    """

    def __init__(self, name, sizes):
        super().__init__()
        self.name, self.sizes = name, tuple(sizes)
        self.loads, self.stores, self.parameters = {}, [], {}

    def index(self, axis):
        """Add the node of the index along an axis."""
        return self.write(index(axis))

    def load(self, view, guards=(), other=0, terms=()):
        """Add the node of an array's element; its axes are the kernel's first ones.

        Args:
          view: of the array.
          guards, other: as in a `Load`.
          terms: computed parts of the place: a node of int64, the stride, the limit.
        """
        if not isinstance(view.source, Buffer):
            if terms:
                raise NoKernel("computed places of an array without memory")
            return self.constant(view.source, view.dtype)
        if view.dtype.kind == "c":
            terms = _terms_of_parts(terms)
            pairs = zip(parts(view), (other.real, other.imag))
            return Pair(*[self.load(x, guards, y, terms) for x, y in pairs])
        parameter, place = self.place(view)
        node = load(parameter, place, guards, other, _computed_terms(terms))
        key = node.detail, node.args
        if key not in self.loads:
            self.loads[key] = self.write(node)
        return self.loads[key]

    def store(self, view, x):
        """Say that the elements of an array are these."""
        if view.dtype.kind == "c":
            for part, node in zip(parts(view), x):
                self.store(part, node)
        else:
            parameter, place = self.place(view, written=True)
            self.stores.append(Store(parameter, place, x))

    def update(self, view, x, how, terms, distinct=False):
        """Say that numbers enter elements of an array, for all indices of the kernel.

        Args:
          view: of the array, along the axes of the kernel.
          x: the node, or pair, that enters.
          how, distinct: as in an `Update`.
          terms: as for `load`.
        """
        if view.dtype.kind == "c":
            if how not in ("set", "add"):
                raise NoKernel(f"{how} of complex numbers")
            for part, node in zip(parts(view), x):
                self.update(part, node, how, _terms_of_parts(terms), distinct)
        else:
            parameter, place = self.place(view, written=True)
            at, terms = zip(*_computed_terms(terms))
            update = Update(how, at, terms, (*range(len(self.sizes)),), distinct)
            self.stores.append(Store(parameter, place, x, update))

    def place(self, view, written=False):
        """Return the parameter, and the place in it, of an array's element."""
        dtype = carriers.get(view.dtype, view.dtype)
        key = buffer, dtype = view.source, dtype
        if key not in self.parameters:
            name = new_name(self.parameters.values(), written)
            size = buffer.size * buffer.dtype.itemsize // dtype.itemsize
            self.parameters[key] = Parameter(name, dtype, size)
        still = (0,) * (len(self.sizes) - len(view.shape))
        return self.parameters[key], Affine(view.offset, (*view.strides, *still))

    def fold(self, how, axes, x):
        """Add the node of what remains when axes are folded away."""
        if not axes:
            return x
        if not isinstance(x, Pair):
            return self.write(fold(how, axes, x))
        if how != "add":
            raise NoKernel(f"{how} of complex numbers")
        return Pair(*[self.fold(how, axes, part) for part in x])

    def running(self, how, axis, x):
        """Add the node of a running fold along an axis, the last one that it has."""
        if not isinstance(x, Pair):
            return self.write(running(how, axis, x))
        if how != "add":
            raise NoKernel(f"{how} of complex numbers")
        return Pair(*[self.running(how, axis, part) for part in x])

    def kernel(self):
        """Return the `Kernel`, with as few axes as possible, and its buffers."""
        parameters, nodes = (*self.parameters.values(),), (*self.nodes,)
        kernel = Kernel(self.name, self.sizes, parameters, nodes, (*self.stores,))
        return collapse(kernel), [buffer for buffer, _ in self.parameters]


def _computed_terms(terms):
    return [(node, Term(stride, limit)) for node, stride, limit in terms]


def _terms_of_parts(terms):
    """Return the terms of complex numbers as those of their parts."""
    return [(node, 2 * stride, limit) for node, stride, limit in terms]


def new_name(parameters, written):
    """Return a name that no parameter has yet: x, y, z, x3, ...; out, out1, ..."""
    if written:
        count = sum([parameter.name[:3] == "out" for parameter in parameters])
        return f"out{count or ''}"
    return "xyz"[len(parameters)] if len(parameters) < 3 else f"x{len(parameters)}"


def parts(view):
    """Return the views of the real and the imaginary parts of complex numbers."""
    if not isinstance(view.source, Buffer):
        scalars = view.source.real, view.source.imag
        return [everywhere(scalar, view.shape) for scalar in scalars]
    places = [view.offset * 2, view.offset * 2 + 1]
    strides = tuple(2 * stride for stride in view.strides)
    half = view._replace(dtype=to_real(view.dtype), strides=strides)
    return [half._replace(offset=place) for place in places]


def _of_parts(k, op, pairs):
    return [k.apply(op, *parts) for parts in zip(*pairs)]


def _each_part(op):
    return lambda k, *pairs: Pair(*_of_parts(k, op, pairs))


def _compared(op, both):
    return lambda k, *pairs: k.apply(both, *_of_parts(k, op, pairs))


def _complex_mul(k, x, y):
    real = k.sub(k.mul(x.real, y.real), k.mul(x.imag, y.imag))
    return Pair(real, k.add(k.mul(x.real, y.imag), k.mul(x.imag, y.real)))


def _complex_select(k, which, yes, no):
    return Pair(*[k.select(which, *parts) for parts in zip(yes, no)])


# What operations do to complex numbers: functions of the builder and of pairs.
complex_rules = {
    "add": _each_part("add"),
    "sub": _each_part("sub"),
    "neg": _each_part("neg"),
    "mul": _complex_mul,
    "div": lambda k, x, y: Pair(*parts_of_quotient(k, *x, *y)),
    "conj": lambda k, x: Pair(x.real, k.neg(x.imag)),
    "abs": lambda k, x: k.hypot(*x),
    "select": _complex_select,
    "eq": _compared("eq", "and"),
    "ne": _compared("ne", "or"),
}
