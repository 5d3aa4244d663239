"""Pictures of steps, and of the memory between them."""

import xml.etree.ElementTree as ElementTree
from types import SimpleNamespace

from minijax_book import figures


class Buffer:
    def __init__(self, name):
        self.name = name


X, Y, Z = map(Buffer, "xyz")


def step(name, reads, writes):
    kernel = SimpleNamespace(name=name)
    return SimpleNamespace(kernel=kernel, reads=reads, writes=writes)


def made(steps, inputs=(X,), outputs=(Z,)):
    return SimpleNamespace(
        inputs=[*inputs], outputs=[*outputs], constants=[], steps=steps
    )


def test_steps_and_buffers():
    program = made([step("exp", [X], [Y]), step("add", [Y, X], [Z])])
    figure = figures.program(program, "Two steps")
    ElementTree.fromstring(figure.svg)
    assert figure.alt == "Two steps. exp: x → y; add: y x → z"
    assert [text.label for text in figure.texts] == ["exp", "add", "x", "y", "z"]
    assert figure.svg.count("<circle") == 5


def test_nothing_and_a_lot():
    assert "no steps" in figures.program(made([], [], [])).alt
    calls = SimpleNamespace(eqn=SimpleNamespace(primitive="dot"), reads=[X], writes=[Z])
    many = made([calls, *[step("m" * 70, [X], [Z]) for _ in range(30)]])
    figure = figures.program(many)
    assert "dot: x → z" in figure.alt
    for box in figure.texts:
        assert box.x >= 0 and box.x + box.width <= figure.width
        assert box.y >= 0 and box.y + box.height <= figure.height
