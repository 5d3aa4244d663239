"""Subscripts of an Einstein summation: one letter for each axis of each operand.

Reference: ``numpy.einsum``; ``opt_einsum.parser``.
"""

# Made from chapters/03_numpy_rest.md by `make chapter`;
# edit the chapter, not this file.

import string
from typing import NamedTuple

import numpy as np


class Subscripts(NamedTuple):
    """The letters of an Einstein summation.

    Attributes:
      inputs: for each operand a string with a letter for each axis.
      output: the letters of the result.
      sizes: for each letter the size of its axes; 1 only if all of them have that size.
    """

    inputs: tuple
    output: str
    sizes: dict


def letter(number):
    """Return the letter with a number: ``a`` to ``Z``, then others of Unicode."""
    if number < len(string.ascii_letters):
        return string.ascii_letters[number]
    return chr(number + (140 if number < 0xD800 else 0x800))


def split_arguments(args):
    """Return a text and the operands, also of arguments ``x, axes, y, axes, result``.

    Raises:
      TypeError: if axes are neither an ellipsis nor of one sortable type.
    """
    if not args:
        raise ValueError("No input operands")
    if isinstance(args[0], str):
        return args[0].replace(" ", ""), args[1:]
    pairs = len(args) // 2
    terms, operands = args[1 : 2 * pairs : 2], args[: 2 * pairs : 2]
    result = [args[-1]] if len(args) % 2 else []
    try:
        axes = sorted({axis for term in terms for axis in term} - {Ellipsis})
        names = {axis: letter(place) for place, axis in enumerate(axes)}
    except TypeError as error:
        raise TypeError(
            "Axes of einsum are given as lists of an Ellipsis and of objects that can "
            f"be sorted and have a hash, such as integers; got {list(terms)}."
        ) from error
    names[Ellipsis] = "..."
    if strange := [axis for term in result for axis in term if axis not in names]:
        raise ValueError(f"The result of einsum has axes of no operand: {strange}.")
    texts = ["".join([names[axis] for axis in term]) for term in [*terms, *result]]
    text = ",".join(texts[:pairs])
    return "->".join([text, *texts[pairs:]]), operands


def read_subscripts(text, shapes):
    """Return the `Subscripts` of a text such as ``"ij,jk->ik"``.

    Args:
      text: the letters of the operands; perhaps an arrow, and those of the result.
      shapes: the shapes of the operands.

    Raises:
      ValueError: if they contradict each other.
    """
    text, arrow, output = text.partition("->")
    if {*text + output} & {*"->"}:
        raise ValueError("Subscripts can only contain one '->'.")
    inputs = text.split(",")
    if len(inputs) != len(shapes):
        raise ValueError(
            f"Number of einsum subscripts, {len(inputs)}, must be equal to the number "
            f"of operands, {len(shapes)}."
        )
    inputs, dots = _without_ellipses(inputs, output, shapes)
    if arrow:
        output = output.replace("...", dots)
    else:
        output = dots + _alone("".join(inputs), dots)
    _check_output(output, inputs)
    return Subscripts(tuple(inputs), output, _sizes(inputs, shapes))


def _alone(letters, others):
    """Return in order the letters that come once, and are none of the others."""
    found = {*letters} - {*others}
    return "".join(sorted(each for each in found if letters.count(each) == 1))


def _without_ellipses(inputs, output, shapes):
    """Return the inputs with letters for their ellipses, and those of the longest."""
    used = {*"".join(inputs), *output}
    ndim = max(map(len, shapes))
    free = [letter(number) for number in range(len(used) + ndim)]
    free = "".join([each for each in free if each not in used][:ndim])
    found, longest = [], 0
    for term, shape in zip(inputs, shapes):
        if "." not in term:
            found.append(term)
            continue
        if term.count(".") != 3 or "..." not in term:
            raise ValueError(f"Invalid Ellipses in {term!r}.")
        count = len(shape) - (len(term) - 3)
        if count < 0:
            raise ValueError(f"Ellipses lengths do not match: {term!r} and {shape}.")
        longest = max(longest, count)
        found.append(term.replace("...", free[ndim - count :]))
    return found, free[ndim - longest :]


def _check_output(output, inputs):
    for each in output:
        if output.count(each) > 1:
            raise ValueError(
                f"Output character {each!r} appeared more than once in the output."
            )
        if not any(each in term for term in inputs):
            raise ValueError(f"Output character {each!r} did not appear in the input")


def _sizes(inputs, shapes):
    sizes: dict = {}
    for number, (term, shape) in enumerate(zip(inputs, shapes)):
        if len(term) != len(shape):
            raise ValueError(
                f"Einstein sum subscript {term!r} does not contain the correct number "
                f"of indices for operand {number} of shape {shape}."
            )
        for each, size in zip(term, shape):
            known = sizes.get(each, 1)
            if 1 not in (size, known) and size != known:
                raise ValueError(
                    f"Size of label {each!r} for operand {number} ({size}) does not "
                    f"match previous terms ({known})."
                )
            sizes[each] = size if known == 1 else known
    return sizes


def shapes_of(operands):
    """Return the shapes of operands."""
    return [np.shape(x) for x in operands]
