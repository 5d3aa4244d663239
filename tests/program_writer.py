"""Random programs with control flow: branches, loops, and what is written within them.

A program is the text of a function. It grows statement by statement; a statement is a
line that applies one function, or a block: a branch, a loop, a jitted, mapped or
differentiated function, with a body that grows in the same way, and that may use
everything around it. Each statement is first traced for its types alone: what the
package refuses does not become part of the program.

Numbers stay small and far from where a rounding would turn a branch, so that a program
means the same wherever it runs.
"""

import importlib
import textwrap

import numpy as np

from tests.random_programs import Gaps, dtype_kind, numbers

DTYPES = "float32 float32 float32 float32 int32 int8 uint8 bool complex64".split()
WIDE = {"float32": "float64", "int32": "int64", "complex64": "complex128"}
KINDS = "cond switch scan scan fori while map associative jit vmap grad jvp".split()
LINES = [
    [f"jnp.{name}({{x}})" for name in "sin cos tanh arctan negative abs sign".split()]
    + ["jnp.sqrt(jnp.abs({x}) + 1)", "jnp.log1p(jnp.abs({x}))",
       "jnp.exp(jnp.sin({x}))"],
    ["{x} + {o}", "{x} * {o}", "{o} - {x}", "jnp.maximum({x}, {o})", "{x} * {x}",
     "jnp.where({x} > 0.37, {x}, {o})", "jnp.where({o} < 0.23, {x}, {o})",
     "jnp.clip({x}, -0.5, 1.5)", "{x} > 0.41", "jnp.logical_not({x})"],
    ["{x}.sum()", "{x}.mean({axis})", "jnp.max({x}, {axes})",
     "lax.cumsum({x}, {place})", "jnp.sum({x}, {axes}, keepdims=True)",
     "jnp.any({x} > 0.33)"],
    ["{x}.T", "{x}.reshape(-1)", "jnp.expand_dims({x}, {axis})",
     "jnp.flip({x}, {axes})", "jnp.broadcast_to({x}, {taller})", "jnp.roll({x}, 1)",
     "{x}[{index}]",
     "jnp.concatenate([{x}, {x}], {axis})", "jnp.stack([{x}, {o}])"],
    ["{x} @ {y}", "jnp.dot({x}, {x}.T)", "jnp.outer({x}, {y})",
     "jnp.tensordot({x}, {x}, {x}.ndim)"],
    ["jnp.arange({x}.size) * {o}", "jnp.ones({x}.shape) + {x}", "{x}.astype('float32')",
     "jnp.sin({x}).astype('complex64').real", "jnp.full({x}.shape, {o})"],
]  # fmt: skip
TALKING = [
    "lax.psum({x}, 'i')",
    "lax.pmean(jnp.sin({x}), 'i')",
    "{x} * lax.axis_index('i')",
]
INITIAL = "0 0.0 1.0 True 0.5".split()


def namespace(name):
    """Return what the text of a program may use, from the package of this name."""
    jax = importlib.import_module(name)
    jnp = importlib.import_module(f"{name}.numpy")
    lax = importlib.import_module(f"{name}.lax")

    def fit(x, shape, dtype):
        """Make a small value of a shape and dtype, smoothly dependent on `x`."""
        x = jnp.asarray(x)
        if x.shape != shape:
            x = jnp.broadcast_to(jnp.sum(x), shape)
        if jnp.iscomplexobj(x) and not dtype.startswith("complex"):
            x = x.real
        if dtype == "bool":
            return x > 0.31
        if jnp.issubdtype(x.dtype, jnp.inexact):
            x = x / (1 + jnp.real(x * jnp.conj(x)))
            if not dtype.startswith(("float", "bfloat", "complex")):
                x = jnp.round(4.3 + 5.0 * x)
        return x.astype(dtype)

    def larger(tree):
        """Return all derivatives half as large again; there are none of integers."""
        none = jax.dtypes.float0
        return jax.tree_util.tree_map(
            lambda t: t if getattr(t, "dtype", 0) == none else jnp.multiply(1.5, t),
            tree,
        )

    names = {"np": np, "jax": jax, "jnp": jnp, "lax": lax}
    return names | {"fit": fit, "larger": larger}


class Types:
    """What a package says about the types of statements."""

    def __init__(self, name):
        self.names = namespace(name)
        self.jax = self.names["jax"]

    def of(self, lines, wanted, scope, axes):
        """Return the types of names after some lines have run, or an error."""
        source = "\n".join(lines)
        known = {
            name: self.jax.ShapeDtypeStruct(t.shape, t.dtype, weak_type=t.weak_type)
            for name, t in scope.items()
        }

        def run(values):
            names = {**self.names, **values}
            exec(source, names)
            return [names[name] for name in wanted]

        try:
            return self.jax.make_jaxpr(run, axis_env=axes)(known).out_avals
        except Exception as error:
            return error


class Program:
    """A random program of control flow.

    Attributes:
      source: its text, a function called ``program``.
      inputs: its arguments, a dictionary from names to NumPy arrays, and to numbers,
        for which arrays of weak types are given.
      largest: how many elements a value may have.
      kinds: of its statements.
      problems: statements of which the judges do not think alike, as texts.
    """

    largest = 40

    def __init__(self, seed, judges, length=4, depth=3):
        self.rng = np.random.default_rng(seed)
        self.judges, self.count, self.axes = judges, 0, []
        self.problems, self.kinds = [], []
        self.wide = bool(seed % 2)
        self.inputs = self.draw_inputs()
        jnp = judges[0].names["jnp"]
        scope = {
            name: judges[0].jax.typeof(jnp.asarray(x))
            for name, x in self.inputs.items()
        }
        lines = self.body(scope, length, depth)
        self.wanted = [name for name in scope if name not in self.inputs][-8:]
        head = f"def program({', '.join(self.arguments(judges[0].jax))}):"
        last = f"return [{', '.join(self.wanted)}]"
        self.source = "\n".join([head, *indented([*lines, last])])

    def draw_inputs(self):
        shape = tuple(int(s) for s in self.rng.choice([2, 3, 3], self.rng.integers(3)))
        like = [shape, shape, shape[1:], shape[:1], (3,), ()]
        found = {}
        for name in "abc"[: self.rng.integers(2, 4)]:
            dtype = self.pick(DTYPES) if found else "float32"
            if self.wide and self.rng.random() < 0.7:
                dtype = WIDE.get(dtype, dtype)
            found[name] = numbers(self.rng, self.pick(like), dtype)
        return found

    def arguments(self, jax):
        """Return what the program is called with, from a package."""
        return {
            name: jax.numpy.asarray(x) if isinstance(x, int | float) else x
            for name, x in self.inputs.items()
        }

    # Growing.

    def pick(self, items):
        return items[self.rng.integers(len(items))]

    def chance(self, p):
        return self.rng.random() < p

    def new(self, hint="v"):
        self.count += 1
        return f"{hint}{self.count}"

    def body(self, scope, length, depth):
        """Return some lines, and add the names that they define to `scope`."""
        lines, missed = [], 0
        while length and missed < 12:
            new, names, kind = self.statement(scope, depth)
            types = self.judged(new, names, scope)
            if types is None:
                missed += 1
                continue
            lines, length = [*lines, *new], length - 1
            scope.update(zip(names, types))
            self.kinds.append(kind)
        return lines

    def judged(self, lines, names, scope):
        """Return the types of new names, or None; note how the judges disagree."""
        verdicts = [judge.of(lines, names, scope, self.axes) for judge in self.judges]
        said = [
            type(v).__name__
            if isinstance(v, Exception)
            else [(t.shape, t.dtype.name, t.weak_type) for t in v]
            for v in verdicts
        ]
        # JAX's `map` divides by the size of its results; `book/differences.md`: axes;
        # and its loops hand on a Python number as it is, which has no methods.
        fine = said[0] in ("ZeroDivisionError", "AttributeError")
        fine = fine or said == ["IndexError", "ValueError"]
        if not fine and any(words != said[0] for words in said):
            text = "\n".join(lines)
            used = {name: str(t) for name, t in scope.items() if name in text}
            self.problems.append(f"types of\n{text}\nat {used}:\n{said}\n{verdicts}")
        types = verdicts[0]
        if isinstance(types, Exception) or any(t.size > self.largest for t in types):
            return None
        return types if said == said[:1] * len(said) else None

    def statement(self, scope, depth):
        """Return lines, the names that they define, and the kind of statement."""
        if depth == 0 or self.chance(0.45):
            name = self.new()
            return [f"{name} = {self.expression(scope)}"], [name], "line"
        kind = self.pick(KINDS)
        lines, names = getattr(self, f"write_{kind}")(scope, depth - 1)
        return lines, names, kind

    def expression(self, scope):
        group = self.pick(LINES + [TALKING] * bool(self.axes))
        names = list(scope)
        chosen = names[-5:] if self.chance(0.8) else names
        values = {name: scope[name] for name in chosen}
        return self.pick(group).format_map(Gaps(self.rng, values))

    def function(self, hint, parameters, scope, depth, results, unpack=()):
        """Return a function's name and text.

        `results` makes the text of its result of a dictionary: its scope.
        """
        name, inner = self.new(hint), {**scope, **parameters}
        lines = self.body(inner, int(self.rng.integers(1, 3)), depth)
        body = [*unpack, *lines, f"return {results(inner)}"]
        return name, [f"def {name}({', '.join(parameters)}):", *indented(body)]

    def some(self, scope, least=1, most=3, like=lambda t: True):
        """Return a few of the names of `scope`, those that come late more often."""
        names = [name for name, t in scope.items() if like(t)][-6:]
        number = min(int(self.rng.integers(least, most)), len(names))
        return (
            [str(n) for n in self.rng.choice(names, number, replace=False)]
            if names
            else []
        )

    def fitted(self, scope, t, keep=()):
        """Return an expression for a value of a type."""
        if self.chance(0.15) and keep:
            return self.pick(keep)
        x = self.pick(list(scope)[-5:])
        return f"fit({x}, {t.shape}, '{t.dtype.name}')"

    def parameters(self, names, scope):
        return {self.new("p"): scope[name] for name in names}

    def scalar(self, scope, kind="fiub"):
        """Return an expression for a number that depends on something."""
        names = self.some(scope, 1, 2, lambda t: dtype_kind(t) in kind and t.size)
        return f"jnp.sum({names[0]})" if names else "a.size"

    def predicate(self, scope):
        kind = self.rng.random()
        if kind < 0.1:
            return self.pick(["True", "False", "np.True_"])
        value = self.scalar(scope)
        return f"{value} > {self.rng.integers(-9, 15) / 10 + 0.037:.3f}"

    def number(self, scope, most=3):
        """Return an expression for a small number that is not known when traced."""
        wave = f"jnp.round(3 * jnp.sin({self.scalar(scope)})).astype(int)"
        return f"jnp.clip({wave}, 0, {most})"

    # Blocks.

    def branches(self, number, scope, depth):
        """Return functions with operands and results of one type."""
        operands = self.some(scope, 0, 3)
        found, lines, types = [], [], None
        for _ in range(number):
            parameters = self.parameters(operands, scope)

            def results(inner):
                nonlocal types
                new = {n: t for n, t in inner.items() if n not in scope} or inner
                if types is None:
                    names = self.some(new, 1, 3)
                    types = [new[name] for name in names]
                    return f"[{', '.join(names)}]"
                texts = [self.alternative(inner, t) for t in types]
                return f"[{', '.join(texts)}]"

            name, text = self.function("branch", parameters, scope, depth, results)
            found.append(name)
            lines += text
        names = [self.new() for _ in types]
        return found, lines, names, "".join(f", {name}" for name in operands)

    def alternative(self, scope, t):
        """The same type in another branch; a weak number will do for a strong one."""
        usual = "float64" if self.wide else "float32"
        if (t.shape, t.dtype.name) == ((), usual) and self.chance(0.2):
            return "0.25"
        return self.fitted(scope, t)

    def write_cond(self, scope, depth):
        (yes, no), lines, names, operands = self.branches(2, scope, depth)
        predicate = self.predicate(scope)
        call = f"[{', '.join(names)}] = lax.cond({predicate}, {yes}, {no}{operands})"
        return [*lines, call], names

    def write_switch(self, scope, depth):
        number = int(self.rng.integers(1, 4))
        found, lines, names, operands = self.branches(number, scope, depth)
        index = self.pick([self.number(scope), f"{self.scalar(scope, 'iu')}", "1"])
        call = f"lax.switch({index}, [{', '.join(found)}]{operands})"
        return [*lines, f"[{', '.join(names)}] = {call}"], names

    def state(self, scope, least=0):
        """Return names, types and initial values of what a loop carries."""
        initial = self.some(scope, least, 3)
        types = [scope[name] for name in initial]
        if self.chance(0.3):
            initial.append(self.pick(INITIAL))
            types.append(self.type_of(initial[-1]))
        return [self.new("s") for _ in initial], types, initial

    def type_of(self, literal):
        """Return the weak type of a Python number."""
        [t] = self.judges[0].of([f"t = {literal}"], ["t"], {}, [])
        return t

    def next_state(self, inner, carried, types):
        texts = [self.fitted(inner, t, [name]) for name, t in zip(carried, types)]
        return "".join(f"{text}, " for text in texts)

    def write_scan(self, scope, depth):
        carried, types, initial = self.state(scope)
        mapped, given, length = self.items(scope)
        keep = {}

        def results(inner):
            new = {n: t for n, t in inner.items() if n not in scope} or inner
            keep["outs"] = self.some(new, 0, 3)
            state = self.next_state(inner, carried, types)
            return f"({state}), [{', '.join(keep['outs'])}]"

        items = ", ".join(mapped)
        unpack = (
            [f"({''.join(f'{name}, ' for name in carried)}) = carry"] if carried else []
        )
        unpack += [f"[{items}] = items"] if mapped else []
        inner_types = dict(zip(carried, types)) | mapped
        name, lines = self.with_head(
            "carry, items", "body", inner_types, scope, depth, results, unpack
        )
        ends, outs = [self.new() for _ in carried], [self.new() for _ in keep["outs"]]
        options = self.pick(["", "", ", reverse=True", ", unroll=2", ", unroll=True"])
        options += f", length={length}" if not given or self.chance(0.2) else ""
        xs = f"[{', '.join(given)}]" if given else "None"
        start = "".join(f"{x}, " for x in initial)
        call = f"lax.scan({name}, ({start}), {xs}{options})"
        left = (
            f"({''.join(f'{n}, ' for n in ends)}), [{', '.join(outs)}]"
            if ends
            else f"_, [{', '.join(outs)}]"
        )
        return [*lines, f"{left} = {call}"], [*ends, *outs]

    def with_head(self, head, hint, parameters, scope, depth, results, unpack):
        """A function with parameters that are taken apart in its first lines."""
        name, lines = self.function(hint, parameters, scope, depth, results, unpack)
        lines[0] = f"def {name}({head}):"
        return name, lines

    def items(self, scope):
        """Return what a loop runs over: names and types within, values, the number."""
        sizes = {t.shape[0] for t in scope.values() if t.shape}
        if not sizes or self.chance(0.2):
            return {}, [], int(self.rng.integers(0, 4))
        size = self.pick(sorted(sizes))
        given = self.some(scope, 1, 3, lambda t: t.shape[:1] == (size,))
        types = self.judges[0].of(
            [f"t{i} = {x}[0]" for i, x in enumerate(given)] if size else [],
            [f"t{i}" for i in range(len(given))] if size else [],
            scope,
            self.axes,
        )
        if not size:
            return {}, [], 0
        return {self.new("x"): t for t in types}, given, size

    def write_fori(self, scope, depth):
        carried, types, initial = self.state(scope, 1)
        index = self.new("i")
        inner_types = {index: self.type_of("1")} | dict(zip(carried, types))
        state = "".join(f"{name}, " for name in carried)
        name, lines = self.with_head(
            f"{index}, state", "body", inner_types, scope, depth,
            lambda inner: f"({self.next_state(inner, carried, types)})",
            [f"({state}) = state"],
        )  # fmt: skip
        low = self.pick(["0", "0", "1", "-1"])
        high = self.pick(["3", "2", "0", self.number(scope), self.number(scope)])
        ends = [self.new() for _ in carried]
        left = "".join(f"{n}, " for n in ends)
        start = "".join(f"{x}, " for x in initial)
        return [
            *lines,
            f"({left}) = lax.fori_loop({low}, {high}, {name}, ({start}))",
        ], ends

    def write_while(self, scope, depth):
        carried, types, initial = self.state(scope, 1)
        index, going = self.new("i"), self.new("going")
        inner_types = {index: self.type_of("1")} | dict(zip(carried, types))
        state = f"({index}, {''.join(f'{name}, ' for name in carried)})"
        name, lines = self.with_head(
            "state", "body", inner_types, scope, depth,
            lambda inner: f"({index} + 1, {self.next_state(inner, carried, types)})",
            [f"{state} = state"],
        )  # fmt: skip
        limit = self.pick(["3", "2", self.number(scope), self.number(scope)])
        test = f"{index} < {limit}"
        if self.chance(0.4):
            test = f"({test}) & ({self.predicate({**scope, **inner_types})})"
        ends = [self.new() for _ in carried]
        left = "".join(f"{n}, " for n in ends)
        start = "".join(f"{x}, " for x in initial)
        return [
            f"def {going}(state):", *indented([f"{state} = state", f"return {test}"]),
            *lines, f"(_, {left}) = lax.while_loop({going}, {name}, (0, {start}))",
        ], ends  # fmt: skip

    def over_items(self, hint, scope, depth):
        """Return a function of items, its text, the values, and names for results."""
        mapped, given, _ = self.items(scope)
        if not mapped:
            mapped, given = {self.new("x"): self.type_of("1")}, ["jnp.arange(3)"]
        keep = []

        def results(inner):
            new = {n: t for n, t in inner.items() if n not in scope}
            keep.extend(self.some(new, 1, 3))
            return f"[{', '.join(keep)}]"

        name, lines = self.function(hint, mapped, scope, depth, results)
        return name, lines, given, [self.new() for _ in keep]

    def write_map(self, scope, depth):
        name, lines, given, names = self.over_items("row", scope, depth)
        batch = self.pick(["", "", ", batch_size=2"])
        call = f"lax.map(lambda items: {name}(*items), [{', '.join(given)}]{batch})"
        return [*lines, f"[{', '.join(names)}] = {call}"], names

    def write_vmap(self, scope, depth):
        named = not self.axes and self.chance(0.6)
        if named:
            self.axes = [("i", 3)]
        name, lines, given, names = self.over_items("row", scope, depth)
        if named:
            self.axes = []
        option = ", axis_name='i'" if named else ""
        option += self.pick(["", ", out_axes=-1"])
        call = f"jax.vmap({name}{option})({', '.join(given)})"
        return [*lines, f"[{', '.join(names)}] = {call}"], names

    def write_associative(self, scope, depth):
        name = self.new()
        xs = self.some(scope, 1, 2, lambda t: t.shape) or ["jnp.arange(3.0)"]
        rank = len(scope[xs[0]].shape) if xs[0] in scope else 1
        option = self.pick(["", ", reverse=True", f", axis={self.rng.integers(rank)}"])
        if self.chance(0.4):
            pair = self.new("join")
            text = [f"def {pair}(p, q):", "    return p[0] * q[0], p[1] * q[0] + q[1]"]
            call = f"lax.associative_scan({pair}, ({xs[0]}, 2 * {xs[0]}){option})[1]"
            return [*text, f"{name} = {call}"], [name]
        function = self.pick(["jnp.add", "jnp.multiply", "jnp.maximum"])
        return [f"{name} = lax.associative_scan({function}, {xs[0]}{option})"], [name]

    def write_jit(self, scope, depth):
        operands = self.some(scope, 0, 3)
        parameters = self.parameters(operands, scope)
        keep = []

        def results(inner):
            keep.extend(self.some(inner, 1, 4))
            return f"[{', '.join(keep)}]"

        name, lines = self.function("inner", parameters, scope, depth, results)
        names = [self.new() for _ in keep]
        if parameters or self.chance(0.5):
            options = self.pick(["", "", ", inline=True", ", keep_unused=True"])
            call = f"jax.jit({name}{options})({', '.join(operands)})"
        else:
            lines[0] = f"def {name}(*, n):"
            call = f"jax.jit({name}, static_argnames='n')(n=2)"
        return [*lines, f"[{', '.join(names)}] = {call}"], names

    def smooth(self, scope, depth):
        """Return a function of one inexact value, its text, and the value."""
        chosen = self.some(scope, 1, 2, lambda t: dtype_kind(t) == "f") or ["a"]
        parameters = self.parameters(chosen, scope)

        def results(inner):
            new = {n: t for n, t in inner.items() if n not in scope}
            floats = self.some(new, 1, 2, lambda t: dtype_kind(t) == "f")
            return f"jnp.sum({floats[0]} * 0.7)" if floats else "jnp.sin(a)"

        return *self.function("smooth", parameters, scope, depth, results), chosen[0]

    def write_grad(self, scope, depth):
        name, lines, x = self.smooth(scope, depth)
        value, slope = self.new(), self.new()
        how = self.pick(["value_and_grad", "value_and_grad", "jit(jax.value_and_grad"])
        close = ")" * how.count("(")
        return [*lines, f"{value}, {slope} = jax.{how}({name}){close}({x})"], [
            value,
            slope,
        ]

    def write_jvp(self, scope, depth):
        name, lines, x = self.smooth(scope, depth)
        value, slope = self.new(), self.new()
        if self.chance(0.5):
            call = f"jax.jvp({name}, ({x},), (jnp.ones_like({x}),))"
            return [*lines, f"{value}, {slope} = {call}"], [value, slope]
        push = self.new("push")
        return [
            *lines, f"{value}, {push} = jax.linearize({name}, {x})",
            f"{slope} = {push}(jnp.cos({x}))",
        ], [value, slope]  # fmt: skip


def indented(lines):
    return textwrap.indent("\n".join(lines), "    ").split("\n")
