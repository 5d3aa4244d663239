"""Einstein summation: subscripts, contraction paths, products of two at a time.

References: ``numpy.einsum``; ``opt_einsum.parser``, ``opt_einsum.paths``; Smith and
Gray, *opt_einsum* (JOSS 2018), ``jax.numpy.einsum``.
"""

# Made from chapters/03_numpy_rest.md by `make chapter`;
# edit the chapter, not this file.

import importlib.util
import itertools
import math
import string
from collections import Counter
from collections.abc import Callable
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np

from minijax import lax
from minijax.arrays.config import check_dtypes
from minijax.arrays.dtypes import check_dtype
from minijax.arrays.interchange import promised
from minijax.arrays.out_sharding import with_out_sharding
from minijax.core import Array
from minijax.lax.arithmetic import astype as as_type
from minijax.lax.reductions import check_arraylike, common_dtype_and_weak_type
from minijax.numpy.array_creation import full_like
from minijax.numpy.operands import as_array

# Subscripts of an Einstein summation: one letter for each axis of each operand.


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


def convert_interleaved_input(args):
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


def parse_subscripts(text, shapes):
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


# Contraction paths: which two operands of an Einstein summation meet next.

EXACT = 4  # operands; with so many, the search for a path is exact
EXACT_ALONE = 6  # the same where opt_einsum is not installed
OURS = "auto", "auto-hq", "greedy", "eager", "opportunistic"


def term_size(letters, sizes):
    """Return how many elements an array with these axes has."""
    return math.prod(sizes[each] for each in letters)


def flops(letters, sums, terms, sizes):
    """Return the operations of a product over letters, with or without a sum."""
    return term_size(letters, sizes) * (max(1, terms - 1) + sums)


def optimal_path(inputs, output, sizes):
    """Return the path with the fewest operations, by depth-first search with pruning.

    What a pair costs is remembered by its letters, as in opt_einsum, so that the path
    is also JAX's. Where operands have the same letters, another may be cheaper.

    Args:
      inputs: for each operand the frozen set of its letters.
      output: the set of the letters of the result.
      sizes: for each letter its size.
    """
    best: list = [math.inf, ()]
    costs: dict = {}

    def contracted(terms, left, i, j):
        pair = terms[i], terms[j]
        if pair not in costs:
            either = pair[0] | pair[1]
            needed = output.union(*[terms[k] for k in left if k not in (i, j)])
            sums = bool((pair[0] & pair[1]) - needed)
            costs[pair] = either & needed, flops(either, sums, 2, sizes)
        return costs[pair]

    def search(path, terms, left, spent):
        if len(left) == 1:
            best[:] = spent, path
        for i, j in itertools.combinations(left, 2):  # in opt_einsum's order
            result, cost = contracted(terms, left, i, j)
            if spent + cost < best[0]:
                rest = left - {i, j} | {len(terms)}
                search((*path, (i, j)), (*terms, result), rest, spent + cost)

    search((), tuple(inputs), {*range(len(inputs))}, 0)
    return _as_positions(best[1], len(inputs))


def _as_positions(path, count):
    """Number operands by their positions among those that are left at each step."""
    left, found = [*range(count)], []
    for step, pair in enumerate(path):
        found.append(tuple(sorted(map(left.index, pair))))
        left = [number for number in left if number not in pair] + [count + step]
    return found


def greedy_path(inputs, output, sizes):
    """Return a path that takes the pair next which leaves the least memory behind.

    The arguments are those of `optimal_path`. Operands that share no letter come last.
    """
    terms, path = [*inputs], []
    while len(terms) > 1:
        pairs = itertools.combinations(range(len(terms)), 2)
        prices = {pair: _price(terms, pair, output, sizes) for pair in pairs}
        pair = min(prices, key=prices.__getitem__)
        result = _result(terms, pair, output)
        terms = [term for i, term in enumerate(terms) if i not in pair] + [result]
        path.append(pair)
    return path


def _price(terms, pair, output, sizes):
    """Return whether two terms share no letter, and by how much memory grows."""
    one, other = (terms[i] for i in pair)
    made = term_size(_result(terms, pair, output), sizes)
    return not one & other, made - term_size(one, sizes) - term_size(other, sizes)


def _result(terms, chosen, output):
    """Return the letters that the chosen terms leave to the others and the result."""
    others = [term for i, term in enumerate(terms) if i not in chosen]
    return frozenset().union(*[terms[i] for i in chosen]) & output.union(*others)


def _searched(count, optimize):
    """Return the function that finds a path; opt_einsum has the longer list."""
    if optimize == "optimal" or (optimize == "auto" and count <= EXACT):
        return optimal_path
    if importlib.util.find_spec("opt_einsum"):
        return import_module("opt_einsum.paths").get_path_fn(optimize)
    if optimize in OURS:
        exact = optimize.startswith("auto") and count <= EXACT_ALONE
        return optimal_path if exact else greedy_path
    raise KeyError(
        f"Path optimizer {optimize!r} not found: without the package opt_einsum there "
        f"are 'optimal' and {OURS}."
    )


def contraction_path(subscripts, optimize):
    """Return for each step the positions of the operands that are multiplied.

    Args:
      subscripts: a `Subscripts`.
      optimize: True, False, the name of a search, such a function, or a path.
    """
    count = len(subscripts.inputs)
    if optimize is False:
        optimize = [(0, 1)] * (count - 1) or [(0,)]
    named = optimize is True or isinstance(optimize, str) or callable(optimize)
    if not named:
        return optimize
    if count <= 2:
        return [tuple(range(count))]
    function: Callable = optimize if callable(optimize) else optimal_path
    if isinstance(optimize, str):
        function = _searched(count, optimize)
    inputs = [*map(frozenset, subscripts.inputs)]
    return function(inputs, frozenset(subscripts.output), subscripts.sizes)


class Contraction(NamedTuple):
    """One step of a path.

    Attributes:
      positions: of the operands that are taken, the last one first.
      inputs: their letters.
      removed: the letters that are summed over.
      output: the letters of what is put behind the other operands.
      left: the letters of all operands after the step.
      flops: the operations that it takes.
    """

    positions: tuple
    inputs: tuple
    removed: frozenset
    output: str
    left: tuple
    flops: int

    def __str__(self):
        return f"{','.join(self.inputs)}->{self.output}"


def contraction_list(subscripts, path):
    """Return the `Contraction` of each step of a path."""
    terms, steps = [*subscripts.inputs], []
    for number, positions in enumerate(path):
        positions = tuple(sorted(positions, reverse=True))
        sets = [*map(frozenset, terms)]
        result = _result(sets, positions, frozenset(subscripts.output))
        inputs = tuple([terms.pop(position) for position in positions])
        every = frozenset("".join(inputs))
        output = "".join(sorted(result, key="".join(inputs).find))
        if number == len(path) - 1:
            output = subscripts.output
        terms.append(output)
        removed = every - result
        cost = flops(every, bool(removed), len(inputs), subscripts.sizes)
        step = positions, inputs, removed, output, tuple(terms), cost
        steps.append(Contraction(*step))
    return steps


class PathInfo:
    """What an Einstein summation costs along a path, to be printed.

    Attributes:
      eq: the subscripts.
      path: the path.
      naive_cost, opt_cost: operations of one loop over all letters, and of the path.
      largest_intermediate: elements of the largest array that a step makes.
    """

    def __init__(self, subscripts: Any, path: Any) -> None:
        self.steps, self.path = contraction_list(subscripts, path), path
        self.eq = f"{','.join(subscripts.inputs)}->{subscripts.output}"
        letters = "".join(subscripts.inputs)
        repeats = sum(map(len, map(set, subscripts.inputs))) > len({*letters})
        count = len(subscripts.inputs)
        self.scaling = len({*letters})
        self.naive_cost = flops({*letters}, repeats, count, subscripts.sizes)
        self.opt_cost = sum(step.flops for step in self.steps)
        made = [term_size(step.output, subscripts.sizes) for step in self.steps]
        self.largest_intermediate = max(made, default=1)

    def __repr__(self) -> str:
        scaled = [len({*"".join(step.inputs)}) for step in self.steps]
        rows = [
            ("Complete contraction", self.eq),
            ("Naive scaling", self.scaling),
            ("Optimized scaling", max(scaled, default=0)),
            ("Naive FLOP count", f"{self.naive_cost:.3e}"),
            ("Optimized FLOP count", f"{self.opt_cost:.3e}"),
            ("Theoretical speedup", f"{self.naive_cost / max(self.opt_cost, 1):.3e}"),
            ("Largest intermediate", f"{self.largest_intermediate:.3e} elements"),
        ]
        lines = [f"{title:>22}:  {value}" for title, value in rows]
        result = self.eq.partition("->")[2]
        lines += [f"{'scaling':>10}{'current':>30}{'remaining':>37}"]
        for step, scale in zip(self.steps, scaled):
            left = f"{','.join(step.left)}->{result}"
            lines.append(f"{scale:>10}{step!s:>30}{left:>37}")
        return "\n".join(lines)


# Einstein summation, as products of two arrays at a time.


def _summed(x, axes, dtype):
    """Sum over axes, in the dtype of the result; of bools, whether any is true."""
    x = as_type(x, common_dtype_and_weak_type(x, np.zeros((), dtype))[0])
    return (lax.reduce_or if x.dtype == bool else lax.reduce_sum)(x, tuple(axes))


def _sum_alone(x, letters, alone, dtype):
    """Sum over letters that no other operand and no result has."""
    if alone:
        x = _summed(x, map(letters.index, alone), dtype)
    return x, "".join([each for each in letters if each not in alone])


def _on_diagonal(shape, axes):
    """Return whether indices along some axes are equal, at each place of an array."""
    sizes = tuple([shape[axis] for axis in axes])
    counters = [
        lax.broadcasted_iota(np.uint32, sizes, axis) for axis in range(len(sizes))
    ]
    equal = [lax.eq(*pair) for pair in zip(counters, counters[1:])]
    mask = equal[0]
    for other in equal[1:]:
        mask = lax.bitwise_and(mask, other)
    return mask if sizes == shape else lax.broadcast_in_dim(mask, shape, tuple(axes))


def _sum_repeats(x, letters, counts, kept, dtype):
    """Take the diagonal of axes with one letter, and sum over it unless it is kept."""
    for each, count in counts.items():
        if count < 2:
            continue
        axes = [axis for axis, other in enumerate(letters) if other == each]
        x = lax.select(_on_diagonal(x.shape, axes), x, full_like(x, 0))
        gone = axes[:-1] if each in kept else axes
        x = _summed(x, gone, dtype)
        letters = "".join([one for i, one in enumerate(letters) if i not in gone])
    return x, letters


def _drop_thin(x, letters, other, other_letters):
    """Drop axes of size 1 that the other operand stretches."""
    places = map(other_letters.find, letters)
    thin = [
        axis
        for axis, place in enumerate(places)
        if x.shape[axis] == 1 and place >= 0 and other.shape[place] != 1
    ]
    kept = [each for axis, each in enumerate(letters) if axis not in thin]
    return (lax.squeeze(x, thin) if thin else x), "".join(kept)


def _reduced(x, step, dtype):
    """Return an operand that is alone, summed over letters; and what is left."""
    [letters] = step.inputs
    counts = Counter(letters)
    alone = [each for each in sorted(step.removed) if counts[each] == 1]
    x, letters = _sum_alone(x, letters, alone, dtype)
    return _sum_repeats(x, letters, counts, step.output, dtype)


def _simple(lhs, rhs, step, dtype):
    """Return two operands, none with a letter twice or one to be summed alone."""
    one, other = step.inputs
    lhs, one = _drop_thin(lhs, one, rhs, other)
    rhs, other = _drop_thin(rhs, other, lhs, one)
    counts, others = Counter(one), Counter(other)
    removed = sorted(step.removed)
    alone = [each for each in removed if counts[each] == 1 and not others[each]]
    lhs, one = _sum_alone(lhs, one, alone, dtype)
    alone = [each for each in removed if others[each] == 1 and not counts[each]]
    rhs, other = _sum_alone(rhs, other, alone, dtype)
    lhs, one = _sum_repeats(lhs, one, counts, step.output + other, dtype)
    rhs, other = _sum_repeats(rhs, other, others, step.output + one, dtype)
    return lhs, one, rhs, other


def _multiplied(lhs, rhs, step, dtype, multiply):
    """Return the product of two operands, and its letters."""
    lhs, one, rhs, other = _simple(lhs, rhs, step, dtype)
    summed = [each for each in sorted(step.removed) if each in one and each in other]
    shared = [each for each in step.output if each in one and each in other]
    left, right = (
        "".join([each for each in term if each not in (*summed, *shared)])
        for term in (one, other)
    )
    batch = "".join(shared)
    # With the operands the other way round, perhaps no transposition is left to do.
    if batch + right + left == step.output:
        lhs, one, left, rhs, other, right = rhs, other, right, lhs, one, left
    contracting, batches = (
        tuple([tuple(map(term.index, letters)) for term in (one, other)])
        for letters in (summed, shared)
    )
    return multiply(lhs, rhs, (contracting, batches)), batch + left + right


def _performed(arrays, step, dtype, multiply):
    """Return the result of one step, its axes in order."""
    if len(arrays) > 2:
        raise NotImplementedError(
            "jax.numpy.einsum does not support simultaneous contraction of 3 or more "
            "operands. Typically this means you've passed an unsupported path to the "
            "einsum optimize parameter."
        )
    if len(arrays) == 1:
        result, letters = _reduced(arrays[0], step, dtype)
    else:
        lhs, rhs = arrays
        result, letters = _multiplied(lhs, rhs, step, dtype, multiply)
    order = tuple(map(letters.index, step.output))
    return result if letters == step.output else lax.transpose(result, order)


def _read(name, args):
    """Return the `Subscripts` and the operands that the arguments of a call say."""
    text, operands = convert_interleaved_input([promised(arg) for arg in args])
    check_arraylike(name, *operands)
    return parse_subscripts(text, shapes_of(operands)), operands


@with_out_sharding
def einsum(
    subscripts: Any,
    /,
    *operands: Any,
    out: None = None,
    optimize: Any = "auto",
    precision: Any = None,
    preferred_element_type: Any = None,
    _dot_general: Callable[..., Array] = lax.dot_general,
    out_sharding: Any = None,
) -> Array:
    """Sum products over axes that are named: Einstein summation.

    Args:
      subscripts, *operands: a text such as ``"ij,jk->ik"`` and the arrays, with
        ``...`` for axes without a name; or each array followed by the list of its
        axes, and then perhaps the list of those of the result.
      optimize: the order of the products: ``"auto"``, True for the best one, False
        for that in which they are written, the name of a search, or a path.
      precision: as in ``minijax.lax.dot_general``.
      preferred_element_type: dtype of the result, and of sums on the way.
      _dot_general: called in place of ``minijax.lax.dot_general``.

    Raises:
      ValueError: if subscripts and shapes contradict each other.
      NotImplementedError: if a step of a path takes more than two operands.

    Reference: ``jax.numpy.einsum``.
    """
    if out is not None:
        raise NotImplementedError("The 'out' argument to jnp.einsum is not supported.")
    found, given = _read("einsum", (subscripts, *operands))
    arrays = [as_array(x) for x in given]
    check_dtypes("einsum", arrays)
    dtype, weak_type = common_dtype_and_weak_type(*arrays)
    if preferred_element_type is not None:
        dtype, weak_type = check_dtype(preferred_element_type, "einsum"), False

    def multiply(lhs, rhs, axes):
        return _dot_general(lhs, rhs, axes, precision, preferred_element_type=dtype)

    for step in contraction_list(found, contraction_path(found, optimize)):
        chosen = [arrays.pop(position) for position in step.positions]
        arrays.append(_performed(chosen, step, dtype, multiply))
    return as_type(arrays[0], dtype, weak_type)


def einsum_path(
    subscripts: Any, /, *operands: Any, optimize: Any = "auto"
) -> tuple[list[tuple[int, ...]], Any]:
    """Find the order in which `einsum` multiplies, without multiplying.

    Args:
      subscripts, *operands, optimize: as of `einsum`.

    Returns:
      A path for `einsum`, and an object that prints what it costs.

    Reference: ``jax.numpy.einsum_path``.
    """
    found, _ = _read("einsum_path", (subscripts, *operands))
    path = contraction_path(found, optimize)
    return path, PathInfo(found, path)
