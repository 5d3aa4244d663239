"""Random programs with own rules, forgetting and random keys, besides control flow.

`RulesProgram` is a `tests.program_writer.Program` with more kinds of statements: calls
of functions with a `custom_jvp`, a `custom_vjp` or a `checkpoint`, and of functions
that are given keys, in loops, branches and batches. Keys are not among the values of a
scope, since nothing but `jax.random` takes them; `keys` has the names of those in
sight. The rules make derivatives half as large again, so that one that is left out is
seen.
"""

from functools import partial
from itertools import product

from tests.program_writer import DTYPES, Program
from tests.random_programs import Gaps, dtype_kind, numbers

OWN = "custom_jvp custom_vjp custom_gradient remat split fold keyed_scan".split()
OWN += ["carried_key", "keyed_map", "keyed_cond", "keyed_jit"]
OTHERS = "cond scan fori while vmap jit grad jvp".split()
OUTER = "jit vmap grad jvp checkpoint linearize".split()
PAIRS = [*product(OUTER, repeat=2)]
SIZES = 0, 1, 7, 8, 9, 15, 16, 17, 31, 33  # around the lanes of a vector
HALVES = ["float16", "bfloat16"]
KEYS = ["key", "key", "PRNGKey", "none"]  # how a program is given one
DRAWS = [
    "jax.random.normal({key}, {x}.shape) * {o}",
    "jax.random.uniform({key}, {x}.shape)",
    "jax.random.uniform({key}, (), minval={few}, maxval=5)",
    "jax.random.normal({key}, (2, 3))",
    "(jax.random.bits({key}, (3,), 'uint8') % 7).astype('int32')",
    "(jax.random.bits({key}) % 5).astype('int32')",
    "jnp.where(jax.random.uniform({key}, {x}.shape) < 0.7, {x}, 0)",
    "jnp.sin(jax.random.key_data({key}).astype('float32'))",
]
LARGER = "larger({})"
DENSE = "np.zeros(t.shape, t.dtype) if type(t) is zero else t"
RATES = "jax.jvp({inner}, primals, tangents)"
# By name: the function, options, what is given in a call, and the lines of the rule.
JVP_RULES = {
    "jvp": ("{inner}", "", "{operands}", [
        "@{ruled}.defjvp", "def rule(primals, tangents):",
        f"    out, slope = {RATES}", f"    return out, {LARGER.format('slope')}",
    ]),
    "jvp that calls": ("{inner}", "", "{operands}", [
        "@{ruled}.defjvp", "def rule(primals, tangents):",
        f"    return {{ruled}}(*primals), {LARGER.format(f'{RATES}[1]')}",
    ]),
    "jvps": ("{inner}", "", "{operands}", [
        "def slope_of(i):",
        "    def slope(t, out, *xs):",
        "        f = lambda x: {inner}(*xs[:i], x, *xs[i + 1:])",
        f"        return {LARGER.format('jax.jvp(f, (xs[i],), (t,))[1]')}",
        "    return slope",
        "{ruled}.defjvps(*map(slope_of, range(len(({operands},)))))",
    ]),
    "jvp of a tree": ("lambda tree: {inner}(*tree['xs'])", "",
        "{{'xs': ({operands},), 'none': None}}", [
        "@{ruled}.defjvp", "def rule(primals, tangents):",
        "    primals, tangents = primals[0]['xs'], tangents[0]['xs']",
        f"    out, slope = {RATES}", f"    return out, {LARGER.format('slope')}",
    ]),
    "jvp with a static": ("lambda f, *xs: f(*xs)", ", nondiff_argnums=(0,)",
        "{inner}, {operands}", [
        "@{ruled}.defjvp", "def rule(f, primals, tangents):",
        f"    return {{ruled}}(f, *primals), {LARGER.format(f'{RATES}[1]')}",
    ]),
    "jvp with zeros": ("{inner}", "", "{operands}", [
        "def rule(primals, tangents):",
        "    zero = jax.custom_derivatives.SymbolicZero",
        f"    tangents = tuple([{DENSE} for t in tangents])",
        f"    out, slope = {RATES}", f"    return out, {LARGER.format('slope')}",
        "{ruled}.defjvp(rule, symbolic_zeros=True)",
    ]),
}  # fmt: skip
BACK = LARGER.format("jax.vjp({inner}, *kept['xs'])[1](cts)")
FORWARDS = ["def {fwd}(*xs):", "    return {inner}(*xs), {{'xs': xs}}"]
VJP_RULES = {
    "vjp": ("{inner}", ("", ""), "{operands}", [
        *FORWARDS, "def {bwd}(kept, cts):", f"    return {BACK}",
    ]),
    # A key, of which there is no derivative, is an operand as well.
    "vjp with a key": ("lambda *xs: {inner}(*xs[:-1])", ("", ""), "{operands}, {key}", [
        "def {fwd}(*xs):", "    return {inner}(*xs[:-1]), {{'xs': xs[:-1]}}",
        "def {bwd}(kept, cts):", f"    return {BACK} + (None,)",
    ]),
    "vjp that is made again": ("{inner}", ("", ", optimize_remat=True"), "{operands}", [
        *FORWARDS, "def {bwd}(kept, cts):", f"    return {BACK}",
    ]),
    "vjp of a tree": ("lambda tree: {inner}(*tree['xs'])", ("", ""),
        "{{'xs': ({operands},), 'none': None}}", [
        "def {fwd}(tree):", "    return {inner}(*tree['xs']), tree",
        "def {bwd}(kept, cts):", f"    return {{{{'xs': {BACK}, 'none': None}}}},",
    ]),
    "vjp with a static": ("lambda f, *xs: f(*xs)", (", nondiff_argnums=(0,)", ""),
        "{inner}, {operands}", [
        "def {fwd}(f, *xs):", "    return f(*xs), {{'xs': xs}}",
        "def {bwd}(f, kept, cts):", f"    return {BACK}",
    ]),
    "vjp with zeros": ("{inner}", ("", ", symbolic_zeros=True"), "{operands}", [
        "def {fwd}(*xs):", "    xs = tuple([x.value for x in xs])",
        "    return {inner}(*xs), {{'xs': xs}}",
        "def {bwd}(kept, cts):",
        "    zero = jax.custom_derivatives.SymbolicZero",
        f"    cts = [{DENSE} for t in cts]", f"    return {BACK}",
    ]),
}  # fmt: skip
REMAT = ["", "", ", prevent_cse=False", ", policy=jax.checkpoint_policies.{policy}"]
POLICIES = "everything_saveable nothing_saveable dots_saveable".split()
POLICIES += ["dots_with_no_batch_dims_saveable"]


class KeyGaps(Gaps):
    """Fills the gaps of a template, that for a key among them."""

    def __init__(self, rng, values, keys):
        super().__init__(rng, values)
        self.keys = keys

    def draw_key(self):
        return self.pick(self.keys)


class RulesProgram(Program):
    """A random program with rules and keys; see `Program`.

    Attributes:
      rules: the kinds of rules that were drawn.
      pair: the names of two transformations to try it under, the outer one first.
      given: how it is given a key: ``"key"``, ``"PRNGKey"``, or ``"none"``.
    """

    largest = 2 * max(SIZES)

    def __init__(self, seed, judges, length=5, depth=2):
        self.pair, self.given = PAIRS[seed // 2 % len(PAIRS)], KEYS[seed // 3 % 4]
        self.rules, self.maker = [], self.given if self.given in KEYS[:3] else "key"
        self.keys = [f"jax.random.{self.maker}(5)"]
        self.keys += ["key"] * 3 * (self.given != "none")
        self.kinds_here = [*OWN, *OTHERS]
        if not all(hasattr(judge.jax, "checkpoint") for judge in judges):
            self.kinds_here.remove("remat")
        super().__init__(seed, judges, length, depth)

    def draw_inputs(self):
        """Draw small arrays, or vectors of odd sizes; now and then a number."""
        found = super().draw_inputs() if self.chance(0.5) else self.draw_vectors()
        if self.chance(0.2):
            shape = found["a"].shape
            found["a"] = numbers(self.rng, shape, self.pick(HALVES))
        if self.chance(0.3):
            found[self.pick([*found][1:])] = self.pick([0.7, -0.4, 2, True])
        return found

    def draw_vectors(self):
        size, found = self.pick(SIZES), {}
        for name in "abc"[: self.rng.integers(2, 4)]:
            dtype = self.pick([*DTYPES, *HALVES]) if found else "float32"
            shape = self.pick([(size,), (size,), (2, size), (size, 2), ()])
            found[name] = numbers(self.rng, shape, dtype)
        return found

    def arguments(self, jax):
        arrays = super().arguments(jax)
        if self.given == "none":
            return arrays
        return arrays | {"key": getattr(jax.random, self.given)(7)}

    def statement(self, scope, depth):
        if depth == 0 or self.chance(0.4):
            name = self.new()
            return [f"{name} = {self.expression(scope)}"], [name], "line"
        kind = self.pick(self.kinds_here)
        lines, names = getattr(self, f"write_{kind}")(scope, depth - 1)
        return lines, names, kind

    def expression(self, scope):
        if not self.chance(0.35):
            return super().expression(scope)
        values = {name: scope[name] for name in list(scope)[-5:]}
        return self.pick(DRAWS).format_map(KeyGaps(self.rng, values, self.keys))

    def judged(self, lines, names, scope):
        """Judge the lines, with a constant key for each that is in sight."""
        known = [key for key in self.keys if key.isidentifier()]
        make = f"jax.random.{self.maker}"
        heads = [f"{key} = {make}({n})" for n, key in enumerate(known)]
        return super().judged([*heads, *lines], names, scope)

    def within(self, key, write):
        """Return what `write` returns if there is one more key."""
        before, self.keys = self.keys, [*self.keys, *([key] * 3 if key else [])]
        try:
            return write()
        finally:
            self.keys = before

    def function(self, hint, parameters, scope, depth, results, unpack=()):
        write = super().function
        return self.within(
            None, lambda: write(hint, parameters, scope, depth, results, unpack)
        )

    # Keys.

    def key(self):
        return self.pick(self.keys[-4:])

    def write_split(self, scope, depth):
        names = [self.new("k"), self.new("k")]
        line = f"{', '.join(names)} = jax.random.split({self.key()})"
        self.keys = [*self.keys, *names]
        return [line], []

    def write_fold(self, scope, depth):
        name, line = self.new("k"), f"jax.random.fold_in({self.key()}, "
        line += f"{self.pick([self.number(scope), '7'])})"
        self.keys = [*self.keys, name]
        return [f"{name} = {line}"], []

    def keyed(self, head, key, parameters, scope, depth, results, unpack=()):
        """Return the name and text of a function that sees one more key."""
        name, lines = self.within(
            key,
            lambda: self.function("keyed", parameters, scope, depth, results, unpack),
        )
        lines[0] = f"def {name}({head}):"
        return name, lines

    def outs(self, inner, scope, keep):
        """Choose results, and write them as a list."""
        new = {n: t for n, t in inner.items() if n not in scope} or inner
        keep.extend(self.some(new, 1, 3))
        return f"[{', '.join(keep)}]"

    def write_keyed_scan(self, scope, depth):
        carried, types, initial = self.state(scope, 1)
        key, keep, unpack = self.new("k"), [], f"({', '.join(carried)},) = carry"

        def results(inner):
            outs = self.outs(inner, scope, keep)
            return f"({self.next_state(inner, carried, types)}), {outs}"

        name, lines = self.keyed(
            f"carry, {key}", key, dict(zip(carried, types)), scope, depth, results,
            [unpack],
        )  # fmt: skip
        ends, outs = [self.new() for _ in carried], [self.new() for _ in keep]
        keys = f"jax.random.split({self.key()}, {self.rng.integers(1, 4)})"
        call = f"lax.scan({name}, ({', '.join(initial)},), {keys})"
        left = f"({', '.join(ends)},), [{', '.join(outs)}]"
        return [*lines, f"{left} = {call}"], [*ends, *outs]

    def write_carried_key(self, scope, depth):
        carried, types, initial = self.state(scope, 1)
        key, sub = self.new("k"), self.new("k")
        unpack = [f"({key}, {', '.join(carried)},) = state"]
        step = f"jax.random.fold_in({key}, i)"
        unpack += [f"{key}, {sub} = jax.random.split({self.pick([key, step])})"]

        def results(inner):
            return f"({key}, {self.next_state(inner, carried, types)})"

        name, lines = self.keyed(
            "i, state", sub, dict(zip(carried, types)), scope, depth, results, unpack
        )
        ends = [self.new() for _ in carried]
        high = self.pick(["3", "2", self.number(scope)])
        start = f"({self.key()}, {', '.join(initial)},)"
        call = f"lax.fori_loop(0, {high}, {name}, {start})"
        return [*lines, f"(_, {', '.join(ends)},) = {call}"], ends

    def write_keyed_map(self, scope, depth):
        key, keep = self.new("k"), []
        results = partial(self.outs, scope=scope, keep=keep)
        name, lines = self.keyed(key, key, {}, scope, depth, results)
        names = [self.new() for _ in keep]
        keys = f"jax.random.split({self.key()}, {self.rng.integers(1, 4)})"
        how = self.pick([f"jax.vmap({name})({keys})", f"lax.map({name}, {keys})"])
        return [*lines, f"[{', '.join(names)}] = {how}"], names

    def write_keyed_cond(self, scope, depth):
        key, name = self.new("k"), self.new()
        shape = self.pick(["()", "(3,)"])
        found = [
            f"lambda {key}: jax.random.{draw}({key}, {shape})"
            for draw in self.pick([["normal", "uniform"], ["uniform", "normal"]])
        ]
        call = f"lax.cond({self.predicate(scope)}, {', '.join(found)}, {self.key()})"
        return [f"{name} = {call}"], [name]

    def write_keyed_jit(self, scope, depth):
        key, keep = self.new("k"), []
        operands = self.some(scope, 1, 3)
        parameters = self.parameters(operands, scope)
        head = ", ".join([key, *parameters])
        results = partial(self.outs, scope=scope, keep=keep)
        name, lines = self.keyed(head, key, parameters, scope, depth, results)
        names = [self.new() for _ in keep]
        wrap = self.pick(["jax.jit", "jax.jit", "jax.checkpoint"])
        if "remat" not in self.kinds_here:
            wrap = "jax.jit"
        call = f"{wrap}({name})({', '.join([self.key(), *operands])})"
        return [*lines, f"[{', '.join(names)}] = {call}"], names

    # Rules.

    def closed(self, scope, depth):
        """Return a function to floats, its text, operands, and the results."""
        like = self.pick(["f", "f", "fiub"])
        operands = self.some(scope, 1, 3, lambda t: dtype_kind(t) in like)
        operands = operands or ["a" if "a" in scope else next(iter(scope))]
        if any(dtype_kind(scope[name]) != "f" for name in operands):
            self.rules.append("integers")
        parameters, keep = self.parameters(operands, scope), []

        def results(inner):
            keep.extend(self.some(inner, 1, 3, lambda t: dtype_kind(t) == "f"))
            return f"[{', '.join(keep)}]"

        before, self.keys = self.keys, self.keys[:1]
        name, lines = self.function("inner", parameters, {}, depth, results)
        self.keys = before
        return name, lines, operands, keep

    def called(self, name, operands, keep):
        names = [self.new() for _ in keep]
        return f"[{', '.join(names)}] = {name}({', '.join(operands)})", names

    def write_custom_jvp(self, scope, depth):
        name, lines, operands, keep = self.closed(scope, depth)
        ruled, how = self.new("ruled"), self.pick([*JVP_RULES])
        parameters, options, given, rule = JVP_RULES[how]
        names = {"inner": name, "ruled": ruled, "operands": ", ".join(operands)}
        call, results = self.called(ruled, [given.format(**names)], keep)
        self.rules.append(how)
        return [
            *lines, f"{ruled} = jax.custom_jvp({parameters.format(**names)}{options})",
            *[line.format(**names) for line in rule], call,
        ], results  # fmt: skip

    def write_custom_vjp(self, scope, depth):
        name, lines, operands, keep = self.closed(scope, depth)
        ruled, how = self.new("ruled"), self.pick([*VJP_RULES])
        parameters, options, given, rule = VJP_RULES[how]
        names = {"inner": name, "ruled": ruled, "operands": ", ".join(operands)}
        names |= {"fwd": self.new("fwd"), "bwd": self.new("bwd"), "key": self.key()}
        call, results = self.called(ruled, [given.format(**names)], keep)
        self.rules.append(how)
        return [
            *lines, *[line.format(**names) for line in rule],
            f"{ruled} = jax.custom_vjp({parameters.format(**names)}{options[0]})",
            "{ruled}.defvjp({fwd}, {bwd}".format(**names) + options[1] + ")", call,
        ], results  # fmt: skip

    def write_custom_gradient(self, scope, depth):
        name, lines, operands, keep = self.closed(scope, depth)
        ruled = self.new("ruled")
        call, results = self.called(ruled, operands, keep)
        rates = LARGER.format(f"jax.vjp({name}, *args)[1](cts)")
        return [
            *lines, "@jax.custom_gradient", f"def {ruled}(*args):",
            f"    return {name}(*args), lambda cts: {rates}", call,
        ], results  # fmt: skip

    def write_remat(self, scope, depth):
        operands = self.some(scope, 1, 3)
        parameters, keep = self.parameters(operands, scope), []
        results = partial(self.outs, scope=scope, keep=keep)
        name, lines = self.function("again", parameters, scope, depth, results)
        options = self.pick(REMAT).format(policy=self.pick(POLICIES))
        call, names = self.called(f"jax.checkpoint({name}{options})", operands, keep)
        return [*lines, call], names
