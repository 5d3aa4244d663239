"""Sorts on a card: tiles in shared memory, then merges by rank, a launch for each.

Reference: K. Batcher, *Sorting networks and their applications* (1968); N. Satish et
al., *Designing efficient sorting algorithms for manycore GPUs* (2009).
"""

# Made from chapters/35_device_ground.md by `make chapter`;
# edit the chapter, not this file.

import hashlib
import math
from collections import Counter
from typing import NamedTuple

import numpy as np

from minijax.cuda.driver import CudaLaunch
from minijax.jitting.costs import FLOPS
from minijax.kernels.backends import array_of
from minijax.kernels.program_steps import StepKind, cost_of_moving, step_kinds
from minijax.kernels.views import Buffer
from minijax.sorting.steps import Sort, sorted_by_numpy

TILE = 1024  # places that a block sorts
MERGERS = 256  # threads of a block that merges
BITS = {
    1: "unsigned char", 2: "unsigned short", 4: "unsigned", 8: "unsigned long long",
    16: "Vector<unsigned long long, 2>",
}  # fmt: skip


class SortPass(NamedTuple):
    """A step: bring the places of rows into order, in longer runs than before.

    Attributes:
      sort: the `Sort` that it is a part of.
      width: the length of the runs that are in order already; 0 for none.
      before, after: buffers of places, row by row. The first pass has none before it,
        and the last one moves the operands instead.
    """

    sort: Sort
    width: int
    before: Buffer | None
    after: Buffer | None

    @property
    def programs(self):
        """The programs within the step: none."""
        return ()

    @property
    def reads(self):
        """The buffers that the step reads."""
        return [x for _, name, x in parameters_of_pass(self) if name[0] in "wbx"]

    @property
    def writes(self):
        """The buffers that the step writes to."""
        return [x for _, name, x in parameters_of_pass(self) if name[0] in "ay"]

    @property
    def length(self):
        """The length of the runs that are in order afterwards."""
        return 2 * self.width or TILE

    def __str__(self):
        what = "moved" if self.after is None else str(self.after)
        return f"{what} = runs of {self.length} of {self.sort}"


def parameters_of_pass(step):
    """Return triples of types, names and buffers: words, places, operands, results."""
    words = [("const ", f"w{i}", x) for i, x in enumerate(step.sort.words)]
    ends = []
    if step.after is None:
        ends += [("const ", f"x{i}", x) for i, x in enumerate(step.sort.operands)]
        ends += [("", f"y{i}", x) for i, x in enumerate(step.sort.results)]
    found = [(f"{c}{BITS[x.dtype.itemsize]}*", n, x.source) for c, n, x in words + ends]
    places = ("const int*", "before", step.before), ("int*", "after", step.after)
    return found + [each for each in places if each[2] is not None]


def passes_of_sort(step):
    """Return the steps that a card makes of a `Sort`: a tile, then merges."""
    rows, n = step.sizes
    doublings = max(math.ceil(math.log2(n / TILE)), 0)
    widths = [0, *[TILE * 2**k for k in range(doublings)]]
    names = [f"{step.results[0].source.name}_{width}" for width in widths[1:]]
    places = [Buffer(name, np.dtype("int32"), rows * n) for name in names]
    ends = zip(widths, [None, *places], [*places, None])
    return [SortPass(step, *each) for each in ends]


FIRST = """
  auto comes_first = [&](long long a, long long b) {{
    if (a >= {n} || b >= {n}) return a < b;
{compare}    return a < b;
  }};"""
SORT_TILE = """
extern "C" __global__ void __launch_bounds__({threads})
{label}({parameters}) {{
  __shared__ int places[{tile}];
  const long long row = (long long)(blockIdx.x / {tiles}) * {n};
  const int start = blockIdx.x % {tiles} * {tile};{first}
  for (int i = threadIdx.x; i < {tile}; i += {threads}) places[i] = start + i;
  __syncthreads();
  for (int size = 2; size <= {tile}; size *= 2) {{
    for (int step = size / 2; step > 0; step /= 2) {{
      const int i = 2 * threadIdx.x - (threadIdx.x & (step - 1)), j = i + step;
      const int a = places[i], b = places[j];
      if (comes_first(b, a) == !(i & size)) places[i] = b, places[j] = a;
      __syncthreads();
    }}
  }}
  for (int i = threadIdx.x; i < {tile} && start + i < {n}; i += {threads}) {{
    const long long to = row + start + i, place = places[i];
{put}  }}
}}"""
MERGE = """
extern "C" __global__ void __launch_bounds__({threads})
{label}({parameters}) {{
  const long long i = (long long)blockIdx.x * {threads} + threadIdx.x;
  if (i >= {total}) return;
  const long long row = i / {n} * {n}, at = i - row, run = at / {width};
  const int place = before[i];{first}
  const long long start = min((run ^ 1) * {width}, {n}LL);
  long long low = start, high = min(start + {width}, {n}LL);
  while (low < high) {{
    const long long middle = (low + high) / 2;
    if (comes_first(before[row + middle], place)) low = middle + 1;
    else high = middle;
  }}
  const long long to = row + run / 2 * {pair} + at % {width} + (low - start);
{put}}}"""


def lines_of_pass(step):
    """Return the lines that compare two places, and those that say where one goes."""
    compare, put = "", "" if step.after is None else "    after[to] = place;\n"
    for number, view in enumerate(step.sort.words):
        a, b = (f"w{number}[{view.offset} + row + {x}]" for x in "ab")
        compare += f"    if ({a} != {b}) return {a} < {b};\n"
    for i, (x, y) in enumerate(zip(step.sort.operands, step.sort.results)):
        if step.after is None:
            put += f"    y{i}[{y.offset} + to] = x{i}[{x.offset} + row + place];\n"
    return compare, put


def launch_of_pass(step, aligned=True):
    """Return the `CudaLaunch` of a `SortPass`."""
    (rows, n), (compare, put) = step.sort.sizes, lines_of_pass(step)
    tile = min(TILE, max(64, 2 ** math.ceil(math.log2(n))))
    tiles, triples = math.ceil(n / tile), parameters_of_pass(step)
    parts = {
        "parameters": ", ".join(f"{kind} {name}" for kind, name, _ in triples),
        "first": FIRST.format(n=n, compare=compare),
        **{"n": n, "put": put, "tile": tile, "tiles": tiles, "total": rows * n},
        **{"width": step.width, "pair": 2 * step.width},
        "threads": MERGERS if step.width else tile // 2,
    }
    text = MERGE if step.width else SORT_TILE
    key = hashlib.sha256(text.format(label="", **parts).encode()).hexdigest()[:8]
    blocks = math.ceil(rows * n / MERGERS) if step.width else rows * tiles
    label, buffers = f"sort_{key}", [buffer for *_, buffer in triples]
    text = text.format(label=label, **parts)
    return CudaLaunch(label, text, blocks, parts["threads"], buffers)


def passed_by_numpy(program, step):
    """Return a function of the memory that does a `SortPass`, as NumPy does it."""
    shape = _, n = step.sort.sizes

    def run(memory):
        words = [array_of(x, memory).reshape(shape) for x in step.sort.words[::-1]]
        runs = np.broadcast_to(np.arange(n) // step.length, shape)
        places = np.lexsort([*words, runs], axis=-1).astype(np.int32)
        memory[step.after][:] = places.reshape(-1).view(np.uint8)

    return sorted_by_numpy(program, step.sort) if step.after is None else run


def cost_of_pass(step):
    """Count the comparisons: one for each round of the network, or of the search."""
    rounds = math.log2(step.width) + 1 if step.width else 55
    count = Counter({FLOPS: int(math.prod(step.sort.sizes) * rounds)})
    return count + cost_of_moving(step)


step_kinds[SortPass] = StepKind(passed_by_numpy, cost_of_pass)
