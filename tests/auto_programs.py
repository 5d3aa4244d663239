"""Random programs of NumPy's kind, watched by autojit, against plain runs.

Run ``python -m tests.auto_programs --seed 0 --count 1000``.

A program is the text of a function with loops, ifs that look at values, numbers that
change from turn to turn, shapes that change, updates, names that share an array,
buffers of NumPy that are written to after their use, mistakes that are caught, random
keys, and jitted, mapped and differentiated functions. What it sees on the way is its
log. It runs plainly, and then watched, each time three times in a row: as emitted
Python, where each bit has to be the same, and compiled, where sums and products may
round differently.
"""

import argparse
import linecache
import traceback

import numpy as np

import minijax
import minijax.numpy as jnp
from minijax import lax
from minijax.experimental import autojit

NAMES = "abcd"
_LINES = """
    {x} = jnp.sin({y}) * {s} + {z}
    {x} = jnp.where({y} > {n}, {z}, {x} * {s})
    {x} = ({y} - {z}) / (1.0 + {y} * {y})
    {x} = jnp.tanh({x}) + {y}.mean()
    {x} = jnp.maximum({y}, {z}) * 0.5
    {x} = {y} * i + {n}
    {x} = {y} * (i % 2)
    {x} = jnp.clip({y}, -0.9, {s}) - 0.0
    {x} = jnp.cumsum({y}) / 8.0
    {x} = {y}[::-1] + jnp.roll({z}, i)
    {x} = {x}.at[i % 4].set({y}[(i + 1) % 4])
    {x} = {x}.at[1:3].add({s})
    {x} = {x}.at[i % 3].multiply(0.25)
    {x} = jnp.sort({y}) * {n}
    {x} = jnp.stack([{y}, {z}]).sum(0) * 0.5
    {x} = jnp.concatenate([{y}[: i % 4], {z}[i % 4 :]])
    {x} = jnp.sin({y} @ jnp.outer({z}, {z}) * 0.1)
    {x} = ({y}[:, None] * {z}).mean(0)
    {x} = {y}
    {x} = {x} + buffer
    buffer[i % N] = i * 0.5
    buffer += 0.125
    s = s * 0.875 + 0.01
    s = float({x}[i % N]) * 0.5
    kept.append({x})
    kept = kept[-2:]
    {x} = kept[0] * 1.0 if kept else {x}
    log.append(float({x}.sum()))
    log.append({x})
    log.append(np.asarray({x} * 2.0).max())
    log.append((({x} * 2.0)[: i % 5 + 1]).sum())
    log.append(str(({x} > 0.2).tolist()))
    log.append({x}.at[i % N].get() + jnp.arange(3.0))
    key, part = jax.random.split(key)
    {x} = {x} + jax.random.normal(key, (N,)) * 0.1
    {x} = doubled({x}) * 0.5
    {x} = jax.grad(lambda t: (jnp.sin(t) * {y}).sum())({x})
    {x} = jax.vmap(lambda t: t * {s})({y})
    {x} = lax.fori_loop(0, 2, halved, {x})
    {x} = jax.nn.relu({x}) - jax.nn.softmax({y})
    {x} = given_up({x} * 1.0)
    log.append((({y} * 4).astype(int) // (i + 1)).sum())
    log.append(jnp.float32(2.0) ** {x}.sum() * s)
    log.append(({x} + jnp.float16(i)).dtype)
"""
LINES = [line.strip() for line in _LINES.strip().splitlines()]
MISTAKES = ["{x} + jnp.ones(3)", "{x}.reshape(3, 3)", "{x}[None].at['k'].set(1)"]
QUESTIONS = [
    "{x}.sum() > {n}", "float({x}[i % N]) < {n}", "bool(({x} > 0.4).any())",
    "i % 3 == 0", "np.asarray({x}).mean() > {y}.mean() + 0.0131", "len(log) % 2",
]  # fmt: skip


class Program:
    """A random program.

    Attributes:
      source: its text, a function called ``program``.
    """

    def __init__(self, seed, length=9):
        self.rng = np.random.default_rng(seed)
        self.size = int(self.rng.choice([8, 8, 150]))
        body = self.block(length, 2)
        self.source = "\n".join([
            "def program(a, b, c, d, key, turns):",
            "    log, kept, s, buffer = [], [], 0.75, np.linspace(0, 1, N)",
            "    buffer = buffer.astype(np.float32)",
            "    for i in range(turns):",
            *(f"        {line}" for line in body),
            "    return [*log, a, b, c, d, *kept]",
        ])  # fmt: skip

    def filled(self, line):
        pick = {name: self.rng.choice([*NAMES]) for name in "xyz"}
        number = round(float(self.rng.normal()), 3)
        return line.format(s=self.rng.choice(["s", "0.5", "1.5"]), n=number, **pick)

    def block(self, length, depth):
        lines = []
        for _ in range(length):
            kind = self.rng.random()
            if depth and kind < 0.12:
                lines += [f"if {self.filled(self.rng.choice(QUESTIONS))}:"]
                lines += [f"    {x}" for x in self.block(2, depth - 1)]
                lines += ["else:"]
                lines += [f"    {x}" for x in self.block(1, depth - 1)]
            elif depth and kind < 0.18:
                lines += [f"for j in range({self.rng.integers(1, 5)}):"]
                lines += [f"    {x}" for x in self.block(2, depth - 1)]
            elif kind < 0.22:
                mistake = self.filled(self.rng.choice(MISTAKES))
                lines += ["try:", f"    log.append({mistake})"]
                lines += ["except Exception as error:", "    log.append(told(error))"]
            else:
                lines.append(self.filled(self.rng.choice(LINES)))
        return lines

    def problems(self, turns=4):
        """Return what is wrong with watched runs, a list of sentences."""
        run, plain = self.function(), None
        plain = self.outcome(run, turns)
        found = []
        for patience, exact in ((1e9, True), (0.0, False)):
            watch = autojit(patience=patience, longest=int(self.rng.choice([7, 256])))
            for repeat in range(3):
                got = self.outcome(watch(run), turns)
                wrong = difference(plain, got, exact)
                if wrong:
                    way = "as Python" if exact else "compiled"
                    found.append(f"{way}, run {repeat}: {wrong}")
        return found

    def outcome(self, run, turns):
        """Return the log of a run, or the error that has ended it."""
        rng = np.random.default_rng(1)
        drawn = [rng.normal(size=self.size) for _ in NAMES]
        arrays = [jnp.asarray(x, np.float32) for x in drawn]
        try:
            return run(*arrays, minijax.random.key(3), turns)
        except Exception as error:
            return [told(error)]

    def function(self):
        name = "<auto program>"
        linecache.cache[name] = (
            len(self.source),
            None,
            [*self.source.splitlines(1)],
            name,
        )
        names = {"np": np, "jnp": jnp, "jax": minijax, "lax": lax, "N": self.size}
        names |= {
            "told": told,
            "doubled": doubled,
            "halved": halved,
            "given_up": given_up,
        }
        exec(compile(self.source, name, "exec"), names)
        return names["program"]


doubled = minijax.jit(lambda x: x + x)
_donating = minijax.jit(lambda x: x * 0.5, donate_argnums=0)


def halved(i, x):
    return x * 0.5 + i * 0.125


def given_up(x):
    """Give an array away, and see to it that it is gone."""
    result = _donating(x)
    if not x.is_deleted():
        raise AssertionError("an array that was given away is still there")
    return result


def told(error):
    """Return the class of an error, and the line of the program that it names."""
    lines = [
        frame.lineno
        for frame in traceback.extract_tb(error.__traceback__)
        if frame.filename == "<auto program>"
    ]
    where = lines[-1] if lines else traceback.format_exc()
    return f"{type(error).__name__} in line {where}: {error}"


def difference(plain, got, exact):
    """Return what differs in two logs, or None."""
    if len(plain) != len(got):
        return f"{len(plain)} entries and {len(got)}: {plain[-1]}, {got[-1]}"
    for place, (x, y) in enumerate(zip(plain, got)):
        if type(x) is not type(y):
            return f"entry {place}: {type(x)} and {type(y)}"
        if isinstance(x, str | np.dtype):
            same = x == y
        else:
            if getattr(x, "aval", None) != getattr(y, "aval", None):
                return f"entry {place}: {x.aval} and {y.aval}"
            same = alike(np.asarray(x), np.asarray(y), exact)
        if not same:
            return f"entry {place}: {x} and {y}"
    return None


def alike(x, y, exact):
    """Return whether two arrays have the same bits, or nearly the same numbers."""
    if exact or x.dtype.kind not in "fc":
        return x.tobytes() == y.tobytes()
    return np.allclose(x, y, rtol=2e-3, atol=2e-4, equal_nan=True)


def main():
    """Run programs from the command line, and print what is wrong."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=100)
    options = parser.parse_args()
    wrong = 0
    for seed in range(options.seed, options.seed + options.count):
        program = Program(seed)
        found = program.problems()
        if found:
            wrong += 1
            print(f"seed {seed}:", *found, program.source, sep="\n")
    print(f"{options.count} programs, {wrong} with problems")
    raise SystemExit(bool(wrong))


if __name__ == "__main__":
    main()
