"""The grammars of the reference, read from their page, parse what is printed."""

import re
from functools import cache

import pytest

import minijax
from book.tools.source import ROOT
from minijax.fusion.fusion_pass import fuse
from minijax.kernels.lowering import Launch, lower
from tests import corpus

PAGE = (ROOT / "book" / "grammars.md").read_text(encoding="utf-8")
PROGRAMS = corpus.programs(minijax)
PART = re.compile(r'<(\w+)>|"([^"]+)"')


class Grammar:
    """A parser of the grammar below a heading of the page.

    Args:
      heading: of the section.
      space: a regular expression of what may stand between the parts.
    """

    def __init__(self, heading, space):
        section = PAGE.partition(f"## {heading}\n")[2]
        lines = re.search(r"```text\n(.*?)```", section, re.DOTALL)[1].splitlines()
        self.rules = dict(map(str.strip, line.split(" = ", 1)) for line in lines)
        self.first, self.space = next(iter(self.rules)), re.compile(space)
        self.furthest = 0

    def parses(self, text):
        """Raise if a text is not in the language; the message has the place."""
        self.furthest = 0
        end = self.rule(self.first, text, 0)
        if end is None or self.skip(text, end) != len(text):
            at = self.furthest
            raise SyntaxError(f"{text[max(0, at - 60) : at]} <<HERE>> {text[at:][:60]}")

    def skip(self, text, at):
        """The place behind white space."""
        return self.space.match(text, at).end()

    def token(self, pattern, text, at):
        """The place behind a token, or None."""
        at = self.skip(text, at)
        self.furthest = max(self.furthest, at)
        found = re.compile(pattern).match(text, at)
        return found and found.end()

    def rule(self, name, text, at):
        """The place behind what a rule describes, or None."""
        body = self.rules[name]
        if body.startswith("/"):
            return self.token(body[1:-1], text, at)
        for parts in body.split(" | "):
            end = self.sequence(parts.split(), text, at)
            if end is not None:
                return end
        return None

    def sequence(self, parts, text, at):
        """The place behind some parts, or None."""
        for part in parts:
            end, often = self.part(part, text, at), part[-1]
            if end is None and often not in "?*":
                return None
            while end is not None:
                at = end
                end = self.part(part, text, at) if often == "*" else None
        return at

    def part(self, part, text, at):
        """The place behind one part, or None."""
        name, quoted = PART.match(part).groups()
        if quoted:
            return self.token(re.escape(quoted), text, at)
        return self.rule(name, text, at)


JAXPRS, KERNELS = Grammar("Jaxprs", r"\s*"), Grammar("Kernels", " *")


@cache
def traced(name):
    """The jaxpr of a program of the corpus."""
    f, x = PROGRAMS[name]
    return minijax.make_jaxpr(f)(x)


def kernels(program):
    """The kernels of a lowered program, those in loops and branches too."""
    for step in program.steps:
        if isinstance(step, Launch):
            yield step.kernel
        for inner in step.programs:
            yield from kernels(inner)


@pytest.mark.parametrize("name", PROGRAMS)
def test_jaxprs(name):
    JAXPRS.parses(str(traced(name)))


def test_jaxprs_of_tangents():
    for f, x in [*PROGRAMS.values()][::4]:
        tangents = minijax.make_jaxpr(lambda x, f=f: minijax.jvp(f, (x,), (x,)))(x)
        JAXPRS.parses(str(tangents))


def test_kernels():
    found = 0
    for name in PROGRAMS:
        for kernel in kernels(fuse(lower(traced(name)))):
            KERNELS.parses(str(kernel))
            found += 1
    assert found > 100


@pytest.mark.parametrize(
    "grammar, text",
    [
        (JAXPRS, "{ lambda ; a:f32[]. let b:f32[] = mul a in (b,)"),
        (JAXPRS, "{ lambda a:f32[]. let in (a,) }"),
        (JAXPRS, "{ lambda ; a:f32[]. let b = sin a in (b,) }"),
        (KERNELS, "k(x:f32[3]) for i < 3\n  v0:f32[i] = load x"),
        (KERNELS, "k(x:f32[3]) for i < 3\n  v0:f32[i] = load x[i] out[i] = v0"),
        (KERNELS, "k(x:f32[3]) i < 3"),
    ],
)
def test_what_is_not_printed_is_refused(grammar, text):
    with pytest.raises(SyntaxError):
        grammar.parses(text)


def test_each_rule_is_used():
    for grammar in (JAXPRS, KERNELS):
        bodies = [body for body in grammar.rules.values() if not body.startswith("/")]
        used = {name for body in bodies for name in re.findall(r"<(\w+)>", body)}
        assert used | {grammar.first} == {*grammar.rules}
