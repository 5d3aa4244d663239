"""Contraction paths: which two operands of an Einstein summation meet next.

Reference: ``opt_einsum.paths``; Smith and Gray, *opt_einsum* (JOSS 2018).
"""

# Made from chapters/03_numpy_rest.md by `make chapter`;
# edit the chapter, not this file.

import importlib.util
import itertools
import math
from collections.abc import Callable
from importlib import import_module
from typing import Any, NamedTuple

EXACT = 4  # operands; with so many, the search for a path is exact
EXACT_ALONE = 6  # the same where opt_einsum is not installed
OURS = "auto", "auto-hq", "greedy", "eager", "opportunistic"


def size_of(letters, sizes):
    """Return how many elements an array with these axes has."""
    return math.prod(sizes[each] for each in letters)


def flops(letters, sums, terms, sizes):
    """Return the operations of a product over letters, with or without a sum."""
    return size_of(letters, sizes) * (max(1, terms - 1) + sums)


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
    made = size_of(_result(terms, pair, output), sizes)
    return not one & other, made - size_of(one, sizes) - size_of(other, sizes)


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


def find_path(subscripts, optimize):
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


def contractions(subscripts, path):
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
        self.steps, self.path = contractions(subscripts, path), path
        self.eq = f"{','.join(subscripts.inputs)}->{subscripts.output}"
        letters = "".join(subscripts.inputs)
        repeats = sum(map(len, map(set, subscripts.inputs))) > len({*letters})
        count = len(subscripts.inputs)
        self.scaling = len({*letters})
        self.naive_cost = flops({*letters}, repeats, count, subscripts.sizes)
        self.opt_cost = sum(step.flops for step in self.steps)
        made = [size_of(step.output, subscripts.sizes) for step in self.steps]
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
