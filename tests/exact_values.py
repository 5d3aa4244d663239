"""Values of random programs whose numbers are whole, and their sums exact.

A step of a program is a function of a `Draw` and a value. It returns an expression and
a bound: no number in the result, nor in a part of a sum, is further from zero. A step
whose bound is too large for its dtype is not taken. Two ways of running a program then
have to agree bit by bit, in floats too.
"""

import numpy as np

from tests.random_programs import Package, dtype_kind

# Below these all sums of whole numbers are exact, with a bit to spare.
EXACT_BELOW = {
    "float16": 2**10, "bfloat16": 2**7, "float32": 2**22, "float64": 2**50,
    "complex64": 2**21, "complex128": 2**49,
}  # fmt: skip
TRIES, RANK = 12, 4


class Unfit(Exception):
    """A step is not possible for these values, or would not be exact."""


def need(condition):
    """Give a step up unless a condition holds."""
    if not condition:
        raise Unfit


class Value:
    """An array of a program.

    Attributes:
      text: an expression in other values.
      array: what it is while the program is drawn.
      bound: of its absolute numbers, of real and imaginary parts alone.
    """

    def __init__(self, text, array, bound):
        self.text, self.array, self.bound = text, array, bound
        self.shape, self.ndim, self.size = tuple(array.shape), array.ndim, array.size
        self.dtype, self.kind = array.dtype.name, dtype_kind(array)

    def __str__(self):
        return self.text

    def measured(self):
        """The largest absolute number that is there."""
        if not self.size or self.kind == "b":
            return min(self.size, 1)
        x = np.asarray(self.array).astype(complex if self.kind == "c" else float)
        return float(np.max(np.maximum(np.abs(x.real), np.abs(x.imag))))

    def is_exact(self):
        """Whether the bound holds, and all numbers are whole."""
        if self.kind not in "fc":
            return True
        x = np.asarray(self.array).astype(complex if self.kind == "c" else float)
        whole = np.array_equal(x.real, np.rint(x.real))
        return (
            whole
            and np.array_equal(x.imag, np.rint(x.imag))
            and (self.measured() <= self.bound)
        )

    @property
    def type_text(self):
        """An expression of the dtype."""
        return "jnp.bfloat16" if self.dtype == "bfloat16" else repr(self.dtype)


def fits(dtype, bound):
    """Whether numbers below a bound are exact; those of integers always are."""
    return bound <= EXACT_BELOW.get(dtype, np.inf)


class Draw:
    """Draws steps of a program.

    Args:
      rng: of NumPy.
      package: a `Package` that evaluates expressions.
      values: those that steps may read.
      most: how many numbers a value has at most.

    Attributes:
      refused: what was not as promised, texts: an error, a bound that does not hold.
      operand: the name of the operand of a function that is drawn here.
    """

    def __init__(self, rng, values, most, outer=None):
        self.rng, self.values, self.most = rng, list(values), most
        self.package = outer.package if outer else Package("minijax")
        self.refused = outer.refused if outer else []
        self.operand = f"{outer.operand}r" if outer else "r"

    # Chances.

    def one(self, items):
        """One of some things."""
        need(len(items))
        return items[int(self.rng.integers(len(items)))]

    def chance(self, probability):
        """Whether something happens."""
        return bool(self.rng.random() < probability)

    def below(self, low, high):
        """A whole number, the second one excluded."""
        return int(self.rng.integers(low, high))

    def axis(self, x):
        """An axis of a value that has numbers."""
        need(x.ndim and x.size)
        return self.below(0, x.ndim)

    def axes(self, x):
        """Some axes of a value, in order."""
        need(x.ndim and x.size)
        return tuple(sorted({self.axis(x) for _ in range(self.below(1, x.ndim + 1))}))

    def exact(self, x, options):
        """One of the pairs of an expression and a bound that are exact for a value."""
        return self.one([pair for pair in options if fits(x.dtype, pair[1])])

    # Other values.

    def peer(self, x, dtype=None):
        """A value of the same dtype that broadcasts against this one."""
        return self.one([y for y in self.values if self.is_peer(x, y)])

    def is_peer(self, x, y):
        """Whether two values can be added."""
        try:
            shape = np.broadcast_shapes(x.shape, y.shape)
        except ValueError:
            return False
        return x.dtype == y.dtype and len(shape) <= RANK and np.prod(shape) <= self.most

    def like(self, x, **wanted):
        """Values of the same dtype as another one, and with these attributes."""
        return [
            y
            for y in self.values
            if y.dtype == x.dtype and y.size
            if all(getattr(y, name) == value for name, value in wanted.items())
        ]

    def start(self):
        """An expression of an integer that is often out of bounds."""
        places = [y for y in self.values if y.dtype == "int32" and y.size]
        if places and self.chance(0.8):
            return f"({self.one(places)}.reshape(-1)[{self.below(-1, 1)}] % 50 - 5)"
        return f"jnp.int32({self.below(-5, 45)})"

    def places(self, size):
        """A `Value` of integers of one or two axes, of any dtype that has such."""
        kept = [y for y in self.values if y.kind in "iu" and y.ndim in (1, 2)]
        kept = [y for y in kept if 0 < y.size <= 3000]
        if kept and self.chance(0.8):
            return self.one(kept)
        text = f"((jnp.arange({max(1, min(size, 3000))}) * 7) % 11 - 2)"
        return Value(text, self.evaluate(text), 8)

    # Steps.

    def evaluate(self, text):
        """The array of an expression, or the error."""
        known = {value.text: value.array for value in self.values}
        function = self.package.function([("result", text)], ["result"])
        found = self.package.attempt(function, known)
        return found if isinstance(found, Exception) else found[0]

    def step(self, x, steps):
        """A new `Value` that one of some steps makes of a value, or None."""
        for _ in range(TRIES):
            try:
                text, bound = self.one(steps)(self, x)
            except Unfit:
                continue
            found = self.evaluate(text)
            if isinstance(found, Exception):
                self.refused.append(f"{text}: {type(found).__name__}: {found}")
            elif found.size <= self.most and found.ndim <= RANK:
                return Value(text, found, bound)
        return None

    def body(self, x, row, steps, count, others=()):
        """The `Value` of a function's body with one operand.

        Args:
          x: the value whose bound the operand has.
          row: an expression of an operand; the others are like this one.
          steps: to take from.
          count: how many.
          others: more values that may be read.
        """
        operand = Value(self.operand, self.evaluate(row), x.bound)
        inner = Draw(self.rng, [operand, *others, *self.values], self.most, self)
        last = operand
        for _ in range(count):
            found = inner.step_within(last, steps)
            last = last if found is None else found
        return last

    def step_within(self, x, steps):
        """As `step`, in parentheses, since it becomes a part of another expression."""
        self.values[0:0] = [] if x in self.values else [x]
        found = self.step(x, steps)
        return found and Value(f"({found.text})", found.array, found.bound)
