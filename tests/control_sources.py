"""Random programs of control flow as texts that can be made smaller.

`tests.program_writer` writes them; each is run by a backend, as it stands and under
jvp, vjp and vmap, between guard bytes, and by the interpreter.
"""

import dataclasses
from functools import partial

import numpy as np

import minijax
from tests import random_control
from tests.edge_programs import SCRIPT_HEAD, as_text
from tests.program_writer import Program, Types, namespace
from tests.red_zones import RedZones


@dataclasses.dataclass(frozen=True)
class SourceCase:
    """A program, and how it is run.

    Attributes:
      source: the text of a function ``program``.
      inputs: its arguments, from names to NumPy arrays.
      wide: whether numbers of 64 bits are allowed.
      ways: numbers of `random_control.TRANSFORMATIONS`.
      backend: which one.
    """

    source: str
    inputs: dict
    wide: bool
    ways: tuple = (0, 1, 2, 3)
    backend: str = "cpu"

    def problems(self):
        """Return what goes wrong, a list of texts."""
        with minijax.enable_x64(self.wide), RedZones() as zones:
            found = [text for way in self.ways for text in self.run(way)]
        return found + zones.problems

    def run(self, number):
        """Yield what goes wrong in one way."""
        way = random_control.TRANSFORMATIONS[number]
        names = namespace("minijax")
        f = random_control.runnable(minijax, names, self.source)
        g = partial(way, minijax, f)
        wanted, ours = (
            random_control.attempt(random_control.backend(name), g, self.inputs)
            for name in ("interpreter", self.backend)
        )
        if isinstance(wanted, NameError):  # a line that is needed was taken away
            return
        if problem := random_control.attempt(self.difference, ours, wanted):
            yield f"{way.__name__}: {problem}"

    def difference(self, ours, wanted):
        """Say how two results differ, or return None."""
        whole = object.__new__(random_control.ControlComparison)
        whole.program = self
        return whole.difference(ours, wanted, True)

    def smaller(self):
        """Yield simpler cases."""
        change = partial(dataclasses.replace, self)
        if len(self.ways) > 1:
            yield from [change(ways=(way,)) for way in self.ways]
        head, *lines, last = self.source.split("\n")
        wanted = last.strip().removeprefix("return [").removesuffix("]").split(", ")
        for name in wanted if len(wanted) > 1 else ():
            fewer = ", ".join(each for each in wanted if each != name)
            yield change(source="\n".join([head, *lines, f"    return [{fewer}]"]))
        for cut in range(len(lines)):
            end = cut + 1
            while end < len(lines) and depth(lines[end]) > depth(lines[cut]):
                end += 1
            yield change(source="\n".join([head, *lines[:cut], *lines[end:], last]))

    def script(self):
        """The text of a program that shows what goes wrong."""
        parts = [SCRIPT_HEAD]
        if self.wide:
            parts.append('jax.config.update("jax_enable_x64", True)')
        parts.append("from tests.program_writer import namespace")
        parts.append('fit = namespace("minijax")["fit"]')
        parts += [f"{name} = {as_text(x)}" for name, x in self.inputs.items()]
        ways = [random_control.TRANSFORMATIONS[n].__name__ for n in self.ways]
        parts += ["", self.source, "", f"# {', '.join(ways)}"]
        arguments = ", ".join(self.inputs)
        for backend in ("interpreter", self.backend):
            parts.append(f"print(jax.jit(program, backend={backend!r})({arguments}))")
        return "\n".join(parts)


def depth(line):
    """How far a line is indented."""
    return len(line) - len(line.lstrip())


def drawn(seed, backend="cpu"):
    """Return the `SourceCase` of a seed."""
    wide = bool(seed % 2)
    with minijax.enable_x64(wide), np.errstate(all="ignore"):
        program = Program(seed, [Types("minijax")])
    return SourceCase(program.source, program.inputs, wide, backend=backend)
