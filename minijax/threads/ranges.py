# Made from chapters/26_threads.md by `make chapter`;
# edit the chapter, not this file.
"""Kernels as functions that do some turns of their outermost loop."""

from minijax.kernels.kernel import Node, operations, traffic
from minijax.kernels.loop_nests import Loop
from minijax.vectors.kernels import KernelText, function_of, vector_nest
from minijax.vectors.nests import VectorLoop, is_short


class RangeText(KernelText):
    """The text of a kernel's function that does the turns from ``%lo`` to ``%hi``.

    Attributes:
      outside: whether the outermost loop has yet to be written.
    """

    def __init__(self, kernel):
        super().__init__(kernel)
        self.outside = True
        self.depths |= {"%lo": 0, "%hi": 0}

    def turns(self, first, step, count, carried, body):
        """Write a loop; of the outermost one, the turns that were asked for."""
        if not self.outside:
            return super().turns(first, step, count, carried, body)
        self.outside = False
        (self._between if count > 1 else self._last)(first, step, count, body)
        self.outside = True
        return []

    def _between(self, first, step, count, body):
        number = self.count = self.count + 1
        index, entry, self.block = f"%i{number}", self.block, f"loop{number}"
        self._open([index])
        body(index, [])
        following = self.emit(f"add nuw nsw i64 {index}, {step}", "n")
        more = self.emit(f"icmp ult i64 {following}, %limit{number}", "b")
        self.line(f"br i1 {more}, label %loop{number}, label %done{number}")
        last, inside = self.block, self.scopes.pop().lines
        self.at(self.depth - 1)
        below = self.emit(f"icmp ult i64 %hi, {first + step * count}", "b")
        limit = f"select i1 {below}, i64 %hi, i64 {first + step * count}"
        self.line(f"%limit{number} = {limit}")
        some = self.emit(f"icmp ult i64 %lo, %limit{number}", "b")
        self.line(f"br i1 {some}, label %loop{number}, label %done{number}")
        self.start(f"loop{number}")
        pairs = f"[ %lo, %{entry} ], [ {following}, %{last} ]"
        self.lines += [f"  {index} = phi i64 {pairs}", *inside]
        self.start(f"done{number}")

    def _last(self, first, step, count, body):
        if count:
            number = self.count = self.count + 1
            mine = self.emit(f"icmp ugt i64 %hi, {first}", "b")
            self.line(f"br i1 {mine}, label %last{number}, label %end{number}")
            self.start(f"last{number}")
            body(first, [])
            self.line(f"br label %end{number}")
            self.start(f"end{number}")


def outermost(kernel, target):
    """Return the one loop of a kernel that can be cut, or None."""
    *before, loop = vector_nest(kernel, target) or [None]
    if not isinstance(loop, (Loop, VectorLoop)) or loop.folds:
        return None
    if not all(isinstance(step, Node) for step in before):
        return None
    lanes = unit_of(loop)
    enough = kernel.sizes[loop.axis] >= 4 * lanes
    unrolled = isinstance(loop, Loop) and is_short(kernel, loop)
    return loop if enough and not unrolled else None


def unit_of(loop):
    """Return of what a part of a loop has to be a multiple."""
    return loop.lanes if isinstance(loop, VectorLoop) else 1


def range_function(kernel, name, target):
    """Return the `FunctionText` of a kernel with ``i64 %lo, i64 %hi`` at its end."""
    more = "i64 %lo", "i64 %hi"
    return function_of(RangeText(kernel), name, target, "noinline", more)


def time_of_kernel(kernel, target):
    """Return about how many nanoseconds one thread takes for a kernel."""
    counts, lanes = operations(kernel), target.vector_bytes // 4
    work = counts["flops"] + 10 * counts["transcendentals"]
    return sum(traffic(kernel)) / 40 + work / (2 * lanes)
