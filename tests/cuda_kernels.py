"""Kernels of CUDA C written by hand, and ways in which they are wrong.

Each kernel is right. Each mutant is a small slip that hardware may forgive for years: a
barrier that is missing, a bound that is off by one, a shuffle that some lanes never
reach. The emulator has to find every one of them, in one run.
"""

from typing import NamedTuple

import numpy as np

SELU = """
extern "C" __global__ void __launch_bounds__(256)
selu(const float* __restrict__ x, float* __restrict__ y, int n) {
  const int i = 4 * (blockIdx.x * 256 + threadIdx.x);
  if (i < n) {
    const float4 a = *reinterpret_cast<const float4*>(x + i);
    const float in[4] = {a.x, a.y, a.z, a.w};
    float out[4];
    for (int c = 0; c < 4; c++)
      out[c] = 1.0507009f * (in[c] > 0 ? in[c] : 1.6732632f * expm1f(in[c]));
    *reinterpret_cast<float4*>(y + i) = make_float4(out[0], out[1], out[2], out[3]);
  }
}
"""

SUM = """
extern "C" __global__ void __launch_bounds__(256)
sum(const float* __restrict__ x, float* __restrict__ y, int n) {
  __shared__ float part[8];
  float s = 0;
  for (int i = threadIdx.x; i < n; i += 256) s += x[i];
  for (int d = 16; d; d >>= 1) s += __shfl_xor_sync(0xffffffffu, s, d);
  if ((threadIdx.x & 31) == 0) part[threadIdx.x >> 5] = s;
  __syncthreads();
  if (threadIdx.x == 0) {
    for (int w = 1; w < 8; w++) s += part[w];
    y[0] = s;
  }
}
"""

TREE = """
extern "C" __global__ void __launch_bounds__(256)
tree(const float* __restrict__ x, float* __restrict__ y) {
  __shared__ float part[256];
  const int t = threadIdx.x;
  part[t] = x[t];
  __syncthreads();
  for (int half = 128; half; half >>= 1) {
    if (t < half) part[t] += part[t + half];
    __syncthreads();
  }
  if (t == 0) y[0] = part[0];
}
"""

TRANSPOSE = """
extern "C" __global__ void __launch_bounds__(256)
transpose(const float* __restrict__ x, float* __restrict__ y, int rows, int columns) {
  __shared__ float tile[32][33];
  const int left = blockIdx.x * 32, top = blockIdx.y * 32;
  for (int r = threadIdx.y; r < 32; r += 8)
    if (top + r < rows && left + threadIdx.x < columns)
      tile[r][threadIdx.x] = x[(top + r) * columns + left + threadIdx.x];
  __syncthreads();
  for (int r = threadIdx.y; r < 32; r += 8)
    if (left + r < columns && top + threadIdx.x < rows)
      y[(left + r) * rows + top + threadIdx.x] = tile[threadIdx.x][r];
}
"""

PRODUCT = """
extern "C" __global__ void __launch_bounds__(256)
product(const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ c,
        int n) {
  __shared__ float left[16][16], right[16][16];
  const int row = blockIdx.y * 16 + threadIdx.y, column = blockIdx.x * 16 + threadIdx.x;
  float s = 0;
  for (int k = 0; k < n; k += 16) {
    left[threadIdx.y][threadIdx.x] = a[row * n + k + threadIdx.x];
    right[threadIdx.y][threadIdx.x] = b[(k + threadIdx.y) * n + column];
    __syncthreads();
    for (int j = 0; j < 16; j++) s += left[threadIdx.y][j] * right[j][threadIdx.x];
    __syncthreads();
  }
  c[row * n + column] = s;
}
"""

CENTRE = """
extern "C" __global__ void __launch_bounds__(64)
centre(float* __restrict__ x, int columns) {
  __shared__ float part[2];
  float* row = x + blockIdx.x * columns;
  float s = 0;
  for (int i = threadIdx.x; i < columns; i += 64) s += row[i];
  for (int d = 16; d; d >>= 1) s += __shfl_down_sync(0xffffffffu, s, d);
  if ((threadIdx.x & 31) == 0) part[threadIdx.x >> 5] = s;
  __syncthreads();
  const float mean = (part[0] + part[1]) / columns;
  for (int i = threadIdx.x; i < columns; i += 64) row[i] -= mean;
}
"""

COUNT = """
extern "C" __global__ void __launch_bounds__(128)
count(const int* __restrict__ x, int* __restrict__ bins, int n) {
  const int i = blockIdx.x * 128 + threadIdx.x;
  if (i < n) atomicAdd(bins + x[i], 1);
}
"""

SHIFT = """
extern "C" __global__ void __launch_bounds__(32)
shift(const float* __restrict__ x, float* __restrict__ y) {
  __shared__ float row[32];
  row[threadIdx.x] = x[threadIdx.x];
  __syncwarp();
  y[threadIdx.x] = row[(threadIdx.x + 1) & 31];
}
"""


class Case(NamedTuple):
    """A kernel, how it is launched, and what it has to write.

    Attributes:
      source: its text.
      grid, block: how many blocks, and threads in each.
      given: arrays and numbers that it only reads; None where its result stands.
      before: what stands in the result before.
      after: what has to stand there then.
    """

    source: str
    grid: tuple
    block: tuple
    given: tuple
    before: np.ndarray
    after: np.ndarray

    def arguments(self):
        """Return fresh arguments, and the array among them that becomes the result."""
        out = self.before.copy()
        return [out if x is None else x for x in self.given], out


def _numbers(*shape):
    array = np.random.default_rng(0).standard_normal(shape, np.float32)
    return _read_only(array)


def _read_only(array):
    array.flags.writeable = False
    return array


def _empty(*shape):
    return np.full(shape, np.nan, np.float32)


def _selu(x):
    return np.float32(1.0507009) * np.where(x > 0, x, 1.6732632 * np.expm1(x))


_x, _row, _wide = _numbers(4096), _numbers(32), _numbers(70, 45)
_a, _b, _places = _numbers(32, 32), _numbers(32, 32)[::-1].copy(), np.arange(500) % 7
_b, _places = _read_only(_b), _read_only(_places.astype(np.int32))
_bins = np.bincount(_places).astype(np.int32)
_size = np.int32

CASES = {
    "selu": Case(
        SELU, (5,), (256,), (_x, None, _size(4096)), _empty(4096), _selu(_x)
    ),
    "sum": Case(SUM, (1,), (256,), (_x, None, _size(4096)), _empty(1), _x.sum()),
    "tree": Case(TREE, (1,), (256,), (_x[:256], None), _empty(1), _x[:256].sum()),
    "transpose": Case(
        TRANSPOSE, (2, 3), (32, 8), (_wide, None, _size(70), _size(45)),
        _empty(45, 70), _wide.T,
    ),
    "product": Case(
        PRODUCT, (2, 2), (16, 16), (_a, _b, None, _size(32)), _empty(32, 32), _a @ _b
    ),
    "centre": Case(
        CENTRE, (70,), (64,), (None, _size(45)),
        _wide, _wide - _wide.mean(1, keepdims=True),
    ),
    "count": Case(
        COUNT, (4,), (128,), (_places, None, _size(500)),
        np.zeros(7, np.int32), _bins,
    ),
    "shift": Case(SHIFT, (1,), (32,), (_row, None), _empty(32), np.roll(_row, -1)),
}  # fmt: skip

_SYNC = "__syncthreads();"


def _without(text, nth=0):
    """Return an edit that takes the n-th appearance of a text out."""

    def edit(source):
        parts = source.split(text)
        head, tail = text.join(parts[: nth + 1]), text.join(parts[nth + 1 :])
        return head + tail

    return edit


def _instead(old, new):
    def edit(source):
        if old not in source:
            raise ValueError(f"{old!r} is not there")
        return source.replace(old, new, 1)

    return edit


class Mutant(NamedTuple):
    """A slip: in which kernel, what is edited, what the message has to contain."""

    kernel: str
    edit: object
    message: str


MUTANTS = {
    "sum without its barrier": Mutant("sum", _without(_SYNC), "race|before"),
    "sum where some threads skip the barrier": Mutant(
        "sum", _instead(_SYNC, f"if (threadIdx.x < 100) {_SYNC}"), "deadlock"
    ),
    "sum where one thread returns early": Mutant(
        "sum", _instead("float s = 0;", "float s = 0; if (threadIdx.x == 77) return;"),
        "deadlock",
    ),
    "sum with a barrier on either side of a branch": Mutant(
        "sum", _instead(_SYNC, f"if (threadIdx.x < 32) {_SYNC}\nelse {_SYNC}"),
        "divergent barrier",
    ),
    "sum whose shuffle half of the lanes reach": Mutant(
        "sum", _instead("for (int d", "if (threadIdx.x & 1) for (int d"), "deadlock"
    ),
    "sum whose mask leaves lanes out": Mutant(
        "sum", _instead("0xffffffffu", "0xffffu"), "leaves it out"
    ),
    "sum that forgets half of the parts": Mutant(
        "sum", _instead("[threadIdx.x >> 5]", "[(threadIdx.x >> 5) & 3]"), "race"
    ),
    "sum of parts that do not exist": Mutant(
        "sum", _instead("w < 8", "w < 9"), "out of bounds"
    ),
    "tree without its first barrier": Mutant("tree", _without(_SYNC), "race|before"),
    "tree without the barrier in its loop": Mutant("tree", _without(_SYNC, 1), "race"),
    "tree that adds in place across the halves": Mutant(
        "tree", _instead("if (t < half)", "if (t <= half)"), "race|out of bounds"
    ),
    "transpose without its barrier": Mutant(
        "transpose", _without(_SYNC), "race|before"
    ),
    "transpose in a tile that is too narrow": Mutant(
        "transpose", _instead("[32][33]", "[32][31]"), "out of bounds|race"
    ),
    "transpose without a bound on its rows": Mutant(
        "transpose", _instead("top + r < rows && ", ""), "out of bounds"
    ),
    "product without the barrier before it reads": Mutant(
        "product", _without(_SYNC), "race|before"
    ),
    "product without the barrier before it writes": Mutant(
        "product", _without(_SYNC, 1), "race"
    ),
    "product one row too far": Mutant(
        "product", _instead("k + threadIdx.y)", "k + threadIdx.y + 1)"), "out of bounds"
    ),
    "selu that goes one vector too far": Mutant(
        "selu", _instead("i < n", "i <= n"), "out of bounds"
    ),
    "selu of unaligned vectors": Mutant(
        "selu", _instead("(x + i)", "(x + i + 1)"), "misaligned"
    ),
    "selu that writes what it reads": Mutant(
        "selu", _instead("float4*>(y + i)", "float4*>(const_cast<float*>(x) + i)"),
        "read-only",
    ),
    "centre without its barrier": Mutant("centre", _without(_SYNC), "race|before"),
    "centre that writes before all have read": Mutant(
        "centre", _instead("s += row[i];", "{ s += row[i]; row[0] = 0; }"), "race"
    ),
    "count without atomic additions": Mutant(
        "count", _instead("atomicAdd(bins + x[i], 1)", "bins[x[i]] += 1"), "race"
    ),
    "count that mixes atomic and plain": Mutant(
        "count",
        _instead("if (i < n)", "if (i == 3) bins[0] = 5; if (i < n)"), "race",
    ),
    "shift without its warp barrier": Mutant(
        "shift", _instead("__syncwarp();", ""), "race|before"
    ),
}  # fmt: skip
