"""Text of operations: numbers and types, blocks, functions, programs.

Source: the MLIR language reference, https://mlir.llvm.org/docs/LangRef.
"""

# Made from chapters/40_export_ground.md by `make chapter`;
# edit the chapter, not this file.

import itertools
import re
from functools import partial
from typing import NamedTuple

import numpy as np

from minijax import float0
from minijax.core import ShapedArray
from minijax.extend.dtypes import dtype_kind

MLIR_ELEMENT_TYPES = {
    "bool": "i1", "bfloat16": "bf16", float0.name: "i1",
    "complex64": "complex<f32>", "complex128": "complex<f64>",
    **{f"int{bits}": f"i{bits}" for bits in (8, 16, 32, 64)},
    **{f"uint{bits}": f"ui{bits}" for bits in (8, 16, 32, 64)},
    **{f"float{bits}": f"f{bits}" for bits in (16, 32, 64)},
}  # fmt: skip


def tensor_type(aval):
    """Return the type of an array, such as ``tensor<8x3xf32>``; of a key, 64 bits."""
    name = aval.dtype.name
    if not _is_key(aval.dtype) and name not in MLIR_ELEMENT_TYPES:
        raise NotImplementedError(
            f"A text in StableHLO has no arrays of {name} here. Let the exported "
            "function take and return int8 or float32, and convert them outside; keys "
            "are those of threefry2x32."
        )
    element = "ui64" if _is_key(aval.dtype) else MLIR_ELEMENT_TYPES[name]
    return f"tensor<{''.join(f'{size}x' for size in aval.shape)}{element}>"


def _is_key(dtype):
    return dtype_kind(dtype) == "x" and dtype.itemsize == 8  # of Threefry


def decimal(x):
    """Return the digits of a finite number, which are read as exactly this number."""
    text = str(x)
    if type(x)(float(text)) != x:
        text = repr(float(x))
    mantissa, *exponent = text.split("e")
    return "e".join([mantissa if "." in mantissa else f"{mantissa}.0", *exponent])


def number(x):
    """Return a NumPy scalar as it stands in a constant; bits, if it is not finite."""
    if x.dtype.kind == "c":
        return f"({number(x.real)}, {number(x.imag)})"
    if x.dtype.kind in "biu":
        return str(x.item()).lower()
    return decimal(x) if np.isfinite(x) else f"0x{x.tobytes()[::-1].hex().upper()}"


def dense(x):
    """Return an array as a constant: one number for all, a list, or its bytes."""
    x = np.asarray(x, order="C")
    x = np.zeros(x.shape, bool) if x.dtype == float0 else x
    x = x.view(np.uint64) if _is_key(x.dtype) else x
    flat = x.reshape(-1)
    if flat.tobytes() == flat[:1].tobytes() * flat.size:
        return f"dense<{number(flat[0]) if flat.size else ''}>"
    if flat.size > 8 and x.dtype != bool:
        return f'dense<"0x{x.tobytes().hex().upper()}">'
    nested = flat.astype(object)
    nested[:] = list(map(number, flat))
    return f"dense<{nested.reshape(x.shape).tolist()}>".replace("'", "")


class MlirValue(NamedTuple):
    """The result of an operation: its name in the text, and its abstract value."""

    name: str
    aval: ShapedArray

    @property
    def type(self):
        """The type as it stands in the text."""
        return tensor_type(self.aval)


def comma_joined(values):
    """Return the names of values, and their types, each separated by commas."""
    names, types = [x.name for x in values], [x.type for x in values]
    return ", ".join(names), ", ".join(types)


# Operations whose operands and results have types of their own, equal or not.
TYPED = frozenset(["select", "dynamic_update_slice", "bitcast_convert"])


class MlirBlock:
    """Operations one after another, in a function or in a region of an operation."""

    def __init__(self, program, depth):
        self.program, self.depth, self.lines, self.constants = program, depth, [], {}

    def line(self, text):
        """Write one line."""
        self.lines.append("  " * self.depth + text)

    def inputs(self, avals):
        """Return new names for values that come from outside."""
        return [MlirValue(self.program.fresh(), aval) for aval in avals]

    def op(self, name, operands, aval, more=""):
        """Write an operation with one result: ``%2 = stablehlo.add %0, %1 : …``."""
        [result], (names, types) = self.inputs([aval]), comma_joined(operands)
        plain = " " not in name and not more and name not in TYPED
        same = {x.type for x in operands} == {result.type}
        short = not operands or (plain and same)
        kind = result.type if short else f"({types}) -> {result.type}"
        self.line(f"{result.name} = stablehlo.{name} {names}{more} : {kind}")
        return result

    def results(self, avals):
        """Return values for the results of one operation, and its left side."""
        name, count = self.program.fresh(), len(avals)
        if count == 1:
            return [MlirValue(name, avals[0])], f"{name} = "
        results = [MlirValue(f"{name}#{i}", aval) for i, aval in enumerate(avals)]
        return results, f"{name}:{count} = " * bool(count)

    def generic(self, name, operands, avals, attributes="", regions=()):
        """Write an operation in the form that all have; return its results."""
        (results, head), (names, types) = self.results(avals), comma_joined(operands)
        head += f'"{name}"({names})' + f" <{{{attributes}}}>" * bool(attributes)
        for i, region in enumerate(regions):
            self.line("}, {" if i else f"{head} ({{")
            self.lines += region.lines
        end = f" : ({types}) -> ({comma_joined(results)[1]})"
        self.line(f"}}){end}" if regions else head + end)
        return results

    def region(self, avals, body):
        """Return a block of its own; `body` goes from it and its inputs to results."""
        block = MlirBlock(self.program, self.depth + 1)
        inputs = block.inputs(avals)
        if inputs:
            block.line(f"^bb0({', '.join(f'{x.name}: {x.type}' for x in inputs)}):")
        block.returns("stablehlo", body(block, *inputs))
        return block

    def returns(self, dialect, results):
        """Write the last line."""
        names, types = comma_joined(results)
        self.line(f"{dialect}.return {names} : {types}".rstrip(" :"))

    def constant(self, x, aval):
        """Return a value for a number or an array, written once in a block."""
        text = dense(x), tensor_type(aval)
        if text not in self.constants:
            [result] = self.inputs([aval])
            self.line(f"{result.name} = stablehlo.constant {' : '.join(text)}")
            self.constants[text] = result
        return self.constants[text]

    def call(self, name, operands, avals):
        """Write a call of a function; return its results."""
        (results, head), (names, types) = self.results(avals), comma_joined(operands)
        kind = f"({types}) -> ({comma_joined(results)[1]})"
        self.line(f"{head}func.call @{name}({names}) : {kind}")
        return results


def mlir_identifier(name):
    """Return a name as MLIR takes one: ASCII letters, digits and underscores."""
    stem = re.sub(r"\W", "_", name, flags=re.ASCII)
    return f"_{stem}" if stem[:1].isdigit() else stem


class MlirModule:
    """A module: the functions of one program, of which ``main`` is called."""

    def __init__(self):
        self.texts, self.functions, self.taken = [], {}, set()
        self.fresh = partial(next, map("%{}".format, itertools.count()))

    def function(self, key, hint, avals, body, kind="private "):
        """Return the name of a function; it is written for the first of equal keys."""
        if key not in self.functions:
            stem = mlir_identifier(hint)
            more = map(f"{stem}_{{}}".format, itertools.count())
            names = itertools.chain([stem], more)
            name = next(name for name in names if name not in self.taken)
            self.functions[key] = name
            self.taken.add(name)
            block = MlirBlock(self, 2)
            inputs = block.inputs(avals)
            results = body(block, *inputs)
            block.returns("func", results)
            types = comma_joined(results)[1]
            given = ", ".join(f"{x.name}: {x.type}" for x in inputs)
            head = f"  func.func {kind}@{name}({given}) -> ({types}) {{"
            self.texts.append("\n".join([head, *block.lines, "  }"]))
        return self.functions[key]
