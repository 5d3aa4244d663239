"""Make the page that shows one function on every floor, from live objects.

python -m book.tools.one_function    write book/one_function.md, by book/floors.md

Each line of the function has a number, and so has each line below that came from it.
Equations and emitted Python know the line by themselves. Kernels do not: a line of a
kernel belongs to the first line of Python without which it is not there.
"""

import html
import importlib
import re

from book.tools import files
from book.tools.source import PACKAGE, ROOT

PAGE = "book/one_function.md"
TEMPLATE = ROOT / "book" / "floors.md"
NAME = "loss.py"
SOURCE = """\
def loss(w, x, y):
    product = x @ w
    guess = jnp.tanh(product)
    residual = guess - y
    squares = residual * residual
    return squares.sum()
"""
FIRST, LAST = 2, 6  # the lines of the function that compute
Lines = list[tuple[str, int]]  # a line of text, and the line of Python or 0

_EQUATION = re.compile(r"    \w+:\S+ = ")
_COMMENT = re.compile(rf"# {NAME}:(\d+):")
_ASSIGNED = re.compile(r"    (\w+) = ")
_VALUE = re.compile(r" *(v\d+)\b")


def function(last: int = LAST):
    """`loss`, or a function that stops after one of its lines and returns its value."""
    lines = SOURCE.split("\n")[:last]
    if last < LAST:
        lines.append(f"    return {_ASSIGNED.match(lines[-1])[1]}")
    space = {"jnp": importlib.import_module(f"{PACKAGE}.numpy")}
    exec(compile("\n".join(lines) + "\n", NAME, "exec"), space)
    return space["loss"]


def arguments() -> tuple:
    """Eight examples with three measurements each."""
    jnp = importlib.import_module(f"{PACKAGE}.numpy")
    return jnp.ones(3), jnp.ones((8, 3)), jnp.zeros(8)


def python_lines() -> Lines:
    """The function itself."""
    numbered = enumerate(SOURCE.rstrip("\n").split("\n"), start=1)
    return [(text, number if number >= FIRST else 0) for number, text in numbered]


def jaxpr_lines(program) -> Lines:
    """A jaxpr, each equation with the line that it remembers."""
    found, lines = [eqn.source.position[0] for eqn in program.jaxpr.eqns], []
    at, number = -1, 0
    for text in str(program).split("\n"):
        if _EQUATION.match(text):
            at += 1
            number = found[at]
        inside = text.startswith("    ")
        lines.append((text, number if inside else 0))
    return lines


def emitted_lines(text: str) -> Lines:
    """Emitted Python, whose comments say where the lines below them come from."""
    lines, number = [], 0
    for line in text.strip().split("\n"):
        comment = _COMMENT.search(line)
        number = int(comment[1]) if comment else number
        inside = line.startswith("    ") and not line.startswith("    return")
        lines.append((line, number if inside else 0))
    return lines


def kernel_lines() -> Lines:
    """The kernel of the function, compared with those of its beginnings."""
    known: dict[str, int] = {}
    for last in range(FIRST, LAST + 1):
        for line in _dialect("kernels", last).split("\n"):
            if re.match(r"  v\d+:", line):
                known.setdefault(line, last)
    text = _dialect("kernels").rstrip("\n").split("\n")
    return [(line, known.get(line, 0)) for line in text]


def schedule_lines() -> Lines:
    """The loops of the kernel, as they are scheduled for this processor."""
    part = lambda name: importlib.import_module(f"{PACKAGE}.{name}")  # noqa: E731
    closed = importlib.import_module(PACKAGE).make_jaxpr(function())(*arguments())
    part("vectorization.schedules")  # registers the schedule of processors with vectors
    lower, fuse = part("kernels.lowering").lower, part("fusion.fusion_pass").fuse
    kernel = fuse(lower(closed)).steps[0].kernel
    target = part("llvm.targets").current_target()
    nest = part("llvm.targets").scheduler.value(kernel, target)
    text = part("kernels.loop_nests").print_nest(kernel, nest).rstrip("\n")
    known = {_VALUE.match(line)[1]: n for line, n in kernel_lines() if n}
    found = [(line, _VALUE.match(line)) for line in text.split("\n")]
    return [(line, known.get(match[1], 0) if match else 0) for line, match in found]


def llvm_lines() -> Lines:
    """LLVM's text; the function that computes tanh can be told by its name."""
    tanh = next(n for text, n in python_lines() if "tanh" in text)
    lines, inside = [], False
    for line in _dialect("llvm").rstrip("\n").split("\n"):
        inside = line.startswith("define") and "@tanh" in line or inside and line != "}"
        lines.append((line, tanh if inside or "@tanh" in line else 0))
    return lines


def page() -> str:
    """The text of the page."""
    jax, arrays = importlib.import_module(PACKAGE), arguments()
    python = jax.jit(function(), backend="python").lower(*arrays).compile()
    target = importlib.import_module(f"{PACKAGE}.llvm.targets").current_target()
    gradient = jax.make_jaxpr(jax.grad(function()))(*arrays)
    shown = {
        "python": python_lines(),
        "jaxpr": jaxpr_lines(jax.make_jaxpr(function())(*arrays)),
        "gradient": jaxpr_lines(gradient),
        "emitted": emitted_lines(python.as_text()),
        "kernels": kernel_lines(),
        "schedule": schedule_lines(),
        "memory": [(line, 0) for line in _dialect("memory").strip().split("\n")],
        "llvm": llvm_lines(),
        "assembly": [(line, 0) for line in _assembly()],
    }
    boxes = {name: _box(name, lines) for name, lines in shown.items()}
    text = TEMPLATE.read_text(encoding="utf-8")
    return text.format(**boxes, processor=target.cpu)


def _dialect(name: str, last: int = LAST) -> str:
    jax = importlib.import_module(PACKAGE)
    return jax.jit(function(last)).lower(*arguments()).as_text(name)


def _assembly() -> list[str]:
    """The instructions and labels, without the directives between them."""
    lines = _dialect("assembly").rstrip("\n").split("\n")
    start = next(n for n, line in enumerate(lines) if re.match(r"_?program:", line))
    kept = [line for line in lines[start:] if not re.match(r"\s+\.|\.Lfunc_end", line)]
    return [line.expandtabs(8) for line in kept]


def _box(name: str, lines: Lines) -> str:
    """The lines as HTML; those of the function itself can be reached by keyboard."""
    stop = ' tabindex="0"' if name == "python" else ""
    spans = [
        f'<span class="of of-{n}"{stop}>{html.escape(line)}</span>'
        if n
        else f"<span>{html.escape(line)}</span>"
        for line, n in lines
    ]
    scroll = "" if name == "python" else f' tabindex="0" aria-label="{name}"'
    body = "\n".join(spans).replace("\n<span></span>", "\n<span> </span>")
    return f'<pre class="floor floor-{name}"{scroll}>{body}</pre>'


def main() -> None:
    """Write the page, if its text changed."""
    if files.write(ROOT / PAGE, page()):
        print(f"wrote {PAGE}")


if __name__ == "__main__":
    main()
