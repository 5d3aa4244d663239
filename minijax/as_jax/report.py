"""What is said after a run under the name jax: tests, time, names, differences."""

# Made from chapters/42_as_jax_rest.md by `make chapter`;
# edit the chapter, not this file.

import time
from collections import Counter

from minijax import monitoring
from minijax.as_jax.aliases import VERSION, asked, missing

# Names of JAX whose meaning here a test may notice, and how.
DIFFERENCES = {
    "jax.export": "`export` writes text",
    "jax.pmap": "with an axis that an argument does not have is a `ValueError`",
    "jax.profiler.trace": "sees no steps inside of compiled programs",
    "jax.numpy.unique": "with a `size` returns that many places",
    "jax.numpy.linalg.qr": "Signs and phases of the columns",
    "jax.numpy.linalg.svd": "Signs and phases of the columns",
    "jax.numpy.linalg.eig": "Signs of the vectors of `eig` may differ",
    "jax.lax.approx_max_k": "return exactly the best `k`",
    "jax.scipy.optimize.minimize": "halves and doubles its steps",
    "jax.debug.print": "happen in the order of the program",
    "jax.experimental.io_callback": "happen in the order of the program",
    "jax.lax.associative_scan": "never calls its function with empty arrays",
    "jax.sharding.AxisType": "behave as JAX's `Auto` axes",
    "jax.custom_vjp": "finds in its closure",
    "jax.custom_jvp": "finds in its closure",
}
COMPILED = "/jax/core/compile/backend_compile_duration"
outcomes: Counter = Counter()  # of tests; the plugin counts them


class Report:
    """A block in which a program runs; printed, it says what a maintainer asks.

    Attributes:
      seconds: how long the block took.
      compiles: pairs of seconds and names, of the programs that were compiled.
    """

    def __init__(self, longest=5):
        self.longest, self.seconds, self.compiles = longest, 0.0, []

    def __enter__(self):
        monitoring.register_event_duration_secs_listener(self._hear)
        self.start = time.perf_counter()
        return self

    def __exit__(self, *_):
        self.seconds = time.perf_counter() - self.start
        monitoring.unregister_event_duration_listener(self._hear)

    def _hear(self, event, duration, **facts):
        if event == COMPILED:
            self.compiles.append((duration, facts.get("fun_name", "?")))

    def __str__(self):
        parts = [self._time(), self._tests(), _missing_names(), self._slowest()]
        lines = [line for part in (*parts, _differences()) for line in part]
        return "\n".join([f"minijax as jax {VERSION}", *lines])

    def _time(self):
        count, compiling = len(self.compiles), sum(took for took, _ in self.compiles)
        yield f"  time: {self.seconds:.1f} s"
        yield f"  compiling: {compiling:.1f} s of it, for {count} programs"

    def _tests(self):
        if outcomes:
            counts = ", ".join(f"{n} {what}" for what, n in sorted(outcomes.items()))
            yield f"  tests: {counts}"

    def _slowest(self):
        slowest = sorted(self.compiles, reverse=True)[: self.longest]
        if slowest:
            yield "  what took longest to compile:"
            yield from (f"    {seconds:.2f} s  {name}" for seconds, name in slowest)


def _missing_names():
    if missing:
        yield "  asked for in vain (the program may have had another way):"
        yield from (f"    {name}  {place}" for name, place in sorted(missing.items()))


def _differences():
    touched = {text: name for name, text in DIFFERENCES.items() if name in asked}
    if touched:
        yield "  asked for, and declared to differ (book/differences):"
        yield from (f"    {name}: {text}" for text, name in touched.items())
